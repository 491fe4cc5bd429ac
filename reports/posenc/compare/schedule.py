"""The schedule of a comparison, fixed in advance.

    first      three processes time every pair, those in caches before those in memory
    confirm    what is slower or faster gets two more, with a new seed
    look       what is unclear gets two more as long as there is time; three looks at most

The verdict on the samples is posenc/verdict.py's.
"""

import hashlib
import math
import time
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from ..command import CommandError
from ..convert import Record
from ..terminal import console
from ..verdict import CONFIRMING, LEAST_PROCESSES, LOOKS, USUAL_THRESHOLD
from .process import Program
from .rows import MOST_PROCESSES, Failure, Row

FIRST_PART, IN_CACHES = 0.7, 0.5  # of the time limit: the first processes; of these, those in caches
COUNTS_PART, COUNTS_S = 0.1, 15.0
LEAST_S = 1e-6  # of a time limit
SEEDS = 1 << 53


@dataclass(frozen=True)
class Settings:
    """How builds are compared."""

    limit_s: float
    processes: int = LEAST_PROCESSES
    seed: int = 0
    threshold: float = USUAL_THRESHOLD
    timed_too: bool = False  # what has the same machine code


class Progress:
    """Shows on stderr, if that is a terminal, how far a comparison is."""

    def __init__(self, notes: str = "") -> None:
        self.total, self.done, self.notes = 0, 0, notes
        self.line = console(stderr=True).status("posenc compare", refresh_per_second=2)

    def step(self, case: str, backend: str) -> None:
        """Counts a result."""
        self.done += 1
        of = f" of {self.total}" if self.total else ""
        self.line.update(f"posenc compare: {self.done}{of}{self.notes}  {backend} {case}")


