"""posenc results trend: many runs in their order, as tables on a terminal, or as JSON.

    case                                  backend  share of roofline     runs  first  last  changes
    rope_half/f32/given/llama-3.1-8b-...  avx2     ▂▂▂▂▂▂▂▂▂▂▇▇▇▇▇▇▇▇▇▇    20   0.62  0.71        1

For each case: the share of the roofline, with the changes of its level, and the largest errors, which are compared
exactly. Machines and types of build are never mixed: each has a history of its own.
"""

import json
import math
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from statistics import geometric_mean, median
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

from .. import units
from ..command import CommandError, Parser
from ..ranking import timings
from ..records import Machine, Record, grouped, load, machines, member, number
from ..terminal import Console, console, escape_hidden, table
from . import changepoints
from .changepoints import LEAST, ChangePoint, P

BRIEF = 40  # rows of cases, without --all
SPARKS = 20  # characters of a sparkline, at most
HEIGHTS = "▁▂▃▄▅▆▇█"


class Wanted(NamedTuple):
    """Patterns of the results that are wanted; no patterns mean all."""

    kernels: Sequence[str] = ()
    backends: Sequence[str] = ()  # or families
    cases: Sequence[str] = ()

    def includes(self, record: Record) -> bool:
        """Returns whether a result is wanted."""

        def fits(patterns: Sequence[str], *names: str) -> bool:
            return not patterns or any(fnmatchcase(record[name], glob) for glob in patterns for name in names)

        return fits(self.kernels, "kernel") and fits(self.backends, "backend", "family") and fits(self.cases, "case")


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
    changes: List[ChangePoint] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The case with its threads; of a mean the kernel and the number of cases."""
        threads = f", {self.threads} threads" if self.threads > 1 else ""
        return (self.case or f"{self.kernel}, {self.cases} cases") + threads


@dataclass
class History:
    """The runs of a machine and type of build, in their order."""

    machine: str
    cpu: str
    runs: List[Run]
    shares: List[Series]  # of the roofline, one for each case and backend
    means: List[Series]  # of the shares of a kernel
    errors: List[Series]  # those that changed
    checked: int  # number of series of errors, changed or not

    @property
    def changes(self) -> List[Tuple[Series, ChangePoint]]:
        """Changes of level, the largest first."""
        found = [(series, change) for series in [*self.means, *self.shares] for change in series.changes]
        return sorted(found, key=lambda pair: -abs(math.log(pair[1].after / pair[1].before)))


# ---- runs in their order ----


def _runs(files: Dict[str, List[Record]], wanted: Wanted) -> Iterator[Tuple[Run, Machine]]:
    """Yields each run of each machine that has a result which is wanted."""
    for path, records in files.items():
        for machine in machines(records):
            header, commit = machine.header, str(member(machine.header, "tool.commit") or "")
            if any(map(wanted.includes, [*machine.of("bench"), *machine.of("check")])):
                dirty = member(header, "tool.dirty") is True
                yield Run(path, commit, str(header.get("started") or ""), dirty), machine


def _results(machine: Machine, wanted: Wanted) -> Iterator[Tuple[Series, float]]:
    """Yields the series and the value of each result that is wanted."""
    for row in timings(machine):
        if wanted.includes(row.record) and 0 < (row.share or 0.0) < math.inf:
            yield Series(row.kernel, row.case, row.backend, row.record.get("threads", 1)), row.share or 0.0
    for check in filter(wanted.includes, machine.of("check")):
        metric = member(check, "error.metric")
        if metric:
            series = Series(check["kernel"], check["case"], check["backend"], suite=check["suite"], metric=metric)
            yield series, number(check, "error.max") or 0.0


# ---- histories ----


def _means(shares: List[Series]) -> Iterator[Series]:
    """Yields the geometric mean of each kernel's cases on a backend: of those that were timed in the same runs."""
    for alike in grouped(shares, lambda series: (series.kernel, series.backend, series.threads)).values():
        longest = max(alike, key=lambda series: len(series.points))
        runs = [point.run for point in longest.points]
        complete = [series for series in alike if [point.run for point in series.points] == runs]
        if len(complete) > 1:
            values = zip(*([point.value for point in series.points] for series in complete))
            points = [Point(run, geometric_mean(of_run)) for run, of_run in zip(runs, values)]
            yield replace(longest, case="", cases=len(complete), points=points)


def _history(name: str, runs: List[Tuple[Run, Machine]], wanted: Wanted) -> History:
    """Returns the history of a machine, whose runs are in their order."""
    found: Dict[str, Series] = {}
    for at, (_, machine) in enumerate(runs):
        for series, value in _results(machine, wanted):
            series = found.setdefault(repr(series), series)
            # Errors are kept where they change; NaN is the same as NaN.
            if not series.metric or not series.points or str(series.points[-1].value) != str(value):
                series.points.append(Point(at, value))
    shares = [series for series in found.values() if not series.metric]
    errors = [series for series in found.values() if len(series.points) > 1 and series.metric]
    means = list(_means(shares))
    for series in [*means, *shares]:
        changes = changepoints.find([math.log(point.value) for point in series.points])
        series.changes = [replace(change, before=math.exp(change.before), after=math.exp(change.after))
                          for change in changes]  # fmt: skip
    cpu = str(member(runs[-1][1].env, "cpu.name") or "")
    return History(name, cpu, [run for run, _ in runs], shares, means, errors, len(found) - len(shares))


def _name(machine: Machine) -> str:
    """Returns the name of a history: the machine, and the type of build if it is not release."""
    kind = member(machine.env, "build.type") or "release"
    return f"{machine.env['env_id']}" + ("" if kind == "release" else f", {kind}")


