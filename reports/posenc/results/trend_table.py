"""posenc results trend: histories as tables on a terminal, or as JSON."""

import dataclasses
import json
import math
import os
import sys
from statistics import median
from typing import Any, List, Sequence

from rich.console import Console

from .. import show, units
from ..command import CommandError, Parser, read_text
from ..records import load
from ..terminal import console, table
from .changepoints import LEAST, P
from .trend import History, Series, Wanted, histories

BRIEF = 40  # rows of cases, without --all
SPARKS = 20
HEIGHTS = "▁▂▃▄▅▆▇█"
ASCII_HEIGHTS = "12345678"


def _has_unicode() -> bool:
    """Returns whether the locale has UTF-8. Python writes it in any."""
    name = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    return name.lower().replace("-", "").endswith("utf8")


def sparkline(values: Sequence[float], heights: str = HEIGHTS) -> str:
    """Returns a character for each run, from the least value to the largest.

    They differ by a fifth of the largest at least, so that noise stays low. Of many runs it takes medians.
    """
    n, shown = len(values), min(len(values), SPARKS)
    some = [median(values[at * n // shown : (at + 1) * n // shown]) for at in range(shown)]
    if not some:
        return ""
    room = 0.5 * max(0.0, 0.2 * max(some) - (max(some) - min(some)))
    least, most = min(some) - room, max(some) + room
    places = [(value - least) / (most - least) if most > least else 0.5 for value in some]
    return "".join(heights[int(7.0 * place + 0.5 + 1e-9)] for place in places)


def _print_changes(out: Console, history: History) -> None:
    rows = []
    for series, change in history.changes:
        between = (history.runs[series.points[at].run].name for at in (change.at - 1, change.at))
        rows.append([series.name, series.backend, " and ".join(between), f"{change.before:.2f}", f"{change.after:.2f}",
                     f"{100 * (change.ratio - 1):+.0f} %", "< 0.001" if change.p < P else "0.001"])  # fmt: skip
    if rows:
        out.print("\nChanges of level")
        out.print(table(["case", "backend", "between", ">before", ">after", ">change", ">p"], rows))
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


def _row(series: Series, heights: str) -> List[str]:
    values = [point.value for point in series.points]
    changes = str(len(series.changes)) if len(values) >= LEAST else "-"
    return [series.name, series.backend, sparkline(values, heights), str(len(values)), f"{values[0]:.2f}",
            f"{values[-1]:.2f}", changes]  # fmt: skip


def _print_shares(out: Console, title: str, shares: List[Series], most: int) -> None:
    heights = HEIGHTS if _has_unicode() else ASCII_HEIGHTS
    if shares:
        out.print(f"\n{title}")
        columns = ["case", "backend", "share of roofline", ">runs", ">first", ">last", ">changes"]
        out.print(table(columns, [_row(series, heights) for series in shares[:most]]))
    if len(shares) > most:
        out.print(f"{len(shares) - most} more cases are shown with --all.")


def print_history(out: Console, history: History, all_cases: bool) -> None:
    """Prints the history of a machine."""
    timed = len(history.shares)
    out.print(f"History on {history.machine}, {history.cpu}", style="bold")
    out.print(
        f"{show.many(len(history.runs), 'run')} from {history.runs[0].name} to {history.runs[-1].name}; "
        f"{show.many(timed, 'case')} timed. Shown is the share of the roofline, measured beside each case. "
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


def _commits(path: str) -> List[str]:
    lines = read_text(path, "commits").splitlines()
    found = [line.split()[0] for line in lines if line.split()]
    if not found:
        raise CommandError(
            f"there are no commits (got '{path}'). Expected one a line, as git rev-list --reverse prints."
        )
    return found


def _finite(value: Any) -> Any:
    """Returns JSON without numbers that are not finite, which are strings in records, too."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def main(arguments: List[str]) -> int:
    """Shows histories. Returns the exit code."""
    parser = Parser(
        "posenc results trend",
        "Shows how near each case came to its roofline over many runs, where that changed, and which errors changed.",
        "Runs are in the order of their clocks, or of --commits. The exit code is 0 whatever they show. "
        "Examples: posenc results trend results/*.jsonl --kernel rope_half; "
        "git rev-list --reverse main >commits; posenc results trend *.jsonl --commits commits",
    )
    parser.add_records()
    for name, what in (("kernel", "kernels"), ("backend", "backends or families"), ("case", "cases")):
        parser.add_argument(f"--{name}", metavar="GLOB", action="append", default=[], help=f"only these {what}")
    parser.add_argument("--commits", metavar="FILE", help="commits, oldest first: the order of runs")
    parser.add_argument("--all", action="store_true", help=f"list all cases (default: {BRIEF})")
    parser.add_argument("--json", action="store_true", help="print the histories as JSON")
    args = parser.parse_args(arguments)
    lists = (args.kernel, args.backend, args.case)
    kernels, backends, cases = (",".join(found).split(",") if found else [] for found in lists)
    wanted = Wanted(kernels, backends, cases, _commits(args.commits) if args.commits else [])
    found, notes = histories({show.plain(path): load(path) for path in args.files}, wanted)
    for note in notes:
        print(f"posenc results trend: left out: {note}", file=sys.stderr)
    if args.json:
        print(json.dumps(_finite([dataclasses.asdict(history) for history in found]), indent=1))
        return 0
    out = console()
    for at, history in enumerate(found):
        out.print("\n" * (at > 0), end="")
        print_history(out, history, args.all)
    return 0
