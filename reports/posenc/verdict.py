"""The verdict on one case of two builds: slower, faster, same or unclear. docs/verdicts.md explains the rule.

compare/builds.py calls judge(). If head takes 1.08 times as long in each of 20 rounds of three processes, the verdict
is "slower", ratio 1.08, "at or over the threshold of 3 %; 3/3 processes; not confirmed yet".

Each round of each process times three copies: head, base, and a second copy of base, the A/A control. Processes are
the samples, not rounds, as the rounds of one process share its memory layout and the state of the machine. A process
gives two numbers, in logarithms:

    y = the mean of  median ln(head / base)  and  median ln(head / second copy)
    z = median ln(second copy / base)

If head is base, the three copies are exchangeable: y and z are centred on 0 and uncorrelated, var y / var z is
3/4, and head is slower than both copies in a third of the processes.

    noise threshold  the largest of 1 %, twice |median z| and the bound that four in five |z| stay below
    interval         the wider of two: Student's of the mean of y, with the variance that y and z share, and the
                     distribution-free one of the median of all ln(head / base); 99 %, later looks 99.5 %
    agreement        head is slower than both copies in every process, of five or more in 80 %
    SLOWER           three processes at least, the interval above the noise threshold, agreement
    FASTER           its mirror image
    SAME             the interval within the threshold of the gate, to both sides
    UNCLEAR          all else
"""

import math
from functools import lru_cache
from statistics import median
from typing import List, NamedTuple, Optional, Sequence

LEAST_PROCESSES = 3  # needed for SLOWER and FASTER
CONFIRMING = 2  # further processes that confirm SLOWER or FASTER
LOOKS = 3  # most looks at an unclear row

LEAST_NOISE, DEFAULT_THRESHOLD = 0.01, 0.03  # ratios less 1
AGREEING_SHARE = 0.8  # of five processes or more
FIRST_LEVEL, LATER_LEVEL = 0.99, 0.995  # of intervals, at the first look and at later ones
# Variances of y and z in units of that of one copy in one process: y is a copy less the mean of two, z the
# difference of two.
Y_UNITS, Z_UNITS = 1.5, 2.0
MOST_TIMES = 1000.0  # larger multiples of the processes count as never

NAN = float("nan")


class Pair(NamedTuple):
    """Timings of a case: ln of ratios by process and round. NaN: not taken."""

    head: Sequence[Sequence[float]]  # ln(head / base)
    control: Sequence[Sequence[float]]  # ln(second copy of base / base)
    confirming: int = 0  # number of last processes that were run to confirm a verdict
    look: int = 1  # number of the look; from the second on, intervals are wider
    threshold: float = DEFAULT_THRESHOLD  # smallest ratio - 1 that fails a gate; smaller differences are SAME
    same_code: bool = False


class Verdict(NamedTuple):
    """A verdict. Its members have the names of the record of a pair."""

    kind: str  # slower, faster, same, unclear or identical
    reason: str
    level: float  # of the interval
    ratio: float = NAN  # head / base, with its interval
    lo: float = NAN
    hi: float = NAN
    noise_threshold: float = LEAST_NOISE
    control_ratio: float = NAN
    processes: int = 0  # processes with samples of both builds
    agree: int = 0  # processes in which head was slower (or faster) than both copies of base
    confirmed: bool = False
    more: float = 0.0  # further processes needed, as a multiple of those so far; NaN if no number suffices


# ---- statistics ----


def _without_nan(samples: Sequence[float]) -> List[float]:
    """Returns the samples that were taken, in order."""
    return sorted(sample for sample in samples if not math.isnan(sample))


@lru_cache(maxsize=None)
def coverage(n: int, k: int) -> float:
    """Returns how surely the k-th smallest and the k-th largest of n samples enclose the median."""
    return max(1.0 - sum(math.comb(n, i) for i in range(k)) / (1 << (n - 1)), 0.0)


def median_interval(samples: Sequence[float], level: float) -> "tuple[float, float]":
    """Returns an interval of the median by order statistics: of all samples if these are too few for the level."""
    ordered = _without_nan(samples)
    k = 0
    while k + 1 <= (len(ordered) + 1) // 2 and coverage(len(ordered), k + 1) >= level:
        k += 1
    k = max(k, 1)
    return ordered[k - 1], ordered[-k]


