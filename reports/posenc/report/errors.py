"""Largest errors: of a kernel on a backend, whole or by range of positions."""

import math
import re
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .. import units
from ..records import Machine, Record, grouped, member, number

METRICS = ("ulp", "pair_ulp", "abs", "exact")
WITHIN_1_ULP = {"ulp": 1.0, "exact": 0.0}  # largest errors by metric
RANGE = re.compile(r"p2e(\d+)$")


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
    measured = grouped(filter(None, map(worst_in, checks)), lambda worst: worst.metric)
    found = [max(of, key=lambda worst: (math.isnan(worst.largest), worst.largest)) for of in measured.values()]
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
    ends: List[int]
    cells: Dict[str, Dict[int, List[Worst]]]

    def within_ulp_until(self, backend: str) -> str:
        """Returns below which position errors stay within 1 ulp. A range that was not measured ends the claim."""
        reached = 0
        for end in self.ends:
            found = self.cells[backend].get(end, [])
            if not found or not all(worst.largest <= WITHIN_1_ULP.get(worst.metric, -1) for worst in found):
                return f"below 2^{reached}" if reached else "nowhere"
            reached = end
        return "everywhere"
