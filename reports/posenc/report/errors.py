"""Largest errors: of a kernel on a backend, whole or by range of positions."""

import math
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .. import units
from ..convert import Record
from ..runs import Machine, member, number

METRICS = ("ulp", "pair_ulp", "abs", "exact")
RANGE = re.compile(r"p2e(\d+)$")


@dataclass(frozen=True)
class Worst:
    """The largest error in one metric."""

    metric: str
    largest: float
    limit: float
    check: Record
    since: int = 0  # the metric judges positions from 2^since on

    @property
    def text(self) -> str:
        """The error with its unit."""
        return units.error(self.largest, self.metric) + (f" from 2^{self.since}" if self.since else "")

    @property
    def judged(self) -> Tuple[str, str]:
        """The error and its limit, with as many digits as show on which side it lies."""
        return units.judged(self.largest, self.limit, self.metric)


def worst_in(check: Record) -> Optional[Worst]:
    """Returns the error that a check measured; None if it measured none."""
    error = check.get("error")
    largest = number(error, "max") if error else None
    if not error or largest is None or error.get("metric") is None:
        return None
    return Worst(error["metric"], largest, number(error, "limit") or 0.0, check)


def bits(check: Record) -> int:
    """Returns the exponent at which the range of a scan by position ends; 0 if it has none."""
    found = RANGE.search(check["case"].rpartition("/")[2]) if check["suite"] == "accuracy" else None
    return int(found.group(1)) if found else 0


def worst_of(checks: Sequence[Record]) -> List[Worst]:
    """Returns the largest error in each metric. Equal bits are named only if nothing else is known."""
    largest: Dict[str, Tuple[float, Record]] = {}
    for check in checks:
        worst = worst_in(check)
        if not worst:
            continue
        metric, error, seen = worst.metric, worst.largest, largest.get(worst.metric)
        if seen is None or (not math.isnan(seen[0]) and (math.isnan(error) or error > seen[0])):
            largest[metric] = error, check
    if len(largest) > 1 and largest.get("exact", (1.0,))[0] == 0:
        del largest["exact"]
    order = sorted(largest, key=lambda metric: METRICS.index(metric) if metric in METRICS else len(METRICS))
    return [
        Worst(metric, largest[metric][0], number(largest[metric][1], "error.limit") or 0.0, largest[metric][1],
              _since(checks, metric) if len(largest) > 1 else 0)
        for metric in order
    ]  # fmt: skip


def _since(checks: Sequence[Record], metric: str) -> int:
    """Returns where the last range ends before the first that a metric judges."""
    ends = sorted(bits(check) for check in checks if bits(check) and member(check, "error.metric") == metric)
    before = [bits(check) for check in checks if ends and 0 < bits(check) < ends[0]]
    return max(before, default=0)


def text_of(found: Sequence[Worst]) -> str:
    """Returns largest errors as text."""
    return ", ".join(worst.text for worst in found) or "not measured"


class Errors:
    """The checks of a machine that measured an error."""

    def __init__(self, machine: Machine) -> None:
        self._checks: Dict[Tuple[str, str, str, str], List[Record]] = {}
        self._found: Dict[Tuple[Any, ...], List[Worst]] = {}
        for check in machine.of("check"):
            if member(check, "error.metric"):
                key = (check["kernel"], check["dtype"], check["numerics"], check["backend"])
                self._checks.setdefault(key, []).append(check)

    def of(self, record: Record) -> List[Worst]:
        """Returns the largest errors that belong to a timing."""
        key = (record["kernel"], record["dtype"], record["numerics"], record["backend"])
        scale = record.get("scale", 1.0)
        if (*key, scale) not in self._found:
            checks = [c for c in self._checks.get(key, []) if c.get("scale", 1.0) in (1.0, scale)]
            self._found[(*key, scale)] = worst_of(checks)
        return self._found[(*key, scale)]

    def rows(self) -> List[Tuple[Tuple[str, str, str, str], List[Worst]]]:
        """Returns all largest errors by kernel, dtype, numerics mode and backend."""
        return [(key, worst_of(checks)) for key, checks in self._checks.items()]

    def by_range(self, kernel: str, numerics: str, backends: Sequence[str]) -> Optional["ByRange"]:
        """Returns largest f32 errors by range of positions; None if no scan measured them."""
        ranges: Dict[int, None] = {}
        cells: Dict[str, Dict[int, List[Worst]]] = {}
        for backend in backends:
            checks = self._checks.get((kernel, "f32", numerics, backend), [])
            own: Dict[int, List[Record]] = {}
            for check in checks:
                if bits(check):
                    own.setdefault(bits(check), []).append(check)
            if own:
                ranges.update(dict.fromkeys(own))
                cells[backend] = {end: worst_of(found) for end, found in own.items()}
        return ByRange(kernel, numerics, list(ranges), cells) if ranges else None


@dataclass(frozen=True)
class ByRange:
    """Largest errors of a kernel and numerics mode by backend and range of positions."""

    kernel: str
    numerics: str
    ends: List[int]
    cells: Dict[str, Dict[int, List[Worst]]]

    def exact_until(self, backend: str) -> str:
        """Says up to which position a backend stays within 1 ulp."""
        reached = 0
        for end in self.ends:
            found = self.cells[backend].get(end, [])
            if not all(worst.largest <= {"ulp": 1, "exact": 0}.get(worst.metric, -1) for worst in found):
                return f"below 2^{reached}" if reached else "nowhere"
            reached = end if found else reached
        return "everywhere"
