"""Many runs in their order: the share of the roofline of each case, with the changes of its level, and largest errors.

Machines and types of build are never mixed: each has a history of its own. Errors are compared exactly.
"""

import math
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from statistics import geometric_mean
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..command import CommandError
from ..convert import Record
from ..ranking import timings
from ..runs import Machine, grouped, machines, member, number
from . import changepoints


@dataclass(frozen=True)
class Wanted:
    """Patterns of the results that are wanted; of none, all are. Commits are the order of runs, oldest first."""

    kernels: Sequence[str] = ()
    backends: Sequence[str] = ()  # or families
    cases: Sequence[str] = ()
    commits: Sequence[str] = ()

    def includes(self, record: Record) -> bool:
        """Returns whether a result is wanted."""
        wanted = ((self.kernels, ("kernel",)), (self.backends, ("backend", "family")), (self.cases, ("case",)))
        return all(
            not patterns or any(fnmatchcase(str(record.get(name, "")), one) for one in patterns for name in names)
            for patterns, names in wanted
        )


@dataclass(frozen=True)
class Run:
    """A run of a machine."""

    path: str
    commit: str
    started: str
    dirty: bool

    @property
    def name(self) -> str:
        """Its commit, with + if it had changes that were not committed; else its day."""
        return self.commit[:7] + ("+" if self.dirty else "") if self.commit else self.started[:10] or "not known"


@dataclass(frozen=True)
class Point:
    """A value in a run, by the number of that run in the history."""

    run: int
    value: float


@dataclass(frozen=True)
class Change:
    """A change of level: the first point of the new one, and both medians."""

    at: int
    before: float
    after: float
    p: float

    @property
    def ratio(self) -> float:
        return self.after / self.before


@dataclass
class Series:
    """Values of a case on a backend, run by run: shares of the roofline, or largest errors where they changed."""

    kernel: str
    case: str  # empty: the geometric mean of several
    backend: str
    threads: int = 1
    cases: int = 1  # of a mean
    suite: str = ""  # of errors
    metric: str = ""
    points: List[Point] = field(default_factory=list)
    changes: List[Change] = field(default_factory=list)

    @property
    def name(self) -> str:
        threads = f", {self.threads} threads" if self.threads > 1 else ""
        return (self.case or f"{self.kernel}, {self.cases} cases") + threads


@dataclass
class History:
    """The runs of a machine and type of build, in their order."""

    machine: str
    cpu: str
    runs: List[Run]
    shares: List[Series]
    means: List[Series]
    errors: List[Series]  # those that changed
    checked: int  # errors in all

    @property
    def changes(self) -> List[Tuple[Series, Change]]:
        """Changes of level, the largest first."""
        found = [(series, change) for series in [*self.means, *self.shares] for change in series.changes]
        return sorted(found, key=lambda one: -abs(math.log(one[1].ratio)))


# ---- runs in their order ----


class _Moment(NamedTuple):
    """A run on a machine."""

    place: int  # of its commit in the list
    run: Run
    cpu: str
    results: List[Tuple[Series, float]]


def _written(value: float) -> float:
    """Returns a number with the digits that records have."""
    return float(f"{value:.10g}")


def _place(commit: str, commits: Sequence[str]) -> Optional[int]:
    """Returns the place of a commit in a list, by as many digits as both have; None if it is not there."""
    for at, one in enumerate(commits):
        digits = min(len(one), len(commit))
        if digits >= 7 and one[:digits] == commit[:digits]:
            return at
    return None if commits else 0


def _results(machine: Machine, wanted: Wanted) -> Iterator[Tuple[Series, float]]:
    """Yields the series and the value of each result that is wanted."""
    for row in timings(machine):
        share = row.share or 0.0
        if wanted.includes(row.record) and 0 < share < math.inf:
            threads = int(number(row.record, "threads") or 1)
            yield Series(row.kernel, row.case, row.backend, threads), _written(share)
    for check in filter(wanted.includes, machine.of("check")):
        metric, suite = member(check, "error.metric"), check.get("suite", "")
        if metric:
            largest = _written(number(check, "error.max") or 0.0)
            yield Series(check.get("kernel", ""), check["case"], check["backend"], suite=suite, metric=metric), largest


def _moments(files: Dict[str, List[Record]], wanted: Wanted, notes: List[str]) -> Iterator[Tuple[str, _Moment]]:
    """Yields each run with its machine and type of build; what is left out is noted."""
    for path, records in files.items():
        for machine in machines(records):
            header, kind = machine.header, str(member(machine.env, "build.type") or "release")
            commit = str(member(header, "tool.commit") or "")
            run = Run(path, commit, str(header.get("started") or ""), member(header, "tool.dirty") is True)
            place = _place(commit, wanted.commits)
            if place is None:
                notes.append(f"{path}: its commit is not in the list")
            elif not any(map(wanted.includes, [*machine.of("bench"), *machine.of("check")])):
                notes.append(f"{path}: it has no result that is wanted")
            else:
                cpu, name = str(member(machine.env, "cpu.name") or ""), str(machine.env.get("env_id", ""))
                moment = _Moment(place, run, cpu, list(_results(machine, wanted)))
                yield name if kind == "release" else f"{name}, {kind}", moment


# ---- histories ----


def _means(shares: List[Series]) -> Iterator[Series]:
    """Yields the geometric mean of each kernel's cases on a backend: of those that were timed in the same runs."""
    for alike in grouped(shares, lambda series: (series.kernel, series.backend, series.threads)).values():
        longest = max(alike, key=lambda series: len(series.points))
        runs = [point.run for point in longest.points]
        values = [[point.value for point in one.points] for one in alike if [point.run for point in one.points] == runs]
        if len(values) > 1:
            means = map(geometric_mean, zip(*values))
            points = [Point(run, _written(mean)) for run, mean in zip(runs, means)]
            yield replace(longest, case="", cases=len(values), points=points)


def _history(machine: str, moments: List[_Moment]) -> History:
    found: Dict[Tuple[str, ...], Series] = {}
    for run, moment in enumerate(moments):
        for series, value in moment.results:
            key = (series.kernel, series.case, series.backend, str(series.threads), series.suite, series.metric)
            series = found.setdefault(key, series)
            # Errors are kept where they change; NaN is the same as NaN.
            if not series.metric or not series.points or str(series.points[-1].value) != str(value):
                series.points.append(Point(run, value))
    shares = [series for series in found.values() if not series.metric]
    errors = [series for series in found.values() if len(series.points) > 1 and series.metric]
    means = list(_means(shares))
    for series in [*means, *shares]:
        changes = changepoints.find([math.log(point.value) for point in series.points])
        series.changes = [Change(one.at, math.exp(one.before), math.exp(one.after), one.p) for one in changes]
    runs = [moment.run for moment in moments]
    return History(machine, moments[-1].cpu, runs, shares, means, errors, len(found) - len(shares))


def histories(files: Dict[str, List[Record]], wanted: Wanted = Wanted()) -> Tuple[List[History], List[str]]:
    """Returns the history of each machine in files of records by their paths, and notes on what is left out."""
    notes: List[str] = []
    groups = grouped(_moments(files, wanted, notes), lambda one: one[0])
    found = []
    for machine in sorted(groups):
        moments = [moment for _, moment in groups[machine]]
        found.append(_history(machine, sorted(moments, key=lambda moment: (moment.place, moment.run.started))))
    if not any(history.shares or history.checked for history in found):
        raise CommandError("no file has a result of that kernel, backend or case.")
    return found, notes