def _student_within(angle: float, degrees: int) -> float:
    """Returns the probability of |t| < sqrt(degrees) tan(angle) (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    cosine, odd = math.cos(angle), degrees % 2 == 1
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for i in range(2 if odd else 1, degrees - 1, 2):
        term *= cosine * cosine * i / (i + 1.0)
        total += term
    return 2.0 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total


@lru_cache(maxsize=None)
def student(level: float, degrees: int) -> float:
    """Returns t such that |t| stays below it with that probability."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _student_within(middle, degrees) < level else (low, middle)
    return math.sqrt(degrees) * math.tan(0.5 * (low + high))


def half_width(level: float, variance: float, processes: float) -> float:
    """Returns half of Student's interval of the mean of y."""
    return student(level, int(min(2.0 * processes - 1.0, 1e3))) * math.sqrt(Y_UNITS * variance / processes)


# ---- the rule ----


class _Process(NamedTuple):
    """Result of one process: y and z as at the head of this file."""

    y: float
    z: float
    side: int  # 1: head is slower than both copies of base; -1: faster than both; else 0
    confirms: bool  # it was run to confirm a verdict


class _Evidence(NamedTuple):
    """Statistics of all processes of a pair, in logarithms, apart from `noise`."""

    processes: int
    agree: int  # processes in which head is on the side of the mean
    level: float
    mean: float  # of y, with its interval
    lo: float
    hi: float
    noise: float  # the noise threshold, a ratio less 1
    variance: float  # of one copy in one process

    @property
    def side(self) -> int:
        """1 if head is slower, -1 if it is faster, 0 if neither is sure."""
        limit = math.log1p(self.noise)
        if self.processes < LEAST_PROCESSES or self.agree < _most_of(self.processes):
            return 0
        return 1 if self.lo > limit else -1 if self.hi < -limit else 0


def _summarize_process(pair: Pair, at: int) -> Optional[_Process]:
    """Returns the result of process `at`; None if it has not timed all copies."""
    by_first = _without_nan(pair.head[at])  # ln(head / base)
    by_second = _without_nan([head - control for head, control in zip(pair.head[at], pair.control[at])])
    control = _without_nan(pair.control[at])
    if not by_first or not by_second or not control:
        return None
    first, second = median(by_first), median(by_second)
    side = 1 if min(first, second) > 0 else -1 if max(first, second) < 0 else 0
    return _Process(0.5 * (first + second), median(control), side, at + pair.confirming >= len(pair.head))


def _most_of(n: int) -> int:
    """Returns the least number that is 80 % of n or more: all of four."""
    return math.ceil(AGREEING_SHARE * n - 1e-9)


def _gather_evidence(pair: Pair, processes: Sequence[_Process], level: float) -> _Evidence:
    """Computes the statistics that the head of this file defines."""
    n = len(processes)
    mean = sum(process.y for process in processes) / n
    spread = sum((process.y - mean) ** 2 / Y_UNITS + process.z**2 / Z_UNITS for process in processes)
    variance = spread / (2 * n - 1)
    half = half_width(level, variance, n)
    low, high = median_interval([ratio for process in pair.head for ratio in process], level)
    distances = sorted(abs(process.z) for process in processes)
    noise = max(2.0 * abs(median(process.z for process in processes)), distances[_most_of(n) - 1])
    noise = max(LEAST_NOISE, math.expm1(noise))
    agree = sum(process.side == (1 if mean > 0 else -1) for process in processes)
    return _Evidence(n, agree, level, mean, min(mean - half, low), max(mean + half, high), noise, variance)


def _more_needed(seen: _Evidence, threshold: float) -> float:
    """Returns how many times the processes so far have to be added until the interval settles it; NaN: none."""
    if seen.processes < LEAST_PROCESSES:
        return LEAST_PROCESSES / seen.processes - 1
    room = max(abs(seen.mean) - math.log1p(seen.noise), math.log1p(threshold) - abs(seen.mean))
    width_of_rounds, times = max(seen.hi - seen.mean, seen.mean - seen.lo), 1.25
    if room <= 0:
        return NAN
    while times < MOST_TIMES:
        width = half_width(seen.level, seen.variance, seen.processes * times)
        if max(width, width_of_rounds / math.sqrt(times)) <= room:
            return times - 1.0
        times *= 1.125
    return NAN


