"""The evidence of a verdict: in words, and the rounds of each process as a strip of points."""

import math
from statistics import median
from typing import Callable, Dict, Iterator, List, Sequence

from .. import units
from ..convert import Record
from ..runs import member, number
from ..verdict import Pair, judge

STRIP = 56
SIGNS = " .:ooOOOO@"  # of so many points in a column
RULES = {
    "slower": "all of the interval lies above the noise threshold, and the processes agree",
    "faster": "all of the interval lies below the noise threshold, and the processes agree",
    "same": "all of the interval lies within the threshold, to both sides",
    "identical": "machine code and constants are the same, so the time is that of layout or noise",
    "unclear": "the interval lies neither beyond the noise threshold nor within the threshold, or processes disagree",
}


def _samples(pair: Record) -> Dict[str, List[List[float]]]:
    """Returns ln of ratios by process and round, of head / base and of the A/A control."""
    return {name: [list(map(float, process)) for process in member(pair, f"samples.{name}") or []]
            for name in ("head", "control")}  # fmt: skip


def _timings(pair: Record, ratio: float) -> Iterator[str]:
    """Yields sentences about the times of a pair."""
    up = ratio > 1
    lo, hi = (100 * ((number(pair, f"ci.{end}") or math.nan) - 1) for end in ("lo", "hi"))
    base, head, control, noise = (
        number(pair, path) or 0.0 for path in ("base.ns", "head.ns", "control_ratio", "noise_threshold")
    )
    if base > 0 and head > 0:
        yield f"A call takes {units.time(base)} with base and {units.time(head)} with head."
    yield (
        f"Within rounds head takes {abs(100 * (ratio - 1)):.1f} % {'more' if up else 'less'} time than base. With "
        f"{100 * (number(pair, 'ci.level') or 0.99):g} % confidence the change lies between {lo:+.1f} and {hi:+.1f} %."
    )
    samples = _samples(pair)
    verdict = judge(Pair(samples["head"], samples["control"]))
    if verdict.processes:
        yield (
            f"In {verdict.agree} of {verdict.processes} processes head was {'slower' if up else 'faster'} than both "
            "copies of base."
        ) + (
            f" If both were one build, chance would give that once in {3**verdict.agree} comparisons."
            if verdict.agree == verdict.processes < 20
            else ""
        )
    if control > 0 and noise > 0:
        yield (
            f"A/A control: base was {abs(100 * (control - 1)):.1f} % from its own copy in the same rounds. "
            f"The noise threshold is {100 * noise:.1f} %: a smaller difference shows nothing."
        )


def _sentences(pair: Record, word: str, instructions: str) -> Iterator[str]:
    ratio = number(pair, "ratio") or 0.0
    if ratio > 0:
        yield from _timings(pair, ratio)
    codes = [str(member(pair, f"{side}.code") or "") for side in ("base", "head")]
    if all(codes):
        same = "the same" if codes[0] == codes[1] else "different"
        yield f"The machine code is {same} ({codes[0][:12]}, {codes[1][:12]})."
    if instructions:
        yield f"Instructions per element of head: {instructions}. They explain a time, and do not decide the verdict."
    rule = f": {RULES[pair['verdict']]}" if pair["verdict"] in RULES else ""
    yield f"{word}{rule}" + (f"; {pair['reason']}." if pair.get("reason") else ".")


def strip(pair: Record) -> List[str]:
    """Returns the lines of the strips of a pair; none if the record has no samples.

    The axis, in percent, holds nearly all samples; a sample far off lies at its end. A heavier sign stands for
    more points; | is no difference, ( ) the noise threshold.
    """
    taken = {
        name: [[100 * math.expm1(x) for x in process if abs(x) < 10] for process in processes]
        for name, processes in _samples(pair).items()
    }
    ordered = sorted(value for processes in taken.values() for process in processes for value in process)
    if not ordered:
        return []
    noise = 100 * (number(pair, "noise_threshold") or 0.01)
    ends = [100 * (end - 1) for end in (number(pair, "ci.lo"), number(pair, "ci.hi")) if end and math.isfinite(end)]
    start = min(ordered[len(ordered) // 50], -1.2 * noise, *ends)
    end = max(ordered[-1 - len(ordered) // 50], 1.2 * noise, *ends)
    margin = 0.04 * (end - start)
    start, end = start - margin, end + margin

    def column(value: float) -> int:
        return min(int(min(max((value - start) / (end - start), 0.0), 1.0) * STRIP), STRIP - 1)

    def drawn(values: Sequence[float]) -> str:
        cells = [" "] * STRIP
        cells[column(0.0)], cells[column(-noise)], cells[column(noise)] = "|", "(", ")"
        columns = list(map(column, values))
        for at in columns:
            cells[at] = SIGNS[min(columns.count(at), len(SIGNS) - 1)]
        return "".join(cells)

    lines = [
        f"{name:<7} {at:<2} {drawn(process)} {median(process) if process else math.nan:+.1f} %"
        for name, processes in taken.items()
        for at, process in enumerate(processes, start=1)
        if process or name == "head"
    ]
    left, right = f"{start:+.1f} %", f"{end:+.1f} %"
    return [*lines, " " * 11 + left + right.rjust(STRIP - len(left))]


def explain(pair: Record, word: str, instructions: str, line: Callable[[str], None]) -> None:
    """Prints the evidence of the verdict on a pair."""
    line(f"{pair['case']} {pair['backend']}")
    for sentence in _sentences(pair, word, instructions):
        line(f"  - {sentence}")
    strips = strip(pair)
    if strips:
        line("")
        line("  Each line is a process, each point a round: head against base, then the A/A control.")
        line("  | is no difference, ( ) the noise threshold.")
        for text in strips:
            line(f"  {text}")
    line("")
