"""Changes of level in a series: where the ranks of the values before and after differ most.

The largest difference over all splits is compared with that of shuffled ranks. So no distribution is assumed, and a
wild value is no more than the largest. Splits found in windows of 50, 25 and 16 values are tested again against their
neighbours alone, and the weakest is given up until all hold. docs/verdicts.md explains the rule.
"""

import random
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from statistics import median
from typing import List, Sequence, Set, Tuple

LEAST = 14  # values: of fewer no order is as rare as one in a thousand
SIDE = 3  # values at least on either side of a change
WINDOW = 50  # values that are looked at together
P = 0.001
_CANDIDATE_P = 0.02  # p of candidates, which are tested again
_SHUFFLES = 9999
_MOST_EXTREME = 9  # shuffles that may reach the statistic: (1 + 9) / (1 + 9999) is P


@dataclass(frozen=True)
class ChangePoint:
    """A change: the first value of the new level, and the medians of the values [start, at) and [at, stop)."""

    at: int
    start: int
    stop: int
    before: float
    after: float
    p: float  # shuffles that differ as much, of 9999 and this one


def _best_split(ranks: Sequence[float]) -> Tuple[float, int]:
    """Returns the square of the largest rank-sum statistic (Mann and Whitney 1947) over all splits, and its split.

    `ranks` are less their mean, so that both sides have the same sum but for its sign.
    """
    n = len(ranks)
    sums = list(accumulate(ranks))[SIDE - 1 : n - SIDE]
    squares = [total * total / (at * (n - at)) for at, total in enumerate(sums, start=SIDE)]
    largest = max(squares)
    return largest, SIDE + squares.index(largest)


class _Chance:
    """That statistic of n values in random orders. They are drawn as they are needed, and kept."""

    def __init__(self, n: int) -> None:
        self._ranks, self._draw = [rank - (n - 1) / 2 for rank in range(n)], random.Random(n)
        self._found: List[float] = []

    def p_value(self, square: float) -> float:
        """Returns the share of orders that reach a statistic. Ends when that is known to be above P (Besag 1991)."""
        reached = 0
        for i in range(_SHUFFLES):
            if i == len(self._found):
                self._draw.shuffle(self._ranks)
                self._found.append(_best_split(self._ranks)[0])
            reached += self._found[i] >= square
            if reached > _MOST_EXTREME:
                return reached / (i + 1)
        return (1 + reached) / (1 + _SHUFFLES)


_chance = lru_cache(maxsize=None)(_Chance)


def _test(values: Sequence[float]) -> Tuple[int, float]:
    """Returns the best split of some values, and its p. Equal values share a rank, which makes p no smaller."""
    n = len(values)
    if n < LEAST:
        return 0, 1.0
    ordered = sorted(values)
    square, at = _best_split([ordered.index(value) + (ordered.count(value) - n) / 2 for value in values])
    return at, _chance(n).p_value(square)


def _divide(values: Sequence[float], start: int, stop: int) -> Set[int]:
    """Returns candidates: values are split as long as their sides differ."""
    at, p = _test(values[start:stop])
    at += start
    return {at, *_divide(values, start, at), *_divide(values, at, stop)} if p <= _CANDIDATE_P else set()


def _refit(values: Sequence[float], candidates: List[int], i: int) -> ChangePoint:
    """Moves a candidate to where the values between its neighbours are split best."""
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
    for length in (WINDOW, WINDOW // 2, WINDOW // 3):  # down and up again: neither stands out in a window of both
        last = max(n - length, 0)
        if last or length == WINDOW:  # windows overlap by half; the last one ends with the values
            for start in (*range(0, last, length // 2), last):
                found |= _divide(values, start, min(start + length, n))
    candidates = sorted(found)
    while True:
        refitted = [_refit(values, candidates, i) for i in range(len(candidates))]
        weakest = max(refitted, key=lambda change: change.p, default=None)
        if weakest is None or weakest.p <= P:
            return refitted
        del candidates[refitted.index(weakest)]
