"""Compares two builds: their results exactly, their machine code, and their times by schedule.py."""

import math
import time
from typing import Dict, List, Sequence

from ..command import CommandError
from ..records import Record, number
from .files import compare_builds
from .process import Interrupted, Program, interruptible
from .same_code import Unknown, code_digest
from .schedule import Progress, Row, Schedule, Settings


class Comparison:
    """State and result of a comparison of two builds."""

    def __init__(self, program: Program, settings: Settings) -> None:
        self.program, self.settings = program, settings
        self.header: Record = {}
        self.facts: List[Record] = []  # machine, kernels, backends, models, results, instructions
        self.rows: List[Row] = []
        self.noise: List[Record] = []
        self.interrupted = 0  # number of the signal that ended the comparison; 0 if none did
        self.begun = time.monotonic()

    def run(self) -> None:
        """Runs the comparison. A signal ends it early and keeps the results so far."""
        try:
            with interruptible():
                self._compare_results()
                self._compare_code()
                self._compare_times()
        except Interrupted as signalled:
            self.interrupted = signalled.args[0]

    def _compare_results(self) -> None:
        """Checks both builds in one process, compares their results, and lists the rows to time."""
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
        """Sets the digests of the machine code of each row, or the reason why they are unknown."""
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
        """Returns the members of the footer that describe the machine: duration and noise."""
        return {"wall_s": time.monotonic() - self.begun, "noise": sum_noise(self.noise)} if self.noise else {}


def sum_noise(parts: Sequence[Record]) -> Record:
    """Combines the noise of several processes: sums counts, and averages shares weighted by duration."""
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
