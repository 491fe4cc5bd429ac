"""A comparison of two builds: results exactly, times by the schedule, and the records of both."""

import math
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Dict, List, Sequence

from ..command import CommandError
from ..convert import Record
from ..results.comparison import fails_gate, is_broken, verdict
from ..runs import number
from ..show import many
from .process import Interrupted, Program, interruptible
from .rows import Row
from .same_code import Unknown, code_of
from .schedule import Progress, Schedule, Settings

NOTHING_COMMON = 5


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
        try:
            with interruptible():
                self._results()
                self._code()
                self._times()
        except Interrupted as signalled:
            self.interrupted = signalled.number

    def _results(self) -> None:
        """Runs the process that compares results exactly, and lists the rows."""
        progress = Progress(" results compared")

        def take(record: Record) -> None:
            if record["t"] == "header":
                self.header = record
            elif record["t"] == "planned":
                self.rows.append(Row(record, threshold=self.settings.threshold))
            elif record["t"] not in ("footer", "running"):
                self.told.append(record)
                if record["t"] == "agreement":
                    progress.step(record["kernel"], record["backend"])

        with progress.line:
            ended = self.program.run(["--part", "results,code"], take)
        if not ended.finished:
            words = ended.message or f"the results could not be compared: {ended.how}"
            raise CommandError(words, ended.status if ended.message and ended.status > 0 else 2)

    def _code(self) -> None:
        """Finds out which rows have the same machine code in both builds."""
        builds = self.header["compare"]
        one_file = builds["base"]["sha256"] == builds["head"]["sha256"]
        progress = Progress(" machine code compared")
        with progress.line:
            for row in self.rows:
                progress.step(*row.key)
                try:
                    for name, entries in row.planned.get("entries", {}).items():
                        build = builds[name]
                        row.code[name] = build["sha256"] if one_file else code_of(build["path"], tuple(entries))
                except Unknown as unknown:
                    row.code, row.code_unknown = {}, str(unknown)

    def _times(self) -> None:
        builds = {name: str(self.header["compare"][name]["sha256"]) for name in ("base", "head")}
        schedule = Schedule(self.program, self.rows, builds, self.settings)
        self.noise = schedule.noise
        schedule.run()
        self.counted = schedule.counts()

    def records(self, argv: Sequence[str], options: Record, sides: Sequence[Record]) -> List[Record]:
        """Returns the records of the comparison. `sides` adds to what is known of base and head."""
        header = {**self.header, "command": "compare", "argv": ["posenc", "compare", *argv], "options": options,
                  "seed": hex(self.settings.seed)}  # fmt: skip
        compare: Dict[str, Record] = self.header["compare"]
        header["compare"] = {name: {**compare[name], **side} for name, side in zip(("base", "head"), sides)}
        finished = [row for row in self.rows if row.head or not row.timed or not self.interrupted]
        pairs = [row.record() for row in finished]
        return finish([header, *self.told, *self.counted, *pairs], not self.interrupted, self.begun, self.noise)


def outcome_of(records: Sequence[Record], gate: bool, strict: bool) -> "tuple[int, str]":
    """Returns the exit code of a comparison of builds, and its reason."""
    pairs = [record for record in records if record["t"] == "pair"]
    worse = [record for record in records if record["t"] == "change" and record["worse"]]
    failing = sum(map(is_broken, pairs)) + sum(
        change["what"] == "status" and change["head"]["status"] != "unsupported" for change in worse
    )
    if failing:
        return 1, f"head is wrong or fails where base does not ({many(failing, 'result')})"
    if all(verdict(pair) in ("new", "removed") for pair in pairs):
        return NOTHING_COMMON, "the builds have nothing in common"
    slower, grown = sum(map(fails_gate, pairs)), sum(change["what"] == "error" for change in worse)
    unclear = sum(verdict(pair) == "unclear" for pair in pairs)
    reasons = [many(slower, "confirmed slowdown")] if slower else []
    reasons += [f"{many(grown, 'largest error')} grew"] if grown else []
    if gate and reasons:
        return 3, " and ".join(reasons)
    if strict and unclear:
        return 4, many(unclear, "unclear verdict")
    return 0, f"{' and '.join(reasons)}; --gate would exit with 3" if reasons else "no failure, no confirmed slowdown"


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
    walls = [number(part, "wall_s") or 0.0 for part in parts]
    total: Record = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part.get(name, 0.0) for part in parts]
        if name == "load1":
            total[name] = values[-1]
        elif name in ("wall_s", "involuntary_switches", "swapped", "heat"):
            total[name] = sum(values)
        else:
            total[name] = sum(w * v for w, v in zip(walls, values)) / (math.fsum(walls) or 1.0)
    return total
