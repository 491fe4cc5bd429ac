"""Ranks the timings of a case: the fastest backend, and the backends that are tied with it.

Reports and exports read records through Ranked and Timing. If avx2 takes 100 ns [98, 102], scalar 101 ns [99, 103] and
libm 800 ns [790, 810], avx2 is the fastest, scalar is tied, and libm takes 8.0× as long.

A timing is noisy if its interval extends more than 10 % to either side, if the A/A control differs by more than 10 %,
or if it is a fifth above the roofline and its interval is wider than 3 %. Noisy timings are shown and not ranked.

The fastest backend has the least median of those that conform and are not noisy. If the whole interval of a noisy
timing lies before that of the fastest, no backend is called fastest. A timing is tied if its interval overlaps that of
the fastest, widened by the difference of the A/A control; so are all timings between the two.
"""

import enum
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from . import units
from .records import Machine, Record, number

WIDEST = 0.10  # interval, to either side, and difference of the A/A control, as shares of the time
BEYOND_ROOFLINE, WIDEST_BEYOND = 1.2, 0.03  # from this share of the roofline on an interval has to be narrower


class Standing(enum.IntEnum):
    """Rank of a timing among the timings of its case."""

    NOT_TIMED = 0
    WRONG = 1
    NOISY = 2
    SLOWER = 3
    TIED = 4
    FASTEST = 5


class Timing:
    """A timing of a case on a backend. Shares and speedups are computed from the rounded numbers that are printed."""

    def __init__(self, record: Record) -> None:
        """`record` is one of kind bench. Times are in nanoseconds."""
        rate, roofline = (float(units.rate(number(record, name) or 0.0)) for name in ("gbps", "roofline.gbps"))
        self.record, self.case, self.backend = record, str(record["case"]), str(record["backend"])
        self.kernel = str(record.get("kernel", ""))
        self.median, self.lo, self.hi = (number(record, name) or 0.0 for name in ("median_ns", "ci.lo", "ci.hi"))
        self.control = abs(number(record, "control_pct") or 0.0) / 100  # difference of the A/A control, as a share
        self.rejected = str(record.get("rejected") or ("" if 0 < self.median < math.inf else "no time recorded"))
        self.share = rate / roofline if roofline > 0 else number(record, "roofline.share")
        self.speedup_libm, self.speedup_autovec = number(record, "speedup_libm"), number(record, "speedup_autovec")
        self.standing = Standing.SLOWER

    @property
    def width(self) -> float:
        """The wider half of the interval, as a share of the median; infinite if there is none."""
        if not (self.lo > 0 and self.hi > 0 and (number(self.record, "ci.level") or 0) > 0):
            return math.inf
        return max(self.hi - self.median, self.median - self.lo) / self.median

    @property
    def noisy(self) -> bool:
        """True if the timing is too noisy to be ranked."""
        beyond = (self.share or 0.0) > BEYOND_ROOFLINE and self.width > WIDEST_BEYOND
        return not self.width <= WIDEST or self.control > WIDEST or beyond

    @property
    def wrong(self) -> bool:
        """True if the output was wrong, so that the backend was not timed."""
        return self.rejected.startswith("wrong: ")

    def reaches(self, other: "Timing") -> bool:
        """Returns whether the interval begins before that of `other` ends, widened by the A/A control."""
        noise = max(self.control, other.control)
        return (self.lo or self.median) <= (other.hi or other.median) * (1 + noise)

    def meets(self, other: "Timing") -> bool:
        """Returns whether the intervals overlap, widened by the A/A control."""
        return self.reaches(other) and other.reaches(self)


def timings(machine: Machine) -> List[Timing]:
    """Returns the timings of a machine, without rejected ones."""
    return [row for row in map(Timing, machine.of("bench")) if not row.rejected]


def _set_speedups(rows: List[Timing]) -> None:
    """Sets speedups over libm and autovec where these were timed in the same case."""
    timed = sorted((row for row in rows if not row.rejected), key=lambda row: -row.median)
    # The fastest of a family comes last, and is kept.
    fastest = {(row.record.get("family", ""), row.record.get("threads", 1)): row.median for row in timed}
    for row in timed:
        time, threads = units.printed_time(row.median), row.record.get("threads", 1)
        plain, vectorised = fastest.get(("libm", threads)), fastest.get(("autovec", threads))
        row.speedup_libm = units.printed_time(plain) / time if plain else row.speedup_libm
        row.speedup_autovec = units.printed_time(vectorised) / time if vectorised else row.speedup_autovec


@dataclass
class Ranking:
    """The timings of a case: the least median first, those that were not timed last."""

    rows: List[Timing]
    fastest: Optional[Timing] = None

    def of(self, backend: str) -> Optional[Timing]:
        """Returns the timing of a backend."""
        return next((row for row in self.rows if row.backend == backend), None)

    def place(self, row: Timing) -> str:
        """Returns the place of a timing in words: fastest, tie, 1.24× as long; noisy, wrong, not timed."""
        if row.standing == Standing.SLOWER:
            return f"{units.times(row.median / self.fastest.median)} as long" if self.fastest else ""
        return "tie" if row.standing == Standing.TIED else row.standing.name.lower().replace("_", " ")


class Ranked:
    """The timings and checks of a machine, by case and by backend."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.counts: Dict[Tuple[str, str], Counter[str]] = defaultdict(Counter)
        for check in machine.of("check"):
            self.counts[check["kernel"], check["backend"]][check["status"]] += 1
        self.cases: Dict[str, Ranking] = {}
        for record in machine.of("bench"):
            self.cases.setdefault(record["case"], Ranking([])).rows.append(Timing(record))
        for ranking in self.cases.values():
            self._rank(ranking)

    def conforms(self, kernel: str, backend: str) -> Optional[bool]:
        """Returns whether no check of a kernel failed on a backend; None if there was none."""
        counts = self.counts.get((kernel, backend), Counter())
        if not any(counts.get(status) for status in ("pass", "fail", "crash", "inconclusive")):
            return None
        return not (counts.get("fail") or counts.get("crash"))

    def default(self, kernel: str) -> str:
        """Returns the backend that runs a kernel if none is named; empty if the records do not say."""
        backends = self.machine.of("backend")
        return next((str(backend["id"]) for backend in backends if kernel in backend.get("default_for", {})), "")

    def _judge_alone(self, row: Timing) -> Standing:
        """Returns the standing of a timing without the others: wrong, not timed, noisy, or else slower."""
        if row.wrong or (not row.rejected and self.conforms(row.kernel, row.backend) is False):
            return Standing.WRONG
        if row.rejected:
            return Standing.NOT_TIMED
        return Standing.NOISY if row.noisy else Standing.SLOWER

    def _rank(self, ranking: Ranking) -> None:
        """Sorts the timings of a case and sets their standings, as the head of this file explains."""
        rows = ranking.rows
        rows.sort(key=lambda row: (bool(row.rejected), row.median))
        _set_speedups(rows)
        for row in rows:
            row.standing = self._judge_alone(row)
        fastest = next((row for row in rows if row.standing == Standing.SLOWER), None)
        if not fastest or any(row.standing == Standing.NOISY and not fastest.reaches(row) for row in rows):
            return
        ranking.fastest = fastest
        last = max(at for at, row in enumerate(rows) if row.standing == Standing.SLOWER and fastest.meets(row))
        for row in rows[: last + 1]:
            if row.standing == Standing.SLOWER:
                row.standing = Standing.TIED
        fastest.standing = Standing.FASTEST
