"""The verdict on one case of two builds: slower, faster, same or unclear. docs/verdicts.md explains the rule.

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

LEAST_NOISE, DEFAULT_THRESHOLD, MOST_OF = 0.01, 0.03, 0.8
FIRST_LEVEL, LATER_LEVEL = 0.99, 0.995
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
    """A verdict: slower, faster, same, unclear or identical; the ratio of head to base, and why."""

    kind: str
    reason: str
    level: float
    ratio: float = NAN
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
    return sorted(sample for sample in samples if not math.isnan(sample))


@lru_cache(maxsize=None)
def coverage(n: int, k: int) -> float:
    """Returns how surely the k-th smallest and the k-th largest of n samples enclose the median."""
    return max(1.0 - sum(math.comb(n, i) for i in range(k)) / (1 << (n - 1)), 0.0)


def median_interval(samples: Sequence[float], level: float) -> "tuple[float, float]":
    """Returns an interval of the median by order statistics: all there is if that is too little for the level."""
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
    y: float
    z: float
    side: int  # 1: head is slower than both copies of base; -1: faster than both; else 0
    confirms: bool


class _Evidence(NamedTuple):
    processes: int
    agree: int  # in how many of them head is on the side of the mean
    level: float
    mean: float
    lo: float
    hi: float
    noise: float
    variance: float


def _summarize_process(pair: Pair, at: int) -> Optional[_Process]:
    head, control = pair.head[at], pair.control[at]
    both = _without_nan([h - c for h, c in zip(head, control)])
    if not _without_nan(head) or not both or not _without_nan(control):
        return None
    first, second, z = median(_without_nan(head)), median(both), median(_without_nan(control))
    side = 1 if min(first, second) > 0 else -1 if max(first, second) < 0 else 0
    return _Process(0.5 * (first + second), z, side, at + pair.confirming >= len(pair.head))


def _most_of(n: int) -> int:
    """Returns the least number that is 80 % of n or more: all of four."""
    return math.ceil(MOST_OF * n - 1e-9)


def _gather_evidence(pair: Pair, processes: Sequence[_Process], level: float) -> _Evidence:
    n = len(processes)
    mean = sum(process.y for process in processes) / n
    spread = sum((p.y - mean) ** 2 / Y_UNITS + p.z**2 / Z_UNITS for p in processes)
    variance = spread / (2 * n - 1)
    half = half_width(level, variance, n)
    low, high = median_interval([ratio for process in pair.head for ratio in process], level)
    apart = sorted(abs(process.z) for process in processes)
    largest = max(2.0 * abs(median(process.z for process in processes)), apart[_most_of(n) - 1])
    noise = max(LEAST_NOISE, math.expm1(largest))
    agree = sum(process.side == (1 if mean > 0 else -1) for process in processes)
    return _Evidence(n, agree, level, mean, min(mean - half, low), max(mean + half, high), noise, variance)


def _processes_needed(e: _Evidence, threshold: float) -> float:
    """Returns how many times the processes so far have to be added until the interval settles it; NaN: none."""
    room = max(abs(e.mean) - math.log1p(e.noise), math.log1p(threshold) - abs(e.mean))
    rounds, times = max(e.hi - e.mean, e.mean - e.lo), 1.25
    if room <= 0:
        return NAN
    while times < MOST_TIMES and (
        half_width(e.level, e.variance, e.processes * times) > room or rounds / math.sqrt(times) > room
    ):
        times *= 1.125
    return times - 1.0 if times < MOST_TIMES else NAN


def _unclear_reason(e: _Evidence, threshold: float, more: float) -> str:
    up = e.mean > 0
    beyond = e.lo if up else -e.hi
    if e.processes < LEAST_PROCESSES:
        return f"{e.processes} process{'' if e.processes == 1 else 'es'}; {LEAST_PROCESSES} are the least"
    if beyond > math.log1p(e.noise):
        return f"processes disagree: {'slower' if up else 'faster'} than both copies in {e.agree}/{e.processes}"
    if e.noise > LEAST_NOISE and beyond > math.log1p(LEAST_NOISE):
        return f"within noise: base differs from its own copy by up to {100 * e.noise:.1f} %"
    half = 100 * math.expm1(max(e.hi - e.mean, e.mean - e.lo))
    wide = f"±{half:.1f} %" if half < 100 else "wider than the time itself"
    times = 1 + more
    if math.isnan(times):
        return f"noisy: {wide}; it takes a quieter machine to settle {100 * threshold:.3g} %"
    many = f"{times:.{1 if times < 10 else 0}f}"
    return f"noisy: {wide}; {many} times as many processes would settle {100 * threshold:.3g} %"


def judge(pair: Pair) -> Verdict:
    """Returns the verdict on a pair."""
    level = LATER_LEVEL if pair.look > 1 else FIRST_LEVEL
    processes = [process for process in (_summarize_process(pair, at) for at in range(len(pair.head))) if process]
    if not processes:
        if pair.same_code:
            return Verdict("identical", "the same machine code", level)
        return Verdict("unclear", "no process has timed both", level, more=NAN)
    e = _gather_evidence(pair, processes, level)
    threshold, limit = pair.threshold, math.log1p(e.noise)
    side = 1 if e.lo > limit else -1 if e.hi < -limit else 0
    if e.processes < LEAST_PROCESSES or e.agree < _most_of(e.processes):
        side = 0
    confirming = sum(p.confirms and p.side == side and side * p.y > limit for p in processes)
    confirmed = side != 0 and pair.confirming >= CONFIRMING and confirming == pair.confirming
    ratio, more = math.exp(e.mean), 0.0
    word = "slower" if side > 0 else "faster"
    if pair.same_code:
        kind, confirmed = "identical", False
        reason = f"the same machine code: {100 * (ratio - 1):+.1f} % is layout or noise"
    elif side and pair.confirming > 0 and not confirmed:
        kind, more = "unclear", 1.0
        reason = f"not confirmed: {confirming} of {pair.confirming} further processes said {word}"
    elif side:
        kind = word
        reason = f"{e.agree}/{e.processes} processes; {'confirmed' if confirmed else 'not confirmed yet'}"
        if side > 0:
            where = "at or over" if ratio - 1 >= threshold else "under"
            reason = f"{where} the threshold of {100 * threshold:.3g} %; {reason}"
    elif e.lo >= -math.log1p(threshold) and e.hi <= math.log1p(threshold):
        kind, reason = "same", f"within the threshold of {100 * threshold:.3g} %"
    else:
        kind = "unclear"
        enough = e.processes >= LEAST_PROCESSES
        more = _processes_needed(e, threshold) if enough else LEAST_PROCESSES / e.processes - 1
        reason = _unclear_reason(e, threshold, more)
    control = math.exp(median(process.z for process in processes))
    return Verdict(kind, reason, level, ratio, math.exp(e.lo), math.exp(e.hi), e.noise, control, e.processes, e.agree,
                   confirmed, more)  # fmt: skip


def machine_moved(moved: Sequence[float], yardstick: Sequence[float]) -> int:
    """Returns how many rows moved together with their yardsticks, if the machine caused it; otherwise 0.

    `moved` and `yardstick` are ln(head / base) of each row, and of its roofline or A/A control, which code cannot
    change. The machine caused it if at least three rows, and 30 % of all, moved by 3 % or more, and their yardsticks at
    least half as far in the same direction.
    """
    least = math.log1p(DEFAULT_THRESHOLD)
    together = sum(abs(m) >= least and m * y > 0 and abs(y) >= 0.5 * abs(m) for m, y in zip(moved, yardstick))
    return together if together >= 3 and together >= 0.3 * len(moved) else 0
