"""A comparison of two builds: results exactly, times by the schedule, and the records of both."""

import math
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Dict, List, Sequence

from ..command import CommandError
from ..convert import Record
from ..runs import member, number
from ..show import many
from ..verdict import LEAST_PROCESSES, USUAL_THRESHOLD
from .interrupt import Interrupted, interruptible
from .process import Program
from .progress import Progress
from .rows import Row
from .schedule import Schedule

NOTHING_COMMON = 5


@dataclass
class Settings:
    """How builds are compared."""

    limit_s: float
    processes: int = LEAST_PROCESSES
    seed: int = 0
    threshold: float = USUAL_THRESHOLD
    timed_too: bool = False  # what has the same machine code


@dataclass
class Comparison:
    """Two builds that are compared."""

    program: Program
    settings: Settings
    header: Record = field(default_factory=dict)
    told: List[Record] = field(default_factory=list)  # machine, kernels, backends, models, results
    counted: List[Record] = field(default_factory=list)
    rows: List[Row] = field(default_factory=list)
    noise: List[Record] = field(default_factory=list)
    interrupted: int = 0  # the signal that ended it
    begun: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Runs it. A signal ends it early."""
        with interruptible():
            try:
                self._results()
                self._times()
            except Interrupted as signalled:
                self.interrupted = signalled.number

    def _results(self) -> None:
        """Runs the process that compares results and machine code exactly, and lists the rows."""
        progress = Progress()
        progress.notes = " results compared"

        def take(record: Record) -> None:
            if record["t"] == "header":
                self.header = record
            elif record["t"] == "planned":
                self.rows.append(Row(record, threshold=self.settings.threshold))
            elif record["t"] not in ("footer", "running"):
                self.told.append(record)
                if record["t"] == "agreement":
                    progress.step(record["kernel"], record["backend"])

        def look() -> bool:
            progress.show()
            return False

        ended = self.program.run(["--part", "results,code"], take, look)
        progress.clear()
        if not ended.finished:
            words = ended.message or f"the results could not be compared: {ended.how}"
            raise CommandError(words, ended.status if ended.message and ended.status > 0 else 2)

    def _times(self) -> None:
        settings = self.settings
        builds = {name: str(member(self.header, f"compare.{name}.sha256")) for name in ("base", "head")}
        schedule = Schedule(
            self.program, self.rows, builds, settings.limit_s, settings.processes, settings.seed, settings.timed_too
        )
        try:
            schedule.run()
            self.counted = schedule.counts()
        finally:
            schedule.progress.clear()
            self.noise = schedule.noise

    # ---- what was found ----

    @property
    def changes(self) -> List[Record]:
        """Results that changed."""
        return [record for record in self.told if record["t"] == "change"]

    @property
    def failing(self) -> int:
        """Counts what head fails and base does not."""
        failing = [
            change for change in self.changes
            if change["what"] == "status" and change["worse"] and change["head"]["status"] != "unsupported"
        ]  # fmt: skip
        return len(failing) + sum(row.broken for row in self.rows)

    @property
    def grown(self) -> int:
        """Counts the cases whose largest error grew."""
        return sum(change["what"] == "error" and change["worse"] is True for change in self.changes)

    @property
    def slower(self) -> int:
        """Counts the confirmed slowdowns at or over the threshold."""
        return sum(row.timed and row.verdict.fails for row in self.rows)

    @property
    def unclear(self) -> int:
        """Counts the pairs that stayed unclear."""
        return sum(row.timed and row.verdict.kind == "unclear" for row in self.rows)

    def outcome(self, gate: bool, strict: bool) -> "tuple[int, str]":
        """Returns the exit code and its reason."""
        if self.failing:
            return 1, f"head is wrong or fails where base does not ({many(self.failing, 'result')})"
        if not any(row.in_both for row in self.rows):
            return NOTHING_COMMON, "the builds have nothing in common"
        reasons = [many(self.slower, "confirmed slowdown")] if self.slower else []
        reasons += [f"{many(self.grown, 'largest error')} grew"] if self.grown else []
        if gate and reasons:
            return 3, " and ".join(reasons)
        if strict and self.unclear:
            return 4, f"{many(self.unclear, 'unclear verdict')}"
        return 0, (
            f"{' and '.join(reasons)}; --gate would exit with 3" if reasons else "no failure, no confirmed slowdown"
        )

    def records(self, argv: Sequence[str], options: Record, sides: Sequence[Record]) -> List[Record]:
        """Returns the records of the comparison. `sides` adds to what is known of base and head."""
        header = {**self.header, "schema": "posenc.results/2", "command": "compare", "argv": ["posenc", "compare", *argv],
                  "options": options, "seed": hex(self.settings.seed)}  # fmt: skip
        compare: Dict[str, Record] = self.header["compare"]
        header["compare"] = {name: {**compare[name], **side} for name, side in zip(("base", "head"), sides)}
        pairs = [row.record() for row in self.rows if not self._unfinished(row)]
        return finish([header, *self.told, *self.counted, *pairs], not self.interrupted, self.begun, self.noise)

    def _unfinished(self, row: Row) -> bool:
        return bool(self.interrupted) and row.timed and not row.head


def finish(records: List[Record], complete: bool, begun: float, noise: Sequence[Record] = ()) -> List[Record]:
    """Returns records with the footer of their run."""
    counts: Dict[str, int] = {}
    for record in records:
        name = record["status"] if record["t"] == "check" else record["t"]
        counts[name] = counts.get(name, 0) + 1
    finished = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    footer: Record = {"t": "footer", "complete": complete, "counts": counts, "finished": finished}
    if noise:
        footer.update(wall_s=time.monotonic() - begun, noise=sum_noise(noise))
    return [*records, footer]


def sum_noise(parts: Sequence[Record]) -> Record:
    """Returns what processes together say of the machine: counts are summed, shares weighted by time."""
    total: Record = {}
    walls = [number(part, "wall_s") or 0.0 for part in parts]
    for name in dict.fromkeys(name for part in parts for name in part):
        values: List[Any] = [part.get(name, 0.0) for part in parts]
        if name in ("wall_s", "involuntary_switches", "swapped", "heat"):
            total[name] = sum(values)
        elif name == "load1":
            total[name] = values[-1]
        else:
            total[name] = sum(w * v for w, v in zip(walls, values)) / (math.fsum(walls) or 1.0)
    return total
