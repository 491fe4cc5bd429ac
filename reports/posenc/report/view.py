"""All that a report shows, as plain data for its templates: machines, their checks and largest errors.

View(records) has a Host for each machine: host.answers, host.cell("rope_half", "avx2").failed, host.errors.of(timing).
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .. import quality, units
from ..ranking import Ranked
from ..records import Machine, Record, grouped, machines, member, number
from ..results import outcome
from .answers import Advice, Answer, answers
from .glossary import METHOD, METHOD_OF_COMPARISONS

RAN = ("pass", "fail", "crash", "inconclusive")  # statuses of checks that ran
METRICS = ("ulp", "pair_ulp", "abs", "exact")  # in the order in which they are shown
WITHIN_1_ULP = {"ulp": 1.0, "exact": 0.0}  # largest errors by metric
RANGE = re.compile(r"p2e(\d+)$")  # the end of the name of a scan of positions below 2^31: .../p2e31


# ---- largest errors: of a kernel on a backend, whole or by range of positions ----


class Worst(NamedTuple):
    """The largest error in one metric."""

    metric: str
    largest: float
    limit: float
    check: Record
    since: int = 0  # the metric applies to positions from 2^since on

    @property
    def text(self) -> str:
        """The error with its unit."""
        return units.error(self.largest, self.metric) + (f" from 2^{self.since}" if self.since else "")

    @property
    def judged(self) -> Tuple[str, str]:
        """The error and its limit, with as many digits as show on which side it lies."""
        return units.error_and_limit(self.largest, self.limit, self.metric)


def worst_in(check: Record) -> Optional[Worst]:
    """Returns the error that a check measured; None if it measured none."""
    metric, largest = member(check, "error.metric"), number(check, "error.max")
    if metric is None or largest is None:
        return None
    return Worst(metric, largest, number(check, "error.limit") or 0.0, check)


def range_end(check: Record) -> int:
    """Returns the exponent at which the range of a scan by position ends; 0 if it has none."""
    found = RANGE.search(check["case"].rpartition("/")[2]) if check["suite"] == "accuracy" else None
    return int(found.group(1)) if found else 0


def worst_of(checks: Sequence[Record]) -> List[Worst]:
    """Returns the largest error in each metric. Equal bits are named only if nothing else is known."""
    by_metric = grouped(filter(None, map(worst_in, checks)), lambda worst: worst.metric)
    found = [max(each, key=lambda worst: (math.isnan(worst.largest), worst.largest)) for each in by_metric.values()]
    if len(found) > 1:
        found = [worst for worst in found if worst.metric != "exact" or worst.largest]
    if len(found) > 1:
        found = [worst._replace(since=_begin_of_metric(checks, worst.metric)) for worst in found]
    return sorted(found, key=lambda worst: METRICS.index(worst.metric) if worst.metric in METRICS else len(METRICS))


def _begin_of_metric(checks: Sequence[Record], metric: str) -> int:
    """Returns where the last range ends before the first that a metric judges."""
    ends = sorted(range_end(check) for check in checks if range_end(check) and member(check, "error.metric") == metric)
    before = [range_end(check) for check in checks if ends and 0 < range_end(check) < ends[0]]
    return max(before, default=0)


def text_of(found: Sequence[Worst]) -> str:
    """Returns largest errors as text."""
    return ", ".join(worst.text for worst in found) or "not measured"


class Errors:
    """The checks of a machine that measured an error."""

    def __init__(self, machine: Machine) -> None:
        measured = (check for check in machine.of("check") if member(check, "error.metric"))
        names = ("kernel", "dtype", "numerics", "backend")
        self._checks = grouped(measured, lambda check: tuple(check[name] for name in names))
        self._found: Dict[Tuple[Any, ...], List[Worst]] = {}

    def of(self, record: Record) -> List[Worst]:
        """Returns the largest errors that belong to a timing."""
        key = (record["kernel"], record["dtype"], record["numerics"], record["backend"])
        scale = record.get("scale", 1.0)
        if (*key, scale) not in self._found:
            checks = [c for c in self._checks.get(key, []) if c.get("scale", 1.0) in (1.0, scale)]
            self._found[(*key, scale)] = worst_of(checks)
        return self._found[(*key, scale)]

    def rows(self) -> List[Tuple[Any, List[Worst]]]:
        """Returns all largest errors by kernel, dtype, numerics mode and backend."""
        return [(key, worst_of(checks)) for key, checks in self._checks.items()]

    def by_range(self, kernel: str, numerics: str, backends: Sequence[str]) -> Optional["ByRange"]:
        """Returns largest f32 errors by range of positions; None if no scan measured them."""
        cells: Dict[str, Dict[int, List[Worst]]] = {}
        for backend in backends:
            scans = filter(range_end, self._checks.get((kernel, "f32", numerics, backend), []))
            cells[backend] = {end: worst_of(found) for end, found in grouped(scans, range_end).items()}
        ends = sorted({end for row in cells.values() for end in row})
        return ByRange(kernel, numerics, ends, {name: row for name, row in cells.items() if row}) if ends else None


@dataclass(frozen=True)
class ByRange:
    """Largest errors of a kernel and numerics mode by backend and range of positions."""

    kernel: str
    numerics: str
    ends: List[int]  # of the ranges, as exponents of 2
    cells: Dict[str, Dict[int, List[Worst]]]  # by backend and end

    def within_ulp_until(self, backend: str) -> str:
        """Returns below which position errors stay within 1 ulp. A range that was not measured ends the claim."""
        reached = 0
        for end in self.ends:
            found = self.cells[backend].get(end, [])
            if not found or not all(worst.largest <= WITHIN_1_ULP.get(worst.metric, -1) for worst in found):
                return f"below 2^{reached}" if reached else "nowhere"
            reached = end
        return "everywhere"


# ---- machines ----


@dataclass
class Cell:
    """Checks of a kernel on a backend, counted by status."""

    counts: Mapping[str, int]

    @property
    def ran(self) -> int:
        """Checks that ran."""
        return sum(self.counts.get(status, 0) for status in RAN)

    @property
    def failed(self) -> int:
        """Checks that failed or crashed."""
        return sum(self.counts.get(status, 0) for status in outcome.FAILED)

    @property
    def passed(self) -> int:
        """Checks that passed, on enough evidence."""
        return self.counts.get("pass", 0)

    @property
    def and_inconclusive(self) -> str:
        """The end of a sentence about the checks: ", 3 inconclusive", or nothing if none is."""
        inconclusive = self.counts.get("inconclusive", 0)
        return f", {units.count(inconclusive)} inconclusive" if inconclusive else ""

    @property
    def kind(self) -> str:
        """One word for it: none, unsupported, crash, fail, inconclusive or pass."""
        if not self.ran:
            return "unsupported" if self.counts else "none"
        return next((kind for kind in ("crash", "fail", "inconclusive") if self.counts.get(kind)), "pass")


class Host:
    """The results of one machine, ready to be shown."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.env = machine, machine.env
        self.name = str(self.env.get("env_id", "unknown machine"))  # CPU and hypervisor
        self.cpu = str(member(self.env, "cpu.name") or self.name)
        self.quality = quality.of_machine(machine)
        self.notes = _notes(machine)
        # Timings, and what to make of them.
        self.ranked, self.errors = Ranked(machine), Errors(machine)
        self.answers = answers(self.ranked)
        timed = [answer for answer in self.answers if answer.best]
        self.advice = Advice(timed) if timed else None
        self.wrong_outputs = outcome.wrong_outputs(machine)
        # Checks. Kernels with failures stand first, backends in the order of the records.
        results = [result for kind in ("check", "bench", "pair", "change") for result in machine.of(kind)]
        named = [str(backend["id"]) for backend in machine.of("backend")]
        self.backends = list(dict.fromkeys(named + [result["backend"] for result in results]))
        self.kernels = sorted(
            dict.fromkeys(result["kernel"] for result in results if result["t"] in ("check", "bench")),
            key=lambda kernel: not any(self.cell(kernel, backend).failed for backend in self.backends),
        )
        self.checked = Cell(Counter(check["status"] for check in machine.of("check")))
        self.failures = outcome.failures(machine)
        tables = [(kernel, mode) for mode in ("exact", "hf_f32") for kernel in ("sinusoidal", "rope_table")]
        ranges = (self.errors.by_range(kernel, mode, self.backends) for kernel, mode in tables)
        self.by_range = [table for table in ranges if table]

    def cell(self, kernel: str, backend: str) -> Cell:
        """Returns the checks of a kernel on a backend."""
        return Cell(self.ranked.counts.get((kernel, backend), {}))


