"""The schedule of a comparison, fixed in advance.

    first      three processes time every pair, those in caches before those in memory
    confirm    what is slower or faster gets two more, with a new seed
    look       what is unclear gets two more as long as there is time; three looks at most

The verdict on the samples is posenc/verdict.py's.
"""

import hashlib
import math
import time
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from ..command import CommandError
from ..convert import Record
from ..verdict import CONFIRMING, LEAST_PROCESSES, LOOKS
from .process import Program
from .progress import Progress
from .rows import MOST_PROCESSES, Failure, Row

FIRST_PART, IN_CACHES = 0.7, 0.5  # of the time limit: the first processes; of these, those in caches
COUNTS_PART, COUNTS_S = 0.1, 15.0
SEEDS = 1 << 53


class Schedule:
    """Times the rows of a comparison and judges them."""

    def __init__(
        self,
        program: Program,
        rows: Sequence[Row],
        builds: Dict[str, str],
        limit_s: float,
        processes: int = LEAST_PROCESSES,
        seed: int = 0,
        timed_too: bool = False,
        progress: Optional[Progress] = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`builds` are the digests of base and head; `timed_too`: also what has the same code is timed."""
        self.program, self.rows, self.builds, self.limit_s = program, rows, builds, limit_s
        self.processes, self.seed, self.timed_too, self.clock = processes, seed, timed_too, clock
        self.progress = progress or Progress()
        self.begun = clock()
        self.stop_at = math.inf
        self.number = 0  # of processes so far
        self.checked = False  # whether the process before checked all of each output
        self.overhead_s = 0.0  # of the process before: its time without the rounds
        self.noise: List[Record] = []  # what processes say of the machine

    def run(self) -> None:
        """Runs all processes."""
        self.begun = self.clock()
        self._first()
        self._further()
        self.progress.clear()

    @property
    def _left_s(self) -> float:
        return max(self.begun + self.limit_s - self.clock(), 0.0)

    # ---- processes ----

    def _first(self) -> None:
        wanted = [row for row in self.rows if row.in_both and (self.timed_too or not row.same_code)]
        groups = [[row for row in wanted if row.in_memory == in_memory] for in_memory in (False, True)]
        self.progress.total = self.processes * len(wanted)
        self.stop_at = self.begun + self.limit_s
        parts = (IN_CACHES * FIRST_PART if groups[1] else FIRST_PART, FIRST_PART)
        for group, part in zip(groups, parts):
            self.checked, self.overhead_s = False, 0.0
            end = self.begun + part * self.limit_s
            for left in range(self.processes, 0, -1):
                if self._out_of_time():
                    break
                self._process(group, max(end - self.clock(), 0.0) / left)
        for row in self.rows:
            if row.timed:
                row.judge()

    def _further(self) -> None:
        self.stop_at = math.inf  # what is to be confirmed is, whatever it takes
        while True:
            left_s = self._left_s
            rows = self._again(left_s)
            if not rows:
                return
            self.progress.notes = f", {len(rows)} again"
            self.progress.total += CONFIRMING * len(rows)
            for _ in range(CONFIRMING):
                self._process(rows, left_s / CONFIRMING)
            for row in rows:
                if not row.timed:
                    continue
                if row.flagged:
                    row.confirming = CONFIRMING
                else:
                    row.look += 1
                row.judge()

    def _again(self, left_s: float) -> List[Row]:
        """Returns the rows that are to be confirmed, and the unclear ones for which there is time."""
        chosen = []
        for row in self.rows:
            if not row.timed or row.confirming or len(row.head) >= MOST_PROCESSES:
                continue
            need_s = CONFIRMING * row.spent_s / max(len(row.head), 1)
            look = row.verdict.kind == "unclear" and row.look < LOOKS and left_s >= max(need_s, 1e-6)
            if row.flagged or look:
                left_s -= need_s
                chosen.append(row)
        return chosen

    def _process(self, rows: Sequence[Row], slot_s: float) -> None:
        """Has a process time rows, in about so many seconds; another one goes on after a crash."""
        rows = [row for row in rows if row.timed and len(row.head) < MOST_PROCESSES]
        if not rows:
            return
        begin, share_s = self.clock(), max(slot_s - self.overhead_s, 0.0)
        options = [
            "--part",
            "times",
            "--seed",
            str(self._seed_of(self.number)),
            "--budget",
            f"{max(share_s, 1e-6):.6f}",
        ]
        options += ["--rows-only"] if self.checked else []
        self.number += 1
        self.checked = True
        left = {row.key: row for row in rows}
        while left and not self._out_of_time():
            before = len(left)
            self._run(options, left)
            if len(left) == before and not self._out_of_time():
                raise CommandError("a process ended before it timed anything. Rerun with --processes 1 to see which.")
        took_s = self.clock() - begin
        self.overhead_s = max(took_s - share_s, 0.0)
        for row in rows:
            row.spent_s += took_s / len(rows)

    def _run(self, options: Sequence[str], left: Dict[Tuple[str, str], Row]) -> None:
        """Runs a process; rows that have a result leave `left`."""
        running: List[Record] = []

        def take(record: Record) -> None:
            if record["t"] == "header":
                self._same_builds(record)
            elif record["t"] == "running":
                running[:] = [record]
            elif record["t"] == "samples":
                row = left.pop((record["case"], record["backend"]), None)
                if row:
                    row.take(record)
                    self.progress.step(*row.key)
            elif record["t"] == "footer" and "noise" in record:
                self.noise.append(record["noise"])

        ended = self.program.run(options, take, self._look, list(left), watched=True)
        if ended.finished or ended.stopped:
            return
        if not running:
            raise CommandError(f"no process could time the pairs: {ended.message or ended.how}.")
        row = left.pop((running[0]["case"], running[0]["backend"]), None)
        if row:
            who = running[0]["who"]
            row.failure = Failure("base or head" if who == "rounds" else who, "crashed", ended.how)
            self.progress.step(*row.key)

    def _same_builds(self, header: Record) -> None:
        for name, sha256 in self.builds.items():
            if header["compare"][name]["sha256"] != sha256:
                raise CommandError(
                    f"{name} changed while it was compared (got '{header['compare'][name]['path']}'). "
                    "Compare files that stay as they are."
                )

    def _look(self) -> bool:
        self.progress.show()
        return self._out_of_time()

    def _out_of_time(self) -> bool:
        return self.clock() > self.stop_at

    def _seed_of(self, number: int) -> int:
        """Returns a seed for a process, from that of the comparison."""
        digest = hashlib.sha256(f"{self.seed} {number}".encode()).digest()
        return int.from_bytes(digest[:8], "little") % SEEDS

    # ---- instructions ----

    def counts(self) -> List[Record]:
        """Returns the instructions of calls in both builds: of what has a verdict first, and of one at least."""
        rows = [row for row in self.rows if row.timed and row.head and not row.same_code]
        rows.sort(key=lambda row: not row.flagged)
        found: List[Record] = []
        limit_s = min(COUNTS_PART * self.limit_s, COUNTS_S)

        def take(record: Record) -> None:
            if record["t"] == "count":
                found.append(record)

        if rows:
            options = ["--part", "counts", "--budget", f"{max(limit_s, 1e-6):.6f}"]
            self.program.run(options, take, pairs=[row.key for row in rows])
        return found
