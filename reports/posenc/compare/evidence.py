"""The evidence of a verdict: in words, and the rounds of each process as a strip of points."""

import math
from statistics import median
from typing import Callable, List, Sequence, Tuple

from .. import units
from ..convert import Record
from ..runs import member, number

STRIP = 56
SIGNS = ((1, "."), (2, ":"), (4, "o"), (8, "O"))  # of so many points in a column at most
RULES = {
    "slower": "all of the interval lies above the noise threshold, and the processes agree",
    "faster": "all of the interval lies below the noise threshold, and the processes agree",
    "same": "all of the interval lies within the threshold, to both sides",
    "identical": "machine code and constants are the same, so the time is that of layout or noise",
    "unclear": "the interval lies neither beyond the noise threshold nor within the threshold, or processes disagree",
}


def _finite(values: Sequence[object]) -> List[float]:
    return [float(value) for value in values if isinstance(value, (int, float)) and math.isfinite(value)]


def _median(values: Sequence[float]) -> float:
    return median(values) if values else math.nan


def _agree(pair: Record, up: bool) -> Tuple[int, int]:
    """Returns in how many processes head was on its side of both copies of base, and how many there are."""
    agree = known = 0
    for head, control in zip(member(pair, "samples.head") or [], member(pair, "samples.control") or []):
        both = [(h, c) for h, c in zip(head, control) if len(_finite([h, c])) == 2]
        first, second = _median(_finite(head)), _median([h - c for h, c in both])
        if math.isnan(first) or math.isnan(second):
            continue
        known += 1
        agree += first > 0 and second > 0 if up else first < 0 and second < 0
    return agree, known


def _sentences(pair: Record, word: str, instructions: str) -> List[str]:
    said = []
    base, head, ratio = (number(pair, path) or 0.0 for path in ("base.ns", "head.ns", "ratio"))
    if ratio > 0:
        up = ratio > 1
        lo, hi = (100 * ((number(pair, f"ci.{end}") or math.nan) - 1) for end in ("lo", "hi"))
        level = 100 * (number(pair, "ci.level") or 0.99)
        if base > 0 and head > 0:
            said.append(f"A call takes {units.time(base)} with base and {units.time(head)} with head.")
        said.append(
            f"Within rounds head takes {abs(100 * (ratio - 1)):.1f} % {'more' if up else 'less'} time than base. "
            f"With {level:g} % confidence the change lies between {lo:+.1f} and {hi:+.1f} %."
        )
        agree, known = _agree(pair, up)
        if known:
            often = f" If both were one build, chance would give that once in {3**agree} comparisons."
            chance = often if agree == known < 20 else ""
            side = "slower" if up else "faster"
            said.append(f"In {agree} of {known} processes head was {side} than both copies of base.{chance}")
        control, noise = (number(pair, path) or 0.0 for path in ("control_ratio", "noise_threshold"))
        if control > 0 and noise > 0:
            said.append(
                f"A/A control: base was {abs(100 * (control - 1)):.1f} % from its own copy in the same rounds. "
                f"The noise threshold is {100 * noise:.1f} %: a smaller difference shows nothing."
            )
    codes = [str(member(pair, f"{side}.code") or "") for side in ("base", "head")]
    if all(codes):
        same = "the same" if codes[0] == codes[1] else "different"
        said.append(f"The machine code is {same} ({codes[0][:12]}, {codes[1][:12]}).")
    if instructions:
        said.append(
            f"Instructions per element of head: {instructions}. They explain a time, and do not decide the verdict."
        )
    rule = f": {RULES[pair['verdict']]}" if pair["verdict"] in RULES else ""
    said.append(f"{word}{rule}" + (f"; {pair['reason']}." if pair.get("reason") else "."))
    return said


class _Axis:
    """An axis in percent that holds nearly all samples; a sample far off lies at its end."""

    def __init__(self, pair: Record, samples: Sequence[float]) -> None:
        ordered = sorted(samples)
        noise = 100 * (number(pair, "noise_threshold") or 0.01)
        start, end = ordered[len(ordered) // 50], ordered[-1 - len(ordered) // 50]
        start, end = min(start, -1.2 * noise), max(end, 1.2 * noise)
        lo, hi = number(pair, "ci.lo"), number(pair, "ci.hi")
        if lo is not None and hi is not None and not math.isnan(lo):
            start, end = min(start, 100 * (lo - 1)), max(end, 100 * (hi - 1))
        room = 0.04 * (end - start)
        self.start, self.end, self.noise = start - room, end + room, noise

    def column(self, value: float) -> int:
        share = (value - self.start) / (self.end - self.start)
        return min(int(min(max(share, 0.0), 1.0) * STRIP), STRIP - 1)

    def line(self, values: Sequence[float]) -> str:
        """Returns a strip: a heavier sign for more points; | is no difference, ( ) the noise threshold."""
        cells = [" "] * STRIP
        cells[self.column(0.0)] = "|"
        cells[self.column(-self.noise)], cells[self.column(self.noise)] = "(", ")"
        columns = [self.column(value) for value in values]
        for column in set(columns):
            points = columns.count(column)
            cells[column] = (
                "." if points == 1 else ":" if points == 2 else "o" if points <= 4 else "O" if points <= 8 else "@"
            )
        return "".join(cells)

    def ends(self) -> str:
        left, right = f"{self.start:+.1f} %", f"{self.end:+.1f} %"
        return left + right.rjust(STRIP - len(left))


def strip(pair: Record) -> List[str]:
    """Returns the lines of the strips of a pair; none if the record has no samples."""
    taken = {
        name: [
            [100 * math.expm1(x) for x in _finite(process) if abs(x) < 10]
            for process in member(pair, f"samples.{name}") or []
        ]
        for name in ("head", "control")
    }
    samples = [value for processes in taken.values() for process in processes for value in process]
    if not samples:
        return []
    axis = _Axis(pair, samples)
    lines = [
        f"{name:<7} {at:<2} {axis.line(process)} {_median(process):+.1f} %"
        for name, processes in taken.items()
        for at, process in enumerate(processes, start=1)
        if process or name == "head"
    ]
    return [*lines, " " * 11 + axis.ends()]


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
