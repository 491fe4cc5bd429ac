"""Compares two builds: their results exactly, their machine code, and their times by a schedule fixed in advance.

main.py runs a Comparison. Its processes are calls of posenc pair, each with both builds:

    first      three processes time every row: rows in caches, then rows in memory
    confirm    two more processes, with new seeds, time each row that is slower or faster
    look       two more processes time each unclear row while there is time, at most twice

verdict.py computes the verdict from the samples.
"""

import math
import random
import time
from dataclasses import dataclass, field
from statistics import median
from typing import Callable, Dict, Iterable, List, NamedTuple, Sequence, Tuple

from ..command import CommandError
from ..engine import Interrupted, Program, interruptible
from ..records import Record, number
from ..terminal import console
from ..verdict import CONFIRMING, LEAST_PROCESSES, LOOKS, DEFAULT_THRESHOLD, Pair, Verdict, judge
from .files import compare_builds
from .same_code import Unknown, code_digest

FIRST_PART, IN_CACHES = 0.7, 0.5  # shares: of the time limit for first processes; of these for rows in caches
COUNTS_PART, COUNTS_S = 0.1, 15.0  # for counting instructions: a share of the time limit, and at most these seconds
LEAST_S = 1e-6  # smallest time limit of a process
SEED_BITS = 53  # JSON holds such seeds exactly
# Members of a planned row that its record repeats.
NAMES = ("kernel", "dtype", "numerics", "stage", "case", "backend", "family", "footprint")


# ---- rows and their schedule ----


class Settings(NamedTuple):
    """Options of a comparison of builds."""

    limit_s: float
    processes: int = LEAST_PROCESSES  # that time each row at first
    seed: int = 0
    threshold: float = DEFAULT_THRESHOLD
    times_same_code: bool = False  # also time rows whose machine code is the same


class Progress:
    """Progress line on stderr, if stderr is a terminal."""

    def __init__(self, notes: str = "") -> None:
        self.total, self.done, self.notes = 0, 0, notes
        self.line = console(stderr=True).status("posenc compare", refresh_per_second=2)

    def step(self, case: str, backend: str) -> None:
        """Counts a result."""
        self.done += 1
        of = f" of {self.total}" if self.total else ""
        self.line.update(f"posenc compare: {self.done}{of}{self.notes}  {backend} {case}")


