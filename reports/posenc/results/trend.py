"""Many runs in their order: the share of the roofline of each case, with the changes of its level, and largest errors.

Machines and types of build are never mixed: each has a history of its own. Errors are compared exactly.
"""

import math
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from ..command import CommandError
from ..convert import Record
from ..ranking import timings
from ..runs import Machine, machines, member, number
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

        def matches(patterns: Sequence[str], *names: str) -> bool:
            found = any(fnmatchcase(str(record.get(name, "")), pattern) for pattern in patterns for name in names)
            return not patterns or found

        return (
            matches(self.kernels, "kernel")
            and matches(self.backends, "backend", "family")
            and matches(self.cases, "case")
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

    @property
    def kind(self) -> Tuple[str, str, int]:
        """What means are of."""
        return self.kernel, self.backend, self.threads


@dataclass
class History:
    """The runs of a machine and type of build, in their order."""

    machine: str
    cpu: str
    runs: List[Run] = field(default_factory=list)
    shares: List[Series] = field(default_factory=list)
    means: List[Series] = field(default_factory=list)
    errors: List[Series] = field(default_factory=list)  # those that changed
    checked: int = 0  # errors in all

    @property
    def changes(self) -> List[Tuple[Series, Change]]:
        """Changes of level, the largest first."""
        found = [(series, change) for series in [*self.means, *self.shares] for change in series.changes]
        return sorted(found, key=lambda one: -abs(math.log(one[1].ratio)))


# ---- runs in their order ----


class _LeftOut(Exception):
    """A run that belongs to no history, and why."""


@dataclass(frozen=True)
class _Moment:
    """A run on a machine, by what orders it."""

    group: str
    place: int  # of its commit in the list
    run: Run
    machine: Machine


def _place(commit: str, commits: Sequence[str]) -> Optional[int]:
    """Returns the place of a commit in a list, by as many digits as both have."""
    for at, one in enumerate(commits):
        digits = min(len(one), len(commit))
        if digits >= 7 and one[:digits] == commit[:digits]:
            return at
    return None


def _moment(path: str, machine: Machine, wanted: Wanted) -> _Moment:
    """Returns the place of a run among others, or raises _LeftOut."""
    header, kind = machine.header, str(member(machine.env, "build.type") or "release")
    commit = str(member(header, "tool.commit") or "")
    place = _place(commit, wanted.commits) if wanted.commits else 0
    if place is None:
        raise _LeftOut("its commit is not in the list")
    if not any(map(wanted.includes, [*machine.of("bench"), *machine.of("check")])):
        raise _LeftOut("it has no result that is wanted")
    group = f"{machine.env.get('env_id', '')}{'' if kind == 'release' else f', {kind}'}"
    run = Run(path, commit, str(header.get("started") or ""), member(header, "tool.dirty") is True)
    return _Moment(group, place, run, machine)


# ---- series ----


def _written(value: float) -> float:
    """Returns a number with the digits that records have."""
    return float(f"{value:.10g}")


def _results(machine: Machine, wanted: Wanted) -> Iterator[Tuple[Series, float]]:
    """Yields the series and the value of each result that is wanted."""
    for row in timings(machine):
        if wanted.includes(row.record) and 0 < (row.share or 0.0) < math.inf:
            yield Series(row.kernel, row.case, row.backend, int(number(row.record, "threads") or 1)), row.share or 0.0
    for check in filter(wanted.includes, machine.of("check")):
        metric = member(check, "error.metric")
        if metric:
            of = {"suite": check.get("suite", ""), "metric": metric}
            yield Series(check.get("kernel", ""), check["case"], check["backend"], **of), number(
                check, "error.max"
            ) or 0.0


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def _find_changes(series: Series) -> None:
    found = changepoints.find([math.log(point.value) for point in series.points])
    series.changes = [Change(one.at, math.exp(one.before), math.exp(one.after), one.p) for one in found]


def _means(shares: List[Series]) -> Iterator[Series]:
    """Yields the geometric mean of each kernel's cases on a backend: of those that were timed in the same runs."""
    kinds: Dict[Tuple[str, str, int], List[Series]] = {}
    for series in shares:
        kinds.setdefault(series.kind, []).append(series)
    for alike in kinds.values():
        longest = max(alike, key=lambda series: len(series.points))
        runs = [point.run for point in longest.points]
        values = [[point.value for point in one.points] for one in alike if [point.run for point in one.points] == runs]
        if len(values) > 1:
            means = [math.exp(sum(map(math.log, of_run)) / len(values)) for of_run in zip(*values)]
            points = [Point(run, _written(mean)) for run, mean in zip(runs, means)]
            yield replace(longest, case="", cases=len(values), points=points)


def _history(moments: List[_Moment], wanted: Wanted) -> History:
    last = moments[-1]
    history = History(last.group, str(member(last.machine.env, "cpu.name") or ""), [one.run for one in moments])
    found: Dict[Tuple[str, ...], Series] = {}
    for run, moment in enumerate(moments):
        for series, value in _results(moment.machine, wanted):
            key = (series.kernel, series.case, series.backend, str(series.threads), series.suite, series.metric)
            series = found.setdefault(key, series)
            value = _written(value)
            if not series.metric or not series.points or not _same(series.points[-1].value, value):
                series.points.append(Point(run, value))
    history.shares = [series for series in found.values() if not series.metric]
    history.means = list(_means(history.shares))
    history.checked = len(found) - len(history.shares)
    history.errors = [series for series in found.values() if series.metric and len(series.points) > 1]
    for series in [*history.means, *history.shares]:
        _find_changes(series)
    return history


def histories(files: Dict[str, List[Record]], wanted: Wanted = Wanted()) -> Tuple[List[History], List[str]]:
    """Returns the history of each machine in files of records by their paths, and notes on what is left out."""
    groups: Dict[str, List[_Moment]] = {}
    notes = []
    for path, records in files.items():
        for machine in machines(records):
            try:
                moment = _moment(path, machine, wanted)
            except _LeftOut as why:
                notes.append(f"{path}: {why}")
            else:
                groups.setdefault(moment.group, []).append(moment)
    ordered = [sorted(groups[name], key=lambda one: (one.place, one.run.started)) for name in sorted(groups)]
    found = [_history(moments, wanted) for moments in ordered]
    if not any(history.shares or history.checked for history in found):
        raise CommandError("no file has a result of that kernel, backend or case.")
    return found, notes
