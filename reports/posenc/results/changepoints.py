"""Changes of level in a series: where the ranks of the values before and after differ most.

trend.py calls find(). In 20 values near 0.50 and 20 near 0.60 it finds one ChangePoint, with at 20, before 0.50 and
after 0.60.

The largest difference over all splits is compared with that of shuffled ranks. So no distribution is assumed, and an
outlier counts no more than any largest value. Splits found in windows of 50, 25 and 16 values are tested again between
their neighbours, and the weakest is dropped until all hold. docs/verdicts.md explains the rule.
"""

import random
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from statistics import median
from typing import List, Sequence, Set, Tuple

LEAST = 14  # values needed: of fewer no order is as rare as one in a thousand
SIDE = 3  # values at least on either side of a change
WINDOW = 50  # values that are tested together, at most
P = 0.001  # largest p of a change
_CANDIDATE_P = 0.02  # largest p of a candidate, which is tested again
_SHUFFLES = 9999
_MOST_EXTREME = 9  # shuffles that may reach the statistic: (1 + 9) / (1 + 9999) is P


@dataclass(frozen=True)
class ChangePoint:
    """A change of level, tested in the values [start, stop)."""

    at: int  # place of the first value of the new level
    start: int
    stop: int
    before: float  # median of the values [start, at)
    after: float  # median of the values [at, stop)
    p: float  # share of orders that differ as much: of 9999 shuffles and this one


def _best_split(ranks: Sequence[float]) -> Tuple[float, int]:
    """Returns the square of the largest rank-sum statistic (Mann and Whitney 1947) over all splits, and its split.

    `ranks` are less their mean, so that both sides have the same sum but for its sign.
    """
    n = len(ranks)
    sums = list(accumulate(ranks))[SIDE - 1 : n - SIDE]
    squares = [total * total / (at * (n - at)) for at, total in enumerate(sums, start=SIDE)]
    largest = max(squares)
    return largest, SIDE + squares.index(largest)


class _Shuffles:
    """The statistic of _best_split() for n values in random orders, which are drawn when they are needed and kept."""

    def __init__(self, n: int) -> None:
        self._ranks, self._random = [rank - (n - 1) / 2 for rank in range(n)], random.Random(n)
        self._squares: List[float] = []

    def p_value(self, square: float) -> float:
        """Returns the share of orders that reach a statistic. Ends when that is known to be above P (Besag 1991)."""
        reached = 0
        for i in range(_SHUFFLES):
            if i == len(self._squares):
                self._random.shuffle(self._ranks)
                self._squares.append(_best_split(self._ranks)[0])
            reached += self._squares[i] >= square
            if reached > _MOST_EXTREME:
                return reached / (i + 1)
        return (1 + reached) / (1 + _SHUFFLES)


_shuffles_of = lru_cache(maxsize=None)(_Shuffles)


def _test(values: Sequence[float]) -> Tuple[int, float]:
    """Returns the best split of some values, and its p. Equal values share a rank, which makes p no smaller."""
    n = len(values)
    if n < LEAST:
        return 0, 1.0
    ordered = sorted(values)
    square, at = _best_split([ordered.index(value) + (ordered.count(value) - n) / 2 for value in values])
    return at, _shuffles_of(n).p_value(square)


def _divide(values: Sequence[float], start: int, stop: int) -> Set[int]:
    """Returns candidates in the values [start, stop), which are split as long as their sides differ."""
    at, p = _test(values[start:stop])
    at += start
    if p > _CANDIDATE_P:
        return set()
    return {at, *_divide(values, start, at), *_divide(values, at, stop)}


def _refit(values: Sequence[float], candidates: List[int], i: int) -> ChangePoint:
    """Moves candidate i to where the values between its neighbours are split best."""
    before, here, after = [0, *candidates, len(values)][i : i + 3]
    start, stop = max(before, here - WINDOW), min(after, here + WINDOW)
    at, p = _test(values[start:stop])
    if p <= P:
        here = candidates[i] = start + at
    return ChangePoint(here, start, stop, median(values[start:here]), median(values[here:stop]), p)


def find(values: Sequence[float]) -> List[ChangePoint]:
    """Returns the changes of level in a series of finite values, in their order."""
    n = len(values)
    found: Set[int] = set()
    # Short windows separate a fall from the rise after it: neither stands out in a window of both.
    for length in (WINDOW, WINDOW // 2, WINDOW // 3):
        last = max(n - length, 0)
        if last or length == WINDOW:  # windows overlap by half; the last one ends with the values
            for start in (*range(0, last, length // 2), last):
                found |= _divide(values, start, min(start + length, n))
    candidates = sorted(found)
    while True:  # drops the weakest candidate until all hold
        refitted = [_refit(values, candidates, i) for i in range(len(candidates))]
        weakest = max(refitted, key=lambda change: change.p, default=None)
        if weakest is None or weakest.p <= P:
            return refitted
        del candidates[refitted.index(weakest)]