class Schedule:
    """Times the rows of a comparison and judges them."""

    def __init__(
        self, program: Program, rows: Sequence[Row], builds: Dict[str, str], settings: Settings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """`builds` are the digests of base and head."""
        self.program, self.rows, self.builds, self.settings, self.clock = program, rows, builds, settings, clock
        self.progress = Progress()
        self.begun, self.stop_at = clock(), math.inf
        self.number = 0  # of processes so far
        self.checked = False  # whether the process before checked all of each output
        self.overhead_s = 0.0  # of the process before: its time without the rounds
        self.noise: List[Record] = []  # what processes say of the machine

    def run(self) -> None:
        """Runs all processes."""
        self.begun = self.clock()
        with self.progress.line:
            self._first()
            self._further()

    # ---- processes ----

    def _first(self) -> None:
        limit_s, processes = self.settings.limit_s, self.settings.processes
        wanted = [row for row in self.rows if row.in_both and (self.settings.timed_too or not row.same_code)]
        groups = [[row for row in wanted if row.in_memory == in_memory] for in_memory in (False, True)]
        self.progress.total = processes * len(wanted)
        self.stop_at = self.begun + limit_s
        for group, part in zip(groups, (IN_CACHES * FIRST_PART if groups[1] else FIRST_PART, FIRST_PART)):
            self.checked, self.overhead_s = False, 0.0
            end = self.begun + part * limit_s
            for left in range(processes, 0, -1):
                if not self._out_of_time():
                    self._process(group, max(end - self.clock(), 0.0) / left)
        for row in self.rows:
            if row.timed:
                row.judge()

    def _further(self) -> None:
        self.stop_at = math.inf  # what is to be confirmed is, whatever it takes
        while True:
            left_s = max(self.begun + self.settings.limit_s - self.clock(), 0.0)
            rows = self._again(left_s)
            if not rows:
                return
            self.progress.notes = f", {len(rows)} again"
            self.progress.total += CONFIRMING * len(rows)
            for _ in range(CONFIRMING):
                self._process(rows, left_s / CONFIRMING)
            for row in rows:
                if row.timed:
                    row.judge(again=True)

    def _again(self, left_s: float) -> List[Row]:
        """Returns the rows that are to be confirmed, and the unclear ones for which there is time."""
        chosen = []
        for row in self.rows:
            if not row.timed or row.confirming or len(row.head) >= MOST_PROCESSES:
                continue
            need_s = CONFIRMING * row.spent_s / max(len(row.head), 1)
            look = row.verdict.kind == "unclear" and row.look < LOOKS and left_s >= max(need_s, LEAST_S)
            if row.flagged or look:
                left_s -= need_s
                chosen.append(row)
        return chosen

    def _process(self, rows: Sequence[Row], slot_s: float) -> None:
        """Has a process time rows, in about so many seconds; another one goes on after a crash."""
        left = {row.key: row for row in rows if row.timed and len(row.head) < MOST_PROCESSES}
        if not left:
            return
        timed = list(left.values())
        begin, share_s = self.clock(), max(slot_s - self.overhead_s, 0.0)
        options = ["--part", "times", "--seed", str(self._next_seed()), "--budget", f"{max(share_s, LEAST_S):.6f}"]
        options += ["--rows-only"] if self.checked else []
        self.checked = True
        while left and not self._out_of_time():
            before = len(left)
            self._run(options, left)
            if len(left) == before and not self._out_of_time():
                raise CommandError("a process ended before it timed anything. Rerun with --processes 1 to see which.")
        took_s = self.clock() - begin
        self.overhead_s = max(took_s - share_s, 0.0)
        for row in timed:
            row.spent_s += took_s / len(timed)

    def _run(self, options: Sequence[str], left: Dict[Tuple[str, str], Row]) -> None:
        """Runs a process; rows that have a result leave `left`."""
        running: Record = {}

        def finish(record: Record) -> Optional[Row]:
            row = left.pop((record["case"], record["backend"]), None)
            if row:
                self.progress.step(*row.key)
            return row

        def take(record: Record) -> None:
            nonlocal running
            if record["t"] == "header":
                self._same_builds(record)
            elif record["t"] == "running":
                running = record
            elif record["t"] == "samples":
                row = finish(record)
                if row:
                    row.take(record)
            elif record["t"] == "footer" and "noise" in record:
                self.noise.append(record["noise"])

        ended = self.program.run(options, take, self._out_of_time, list(left), watched=True)
        if ended.finished or ended.stopped:
            return
        if not running:
            raise CommandError(f"no process could time the pairs: {ended.message or ended.how}.")
        row = finish(running)
        if row:
            who = running["who"]
            row.failure = Failure("base or head" if who == "rounds" else who, "crashed", ended.how)

    def _same_builds(self, header: Record) -> None:
        for name, sha256 in self.builds.items():
            if header["compare"][name]["sha256"] != sha256:
                raise CommandError(
                    f"{name} changed while it was compared (got '{header['compare'][name]['path']}'). "
                    "Compare files that stay as they are."
                )

    def _out_of_time(self) -> bool:
        return self.clock() > self.stop_at

    def _next_seed(self) -> int:
        """Returns a seed for the next process, from that of the comparison."""
        digest = hashlib.sha256(f"{self.settings.seed} {self.number}".encode()).digest()
        self.number += 1
        return int.from_bytes(digest[:8], "little") % SEEDS

    # ---- instructions ----

    def counts(self) -> List[Record]:
        """Returns the instructions of calls in both builds: of what has a verdict first, and of one at least."""
        rows = [row for row in self.rows if row.timed and row.head and not row.same_code]
        rows.sort(key=lambda row: not row.flagged)
        found: List[Record] = []
        if rows:
            limit_s = max(min(COUNTS_PART * self.settings.limit_s, COUNTS_S), LEAST_S)
            options = ["--part", "counts", "--budget", f"{limit_s:.6f}"]
            self.program.run(options, found.append, pairs=[row.key for row in rows])
        return [record for record in found if record["t"] == "count"]