@dataclass
class Row:
    """A case on one backend: its samples and its verdict."""

    planned: Record  # from posenc pair: names, footprint, and which builds have it
    threshold: float = DEFAULT_THRESHOLD
    samples: List[Record] = field(default_factory=list)  # one for each process
    failure: Record = field(default_factory=dict)  # why it is not timed: which build, how, and a reason
    code: Dict[str, str] = field(default_factory=dict)  # digests of base and head, if both are known
    code_unknown: str = ""  # why they are not
    spent_s: float = 0.0  # duration of its share of processes
    confirming: int = 0  # processes that were run to confirm the verdict
    look: int = 1
    verdict: Verdict = judge(Pair((), ()))

    @property
    def key(self) -> Tuple[str, str]:
        """Case and backend."""
        return self.planned["case"], self.planned["backend"]

    @property
    def same_code(self) -> bool:
        """True if the machine code is known to be the same in both builds."""
        return bool(self.code) and self.code["base"] == self.code["head"]

    @property
    def timed(self) -> bool:
        """True if both builds have the row and neither has failed."""
        return self.planned["builds"] == "both" and not self.failure

    @property
    def flagged(self) -> bool:
        """True if the verdict is slower or faster."""
        return self.verdict.kind in ("slower", "faster")

    def fail(self, who: str, how: str, reason: str) -> None:
        """Records the failure of a build. The row is not timed any more."""
        self.failure = {"reason": f"{who}: {reason}", "failed": {"who": who, "how": how}}

    def _ratios(self, name: str) -> List[List[float]]:
        """Returns ln(head / base), or ln(second copy of base / base) of the control, by process and round."""
        return [list(map(float, process["ratios"][name])) for process in self.samples]

    def judge(self, again: bool = False) -> None:
        """Sets the verdict on the samples so far. `again` is true after processes that confirm or look again."""
        if again and self.flagged:
            self.confirming = CONFIRMING
        elif again:
            self.look += 1
        head, control = self._ratios("head"), self._ratios("control")
        self.verdict = judge(Pair(head, control, self.confirming, self.look, self.threshold, self.same_code))

    def record(self) -> Record:
        """Returns its record."""
        record: Record = {"t": "pair", **{name: self.planned[name] for name in NAMES if name in self.planned}}
        builds, verdict = self.planned["builds"], self.verdict
        if builds != "both":
            record["verdict"] = "new" if builds == "head" else "removed"
            return {**record, "reason": f"only {builds} provides it"}
        if self.failure:
            return {**record, "verdict": "incomparable", **self.failure}
        for name in ("base", "head"):
            times = (number(process, f"{name}.ns") or math.nan for process in self.samples)
            record[name] = {"ns": _to_json(_median(times)), **({"code": self.code[name]} if self.code else {})}
        record.update({"code_unknown": self.code_unknown} if self.code_unknown else {})
        record.update(verdict=verdict.kind, reason=verdict.reason, processes=len(self.samples))
        if not self.samples:
            return record
        record.update(
            ratio=_to_json(verdict.ratio),
            ci={"level": verdict.level, "lo": _to_json(verdict.lo), "hi": _to_json(verdict.hi)},
            process_ratios=[_to_json(math.exp(_median(process))) for process in self._ratios("head")],
            noise_threshold=_to_json(verdict.noise_threshold), threshold=self.threshold,
            confirmed=verdict.confirmed, confirming=self.confirming, look=self.look,
            rounds=sum(map(len, self._ratios("head"))), control_ratio=_to_json(verdict.control_ratio),
            samples={name: [process["ratios"][name] for process in self.samples] for name in ("head", "control")},
        )  # fmt: skip
        if math.isfinite(verdict.more):
            record["more_seconds"] = _to_json(verdict.more * self.spent_s)
        if "roofline" in self.samples[-1]:
            record["roofline"] = self.samples[-1]["roofline"]
        return record


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
        self.seeds = random.Random(settings.seed)  # of processes
        self.outputs_checked = False  # a process of this group of rows has checked all of each output
        self.overhead_s = 0.0  # duration of the last process without its rounds
        self.noise: List[Record] = []  # noise of the machine that each process saw

    def run(self) -> None:
        """Runs all processes."""
        with self.progress.line:
            self._time_all_rows()
            self._repeat_rows()

    # ---- processes ----

    def _time_all_rows(self) -> None:
        """Runs the first processes, and judges all rows."""
        limit_s, processes = self.settings.limit_s, self.settings.processes
        wanted = [row for row in self.rows if row.timed and (self.settings.times_same_code or not row.same_code)]
        caches = [row for row in wanted if row.planned["footprint"]["name"] != "DRAM"]
        memory = [row for row in wanted if row.planned["footprint"]["name"] == "DRAM"]
        self.progress.total = processes * len(wanted)
        self.stop_at = self.begun + limit_s
        for group, part in ((caches, IN_CACHES * FIRST_PART if memory else FIRST_PART), (memory, FIRST_PART)):
            self.outputs_checked, self.overhead_s = False, 0.0
            end = self.begun + part * limit_s
            for left in range(processes, 0, -1):
                if not self._out_of_time():
                    self._run_process(group, max(end - self.clock(), 0.0) / left)
        for row in self.rows:
            if row.timed:
                row.judge()

    def _repeat_rows(self) -> None:
        """Runs further processes for rows to confirm and to look at again, until there are none."""
        self.stop_at = math.inf  # confirmation is not subject to the time limit
        while True:
            left_s = max(self.begun + self.settings.limit_s - self.clock(), 0.0)
            rows = self._rows_to_repeat(left_s)
            if not rows:
                return
            self.progress.notes = f", {len(rows)} again"
            self.progress.total += CONFIRMING * len(rows)
            for _ in range(CONFIRMING):
                self._run_process(rows, left_s / CONFIRMING)
            for row in rows:
                if row.timed:
                    row.judge(again=True)

    def _rows_to_repeat(self, left_s: float) -> List[Row]:
        """Returns the rows to confirm, and the unclear rows for which there is time."""
        chosen = []
        for row in self.rows:
            if row.timed and not row.confirming:
                need_s = CONFIRMING * row.spent_s / max(len(row.samples), 1)
                has_looks = row.verdict.kind == "unclear" and row.look < LOOKS
                if row.flagged or (has_looks and left_s >= max(need_s, LEAST_S)):
                    left_s -= need_s
                    chosen.append(row)
        return chosen

    def _run_process(self, rows: Sequence[Row], slot_s: float) -> None:
        """Times rows in one process, within about `slot_s` seconds. After a crash another process times the rest."""
        left = {row.key: row for row in rows if row.timed}
        timed = list(left.values())
        begin, share_s = self.clock(), max(slot_s - self.overhead_s, 0.0)
        seed, limit = self.seeds.getrandbits(SEED_BITS), f"{max(share_s, LEAST_S):.6f}"
        options = ["--part", "times", "--seed", str(seed), "--time-limit", limit]
        options += ["--rows-only"] if self.outputs_checked else []
        self.outputs_checked = True
        while left and not self._out_of_time():
            before = len(left)
            problem = self._run_pair(options, left)
            if len(left) == before and not self._out_of_time():
                raise CommandError(f"no process could time the pairs: {problem or 'it ended before any'}.")
        took_s = self.clock() - begin
        self.overhead_s = max(took_s - share_s, 0.0)
        for row in timed:
            row.spent_s += took_s / len(timed)

    def _run_pair(self, options: Sequence[str], left: Dict[Tuple[str, str], Row]) -> str:
        """Runs a process and removes rows with a result from `left`. Returns how the process failed, or ""."""
        running: Record = {}

        def finish(record: Record) -> Row:
            self.progress.step(record["case"], record["backend"])
            return left.pop((record["case"], record["backend"]))

        def take(record: Record) -> None:
            nonlocal running
            if record["t"] == "header":
                self._check_builds(record)
            elif record["t"] == "running":
                running = record
            elif record["t"] == "samples" and record["outcome"] == "timed":
                finish(record).samples.append(record)
            elif record["t"] == "samples":
                finish(record).fail(record["who"], record["outcome"], record["reason"])
            elif record["t"] == "footer" and "noise" in record:
                self.noise.append(record["noise"])

        ended = self.program.run(options, take, self._out_of_time, list(left), watched=True)
        if ended.how and (running.get("case"), running.get("backend")) in left:
            who = "base or head" if running["who"] == "rounds" else running["who"]
            finish(running).fail(who, "crashed", ended.how)
        return ended.message or ended.how

    def _check_builds(self, header: Record) -> None:
        """Rejects a process that has loaded another file than the first one."""
        for name, sha256 in self.builds.items():
            if header["compare"][name]["sha256"] != sha256:
                raise CommandError(
                    f"{name} changed while it was compared (got '{header['compare'][name]['path']}'). "
                    "Compare files that stay as they are."
                )

    def _out_of_time(self) -> bool:
        return self.clock() > self.stop_at

    # ---- instructions ----

    def counts(self) -> List[Record]:
        """Counts instructions of calls in both builds: slower and faster rows first, and at least one row."""
        rows = [row for row in self.rows if row.timed and row.samples and not row.same_code]
        rows.sort(key=lambda row: not row.flagged)
        found: List[Record] = []
        if rows:
            limit_s = max(min(COUNTS_PART * self.settings.limit_s, COUNTS_S), LEAST_S)
            options = ["--part", "counts", "--time-limit", f"{limit_s:.6f}"]
            self.program.run(options, found.append, pairs=[row.key for row in rows])
        return [record for record in found if record["t"] == "count"]


def _median(values: Iterable[float]) -> float:
    """Returns the median of values that are not NaN; NaN if there are none."""
    known = [value for value in values if not math.isnan(value)]
    return median(known) if known else math.nan


def _to_json(value: float) -> object:
    """Returns a number as records hold it: ten digits, or one of the strings nan, inf and -inf."""
    return float(f"{value:.10g}") if math.isfinite(value) else str(value)


# ---- the comparison ----


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
        """Times the rows, and counts instructions."""
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
