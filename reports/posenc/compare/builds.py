"""A comparison of two builds: results exactly, times by the schedule, and the records of both."""

import math
import time
from typing import Dict, List, Sequence

from ..command import CommandError
from ..runs import Record, number
from .files import compare_builds
from .process import Interrupted, Program, interruptible
from .same_code import Unknown, code_digest
from .schedule import Progress, Row, Schedule, Settings


class Comparison:
    """Two builds that are compared."""

    def __init__(self, program: Program, settings: Settings) -> None:
        self.program, self.settings = program, settings
        self.header: Record = {}
        self.facts: List[Record] = []  # machine, kernels, backends, models, results, instructions
        self.rows: List[Row] = []
        self.noise: List[Record] = []
        self.interrupted = 0  # the signal that ended it
        self.begun = time.monotonic()

    def run(self) -> None:
        """Runs it. A signal ends it early."""
        try:
            with interruptible():
                self._compare_results()
                self._compare_code()
                self._compare_times()
        except Interrupted as signalled:
            self.interrupted = signalled.args[0]

    def _compare_results(self) -> None:
        """Runs the process that checks both builds, compares their results, and lists the rows."""
        progress = Progress(" results compared")
        checks: Dict[str, List[Record]] = {"base": [], "head": []}

        def take(record: Record) -> None:
            if record["t"] == "header":
                self.header = record
            elif record["t"] == "planned":
                self.rows.append(Row(record, self.settings.threshold))
            elif record["t"] == "check":
                checks[record["build"]].append(record)
            elif record["t"] not in ("footer", "running"):
                self.facts.append(record)
                if record["t"] == "agreement":
                    progress.step(record["kernel"], record["backend"])

        with progress.line:
            ended = self.program.run(["--part", "results,code"], take)
        if ended.how:
            words = ended.message or f"the results could not be compared: {ended.how}"
            raise CommandError(words, ended.status if ended.message and ended.status > 0 else 2)
        self.facts += compare_builds(checks["base"], checks["head"])

    def _compare_code(self) -> None:
        """Finds out which rows have the same machine code in both builds."""
        builds = self.header["compare"]
        one_file = builds["base"]["sha256"] == builds["head"]["sha256"]
        progress = Progress(" machine code compared")
        with progress.line:
            for row in self.rows:
                progress.step(*row.key)
                try:
                    row.code = {
                        name: builds[name]["sha256"] if one_file else code_digest(builds[name]["path"], entries)
                        for name, entries in row.planned.get("entries", {}).items()
                    }
                except Unknown as unknown:
                    row.code_unknown = str(unknown)

    def _compare_times(self) -> None:
        builds = {name: str(self.header["compare"][name]["sha256"]) for name in ("base", "head")}
        schedule = Schedule(self.program, self.rows, builds, self.settings)
        self.noise = schedule.noise
        schedule.run()
        self.facts += schedule.counts()

    def records(self) -> List[Record]:
        """Returns the records of the comparison, without the footer."""
        finished = [row for row in self.rows if row.samples or not row.timed or not self.interrupted]
        return [{**self.header, "seed": hex(self.settings.seed)}, *self.facts, *(row.record() for row in finished)]

    def footer_members(self) -> Record:
        """Returns what its footer says of the machine."""
        return {"wall_s": time.monotonic() - self.begun, "noise": sum_noise(self.noise)} if self.noise else {}


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
