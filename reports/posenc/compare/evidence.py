"""The evidence of a verdict: in words, and what each process measured."""

import math
from statistics import median
from typing import Dict, Iterator, List, Sequence

from rich.console import Console
from rich.table import Table

from .. import units
from ..convert import Record
from ..runs import member, number
from ..terminal import table
from ..verdict import Pair, judge

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
        agree, side = verdict.agree, "slower" if up else "faster"
        chance = f" If both were one build, chance would give that once in {3**agree} comparisons."
        yield f"In {agree} of {verdict.processes} processes head was {side} than both copies of base." + (
            chance if agree == verdict.processes < 20 else ""
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
    elif pair.get("code_unknown"):
        yield f"The machine code was not compared: {pair['code_unknown']}."
    if instructions:
        yield f"Instructions per element of head: {instructions}. They explain a time, and do not decide the verdict."
    rule = f": {RULES[pair['verdict']]}" if pair["verdict"] in RULES else ""
    yield f"{word}{rule}" + (f"; {pair['reason']}." if pair.get("reason") else ".")


def _rounds(samples: Sequence[float]) -> List[str]:
    """Returns the median of the rounds of a process in percent, and the range of nine in ten."""
    known = sorted(100 * math.expm1(sample) for sample in samples if math.isfinite(sample))
    if not known:
        return ["-", "-"]
    tail = len(known) // 20
    return [f"{median(known):+.1f} %", f"{known[tail]:+.1f} to {known[-1 - tail]:+.1f}"]


def processes(pair: Record) -> Table:
    """Returns what the processes measured: head against base, and the A/A control."""
    samples = zip(*_samples(pair).values())
    rows = [[str(at), *_rounds(head), *_rounds(control)] for at, (head, control) in enumerate(samples, start=1)]
    return table([">process", ">head", ">nine in ten rounds", ">A/A control", ">nine in ten rounds"], rows)


def explain(pair: Record, word: str, instructions: str, console: Console) -> None:
    """Prints the evidence of the verdict on a pair."""
    console.print(f"{pair['case']} {pair['backend']}")
    for sentence in _sentences(pair, word, instructions):
        console.print(f"  - {sentence}")
    console.print()
    drawn = processes(pair)
    if drawn.row_count:
        console.print(drawn)
        console.print()