def _unclear_reason(seen: _Evidence, threshold: float, more: float) -> str:
    """Returns why no verdict is sure, and how many processes would change that."""
    is_up = seen.mean > 0
    beyond = seen.lo if is_up else -seen.hi
    if seen.processes < LEAST_PROCESSES:
        return f"{seen.processes} process{'' if seen.processes == 1 else 'es'}; {LEAST_PROCESSES} are the least"
    if beyond > math.log1p(seen.noise):
        word = "slower" if is_up else "faster"
        return f"processes disagree: {word} than both copies in {seen.agree}/{seen.processes}"
    if seen.noise > LEAST_NOISE and beyond > math.log1p(LEAST_NOISE):
        return f"within noise: base differs from its own copy by up to {100 * seen.noise:.1f} %"
    half = 100 * math.expm1(max(seen.hi - seen.mean, seen.mean - seen.lo))
    wide = f"±{half:.1f} %" if half < 100 else "wider than the time itself"
    times = 1 + more
    if math.isnan(times):
        return f"noisy: {wide}; it takes a quieter machine to settle {100 * threshold:.3g} %"
    many = f"{times:.{1 if times < 10 else 0}f}"
    return f"noisy: {wide}; {many} times as many processes would settle {100 * threshold:.3g} %"


def _changed_reason(seen: _Evidence, threshold: float, confirmed: bool) -> str:
    """Returns why head is called slower or faster."""
    reason = f"{seen.agree}/{seen.processes} processes; {'confirmed' if confirmed else 'not confirmed yet'}"
    if seen.side < 0:
        return reason
    where = "at or over" if math.exp(seen.mean) - 1 >= threshold else "under"
    return f"{where} the threshold of {100 * threshold:.3g} %; {reason}"


def judge(pair: Pair) -> Verdict:
    """Returns the verdict on a pair."""
    level = LATER_LEVEL if pair.look > 1 else FIRST_LEVEL
    processes = [process for process in (_summarize_process(pair, at) for at in range(len(pair.head))) if process]
    if not processes:
        if pair.same_code:
            return Verdict("identical", "the same machine code", level)
        return Verdict("unclear", "no process has timed both", level, more=NAN)
    seen = _gather_evidence(pair, processes, level)
    side, limit, threshold = seen.side, math.log1p(seen.noise), pair.threshold
    confirming = sum(p.confirms and p.side == side and side * p.y > limit for p in processes)
    confirmed = side != 0 and pair.confirming >= CONFIRMING and confirming == pair.confirming
    ratio, more = math.exp(seen.mean), 0.0
    word = "slower" if side > 0 else "faster"
    if pair.same_code:
        kind, confirmed = "identical", False
        reason = f"the same machine code: {100 * (ratio - 1):+.1f} % is layout or noise"
    elif side and pair.confirming > 0 and not confirmed:
        kind, more = "unclear", 1.0
        reason = f"not confirmed: {confirming} of {pair.confirming} further processes said {word}"
    elif side:
        kind, reason = word, _changed_reason(seen, threshold, confirmed)
    elif seen.lo >= -math.log1p(threshold) and seen.hi <= math.log1p(threshold):
        kind, reason = "same", f"within the threshold of {100 * threshold:.3g} %"
    else:
        kind, more = "unclear", _more_needed(seen, threshold)
        reason = _unclear_reason(seen, threshold, more)
    control = math.exp(median(process.z for process in processes))
    return Verdict(kind, reason, level, ratio, math.exp(seen.lo), math.exp(seen.hi), seen.noise, control,
                   seen.processes, seen.agree, confirmed, more)  # fmt: skip


def machine_moved(moved: Sequence[float], yardstick: Sequence[float]) -> int:
    """Returns how many rows moved together with their yardsticks, if the machine caused it; otherwise 0.

    `moved` and `yardstick` are ln(head / base) of each row, and of its roofline or A/A control, which code cannot
    change. The machine caused it if at least three rows, and 30 % of all, moved by 3 % or more, and their yardsticks at
    least half as far in the same direction.
    """
    least = math.log1p(DEFAULT_THRESHOLD)
    together = sum(abs(m) >= least and m * y > 0 and abs(y) >= 0.5 * abs(m) for m, y in zip(moved, yardstick))
    return together if together >= 3 and together >= 0.3 * len(moved) else 0