def _notes(machine: Machine) -> List[str]:
    """Returns warnings: disturbances, unofficial vectors, and parts that are missing."""
    unfinished, shard = machine.runs - machine.finished, machine.header.get("shard")
    notes = [quality.warning(machine).replace("**", "").replace("`", ""), quality.emulator(machine)]
    if member(machine.header, "vectors.official") is False:
        notes.append("These are not the official vectors: the checks are as good as the vectors that were given.")
    if unfinished > 0:
        runs = units.many(machine.runs, "run")
        notes.append(f"{unfinished} of {runs} did not finish. Their results until then are shown.")
    elif shard:
        notes.append(f"This is shard {shard['i']} of {shard['n']}: posenc results merge puts shards together.")
    return [note for note in notes if note]


class View:
    """A report: of one machine, or of several."""

    def __init__(self, records: List[Record]) -> None:
        found = machines(records)
        self.records, self.hosts = records, [Host(machine) for machine in found]
        self.checked = Cell(sum((Counter(host.checked.counts) for host in self.hosts), Counter[str]()))
        self.header: Record = next((record for record in records if record["t"] == "header"), {})
        self.pairs, self.changes = outcome.pairs(*found), outcome.changes(*found)
        self.conclusion = outcome.conclusion(records, *found) if "compare" in self.header else ""
        self.method = METHOD_OF_COMPARISONS if self.pairs else METHOD
        names = list(dict.fromkeys(name for host in self.hosts for name in host.backends))
        self.colors = {name: units.color_of(name, names) for name in names}
        # The answers of all machines, by model, step and type, and by machine.
        self.steps: Dict[Tuple[str, str, str], Dict[str, Answer]] = {}
        for host in self.hosts:
            for answer in host.answers:
                key = (answer.step.model["name"], answer.step.name, answer.step.dtype)
                self.steps.setdefault(key, {})[host.name] = answer