def histories(files: Dict[str, List[Record]], wanted: Wanted = Wanted()) -> List[History]:
    """Returns the history of each machine. `files` has records by path."""
    runs = sorted(_runs(files, wanted), key=lambda pair: (_name(pair[1]), pair[0].started))
    by_name = grouped(runs, lambda pair: _name(pair[1]))
    found = [_history(name, of_name, wanted) for name, of_name in by_name.items()]
    if not any(history.shares or history.checked for history in found):
        raise CommandError("no file has a result of that kernel, backend or case.")
    return found


# ---- tables ----


def sparkline(values: Sequence[float]) -> str:
    """Returns a character for each run, or for the median of several runs: ▂▂▂▇▇ for 0.62, 0.62, 0.62, 0.71, 0.71.

    The scale covers at least a fifth of the largest value, so that noise looks small.
    """
    n, count = len(values), min(len(values), SPARKS)
    shown = [median(values[at * n // count : (at + 1) * n // count]) for at in range(count)]
    margin = 0.5 * max(0.0, 0.2 * max(shown) - (max(shown) - min(shown)))
    least, most = min(shown) - margin, max(shown) + margin
    return "".join(HEIGHTS[int(7.0 * (value - least) / (most - least) + 0.5 + 1e-9)] for value in shown)


def _print_changes(out: Console, history: History) -> None:
    rows = []
    for series, change in history.changes:
        between = (history.runs[series.points[at].run].name for at in (change.at - 1, change.at))
        rows.append([series.name, series.backend, " and ".join(between), f"{change.before:.2f}", f"{change.after:.2f}",
                     f"{100 * (change.after / change.before - 1):+.0f} %"])  # fmt: skip
    if rows:
        out.print(f"\nChanges of level, p {P:g} or less")
        out.print(table(["case", "backend", "between", ">before", ">after", ">change"], rows))
    elif any(len(series.points) >= LEAST for series in history.shares):
        out.print("No change of level was found.")


def _print_errors(out: Console, history: History) -> None:
    if not history.checked:
        return
    if not history.errors:
        out.print(f"The largest errors of all {history.checked} checks are the same in all runs, to the last digit.")
        return
    rows = []
    for series in history.errors:
        for was, now in zip(series.points, series.points[1:]):
            worse = now.value > was.value or math.isnan(now.value)
            rows.append([series.name, series.backend, series.suite, history.runs[now.run].name,
                         units.error(was.value, series.metric), units.error(now.value, series.metric),
                         "worse" if worse else "better"])  # fmt: skip
    out.print(f"\nErrors: {len(history.errors)} of {history.checked} changed, exactly. They need no statistics.")
    out.print(table(["case", "backend", "suite", "since", ">was", ">is", ""], rows))


def _print_shares(out: Console, title: str, shares: List[Series], most: int) -> None:
    rows = []
    for series in shares[:most]:
        values = [point.value for point in series.points]
        changes = str(len(series.changes)) if len(values) >= LEAST else "-"
        rows.append([series.name, series.backend, sparkline(values), str(len(values)), f"{values[0]:.2f}",
                     f"{values[-1]:.2f}", changes])  # fmt: skip
    if shares:
        out.print(f"\n{title}")
        out.print(table(["case", "backend", "share of roofline", ">runs", ">first", ">last", ">changes"], rows))
    if len(shares) > most:
        out.print(f"{len(shares) - most} more cases are shown with --all.")


def print_history(out: Console, history: History, all_cases: bool) -> None:
    """Prints the history of a machine."""
    timed = len(history.shares)
    out.print(f"History on {history.machine}, {history.cpu}", style="bold")
    out.print(
        f"{units.many(len(history.runs), 'run')} from {history.runs[0].name} to {history.runs[-1].name}; "
        f"{units.many(timed, 'case')} timed. Shown is the share of the roofline, measured beside each case. "
        "A trend is no gate: posenc compare judges a change."
    )
    few = sum(len(series.points) < LEAST for series in history.shares)
    if few:
        have = "has" if few == 1 else "have"
        out.print(f"{few} of them {have} fewer than {LEAST} runs: too few for a change of level to show at p {P:g}.")
    _print_changes(out, history)
    _print_errors(out, history)
    _print_shares(out, "Geometric means", history.means, len(history.means))
    _print_shares(out, "Cases", history.shares, timed if all_cases else BRIEF)


# ---- the command ----


def main(arguments: List[str]) -> int:
    """Runs posenc results trend. Returns the exit code."""
    parser = Parser(
        "posenc results trend",
        "Shows how near each case came to its roofline over many runs, where that\nchanged, and which errors changed.",
        "Runs are in the order of their clocks. The exit code is 0 whatever they show.\n\n"
        "Examples\n  posenc results trend results/*.jsonl --kernel rope_half\n"
        "  posenc results trend results/*.jsonl --backend native --all",
    )
    parser.add_records()
    for name, what in (("kernel", "kernels"), ("backend", "backends or families"), ("case", "cases")):
        parser.add_argument(f"--{name}", metavar="GLOB", action="extend", type=lambda text: text.split(","), default=[],
                            help=f"only these {what}")  # fmt: skip
    parser.add_argument("--all", action="store_true", help=f"list all cases (default: {BRIEF})")
    parser.add_argument("--json", action="store_true", help="print the histories as JSON")
    args = parser.parse_args(arguments)
    wanted = Wanted(args.kernel, args.backend, args.case)
    found = histories({escape_hidden(path): load(path) for path in args.files}, wanted)
    if args.json:
        text = json.dumps([asdict(history) for history in found])
        print(json.dumps(json.loads(text, parse_constant=lambda name: str(float(name))), indent=1))  # as in records
        return 0
    out = console()
    for at, history in enumerate(found):
        out.print("\n" * (at > 0), end="")
        print_history(out, history, args.all)
    return 0
