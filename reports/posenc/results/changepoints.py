"""Changes of level in a series, by E-divisive (Matteson and James, JASA 109, 2014).

Hunter and Apache Otava use it for performance (Fleming et al., Hunter, ICPE 2023). A series is split where both sides
differ most in energy distance, and the split is tested by shuffling. Distances are of ranks: no distribution is
assumed, and a wild value is no more than the largest. Splits found in windows of 50, 25 and 16 values are tested again
against their neighbours alone, and the weakest is given up until all hold. The shuffles follow from a seed.
"""

import sys
from array import array
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice, repeat
from operator import add, and_, mul, rshift
from statistics import median
from typing import Dict, Iterator, List, Sequence, Tuple

LEAST = 14  # values: of fewer no order is as rare as one in a thousand
SIDE = 3  # values at least on either side of a change
WINDOW = 50  # values that are looked at together
P = 0.001
_CANDIDATE_P = 0.02  # what is worth testing against its neighbours
_SHUFFLES = 9999
_ALLOWED = 9  # of them may differ as much: (1 + 9) / (1 + 9999) is P
_CANDIDATES = 64
_LANE = 24  # bits of a sum of distances of 2 * WINDOW ranks


@dataclass(frozen=True)
class ChangePoint:
    """A change: the first value of the new level, and the medians of the values [start, at) and [at, stop)."""

    at: int
    start: int
    stop: int
    before: float
    after: float
    p: float  # shuffles that differ as much, of 9999 and this one


# ---- shuffles ----


class _Random:
    """Numbers of 32 random bits from a seed: splitmix64 (Steele, Lea and Flood 2014).

    A block of them is made at once: numbers of 64 bits stand 128 bits apart in one large integer, so that a product
    with a constant stays within its lane.
    """

    BLOCK = 4096
    _GAMMA = 0x9E3779B97F4A7C15
    _ONES = sum(1 << 128 * lane for lane in range(BLOCK))
    _LOW = _ONES * ((1 << 64) - 1)
    _STEPS = sum(((lane + 1) * 0x9E3779B97F4A7C15 & (1 << 64) - 1) << 128 * lane for lane in range(BLOCK))

    def __init__(self, seed: int) -> None:
        self._state, self._made = seed, array("I")

    def get(self, start: int, count: int) -> "array[int]":
        """Returns numbers from a place of the sequence on."""
        while len(self._made) < start + count:
            z = (self._STEPS + self._ONES * self._state) & self._LOW
            z = ((z ^ (z >> 30 & self._LOW)) * 0xBF58476D1CE4E5B9) & self._LOW
            z = ((z ^ (z >> 27 & self._LOW)) * 0x94D049BB133111EB) & self._LOW
            z ^= z >> 31 & self._LOW
            words = array("I", z.to_bytes(16 * self.BLOCK, sys.byteorder))
            self._made += words[1::4] if sys.byteorder == "little" else words[-2::-4]
            self._state = (self._state + self.BLOCK * self._GAMMA) & (1 << 64) - 1
        return self._made[start : start + count]


@lru_cache(maxsize=64)
def _random(seed: int) -> _Random:
    return _Random(seed)


class _Shuffles:
    """The shuffles of n values from a seed, each of the one before. They are made as they are needed, and kept."""

    def __init__(self, n: int, seed: int) -> None:
        self._order, self._random = bytearray(range(n)), _random(seed)
        self._made: List[bytes] = []

    def __getitem__(self, at: int) -> bytes:
        order, draws = self._order, len(self._order) - 1
        while len(self._made) <= at:
            for i, bits in zip(range(draws, 0, -1), self._random.get(len(self._made) * draws, draws)):
                k = bits * (i + 1) >> 32
                order[i], order[k] = order[k], order[i]
            self._made.append(bytes(order))
        return self._made[at]


@lru_cache(maxsize=64)
def _shuffles(n: int, seed: int) -> _Shuffles:
    return _Shuffles(n, seed)


# ---- energy ----


def _energy(at: int, n: int, across: int, left: int, right: int) -> float:
    """Returns the weighted energy distance of both sides of a split.

    `across` is the sum of distances between the sides, the others are those of the pairs within each.
    """
    count, rest = float(at), float(n - at)
    return count * rest / (count + rest) * (
        2.0 * across / (count * rest) - 2.0 * left / (count * (count - 1.0)) - 2.0 * right / (rest * (rest - 1.0))
    )  # fmt: skip


class _Ranks:
    """Ranks of values, doubled to be whole where equal values share one, and what follows from their distances."""

    def __init__(self, values: Sequence[float]) -> None:
        ordered = sorted(values)
        first: Dict[float, int] = {}
        for at, value in enumerate(ordered):
            first.setdefault(value, at)
        self.n = n = len(values)
        ranks = [2 * first[value] + ordered.count(value) + 1 for value in values]
        rows = [[abs(a - b) for b in ranks] for a in ranks]
        self.sums = [sum(row) for row in rows]  # of the distances of a value from all others
        self.total = sum(self.sums) // 2
        # The same as one number, a lane for each value: what several rows add up to is one addition.
        self.packed = [sum(distance << _LANE * at for at, distance in enumerate(row)) for row in rows]
        # The energy of a split is linear in the sum of distances within its left side and in the sum of its sums.
        splits = [(at, n - at) for at in range(SIDE, n - SIDE + 1)]
        scale = [2.0 * a * b / (a + b) for a, b in splits]
        self.of_sums = [s * (1.0 / (a * b) + 1.0 / (b * (b - 1))) for s, (a, b) in zip(scale, splits)]
        self.of_left = [
            s * (-2.0 / (a * b) - 1.0 / (a * (a - 1)) - 1.0 / (b * (b - 1))) for s, (a, b) in zip(scale, splits)
        ]
        self.base = [-s * self.total / (b * (b - 1)) for s, (a, b) in zip(scale, splits)]

    def _sides(self, order: bytes) -> Tuple[Iterator[int], Iterator[int]]:
        """Returns by split the sum of distances within its left side, and the sum of its sums."""
        packed = accumulate(map(self.packed.__getitem__, order))
        lanes = [_LANE * at for at in order]
        to_left = map(and_, map(rshift, packed, lanes), repeat((1 << _LANE) - 1))
        within, sums = accumulate(to_left), accumulate(map(self.sums.__getitem__, order))
        return islice(within, SIDE - 1, self.n - SIDE), islice(sums, SIDE - 1, self.n - SIDE)

    def best(self, order: bytes) -> Tuple[int, float]:
        """Returns the split of the largest energy, and that energy."""
        best = (0, float("-inf"))
        for at, (within, sums) in enumerate(zip(*self._sides(order)), start=SIDE):
            across = sums - 2 * within
            energy = _energy(at, self.n, across, within, self.total - within - across)
            if energy > best[1]:
                best = (at, energy)
        return best

    def reaches(self, order: bytes, energy: float) -> bool:
        """Returns whether a split has as much energy. Only one that is close is calculated as best() does."""
        within, sums = self._sides(order)
        most = max(map(add, map(add, map(mul, self.of_left, within), map(mul, self.of_sums, sums)), self.base))
        if abs(most - energy) > 1e-6 * (1.0 + abs(energy)):
            return bool(most > energy)
        return self.best(order)[1] >= energy


def _p_value(ranks: _Ranks, energy: float, seed: int, shuffles: int) -> float:
    """Returns the share of shuffles with a split of as much energy.

    Shuffling ends when that is known to be above P (Besag and Clifford 1991).
    """
    order, as_much = _shuffles(ranks.n, seed), 0
    for i in range(shuffles):
        as_much += ranks.reaches(order[i], energy)
        if as_much > _ALLOWED:
            return as_much / (i + 1)
    return (1.0 + as_much) / (1.0 + _SHUFFLES)


# ---- search ----


class _Search:
    """The candidates in a series, in their order."""

    def __init__(self, values: Sequence[float], seed: int) -> None:
        self.values, self.seed = values, seed
        self.at: List[int] = []
        self._tested: Dict[Tuple[int, int], Tuple[int, float]] = {}

    def _divide(self, start: int, stop: int) -> None:
        """Splits values as long as their sides differ."""
        if stop - start < LEAST:
            return
        ranks = _Ranks(self.values[start:stop])
        at, energy = ranks.best(bytes(range(ranks.n)))
        enough = int((_ALLOWED + 1) / _CANDIDATE_P) - 1  # after as many p is known to be at most that
        if _p_value(ranks, energy, self.seed + start, enough) > _CANDIDATE_P:
            return
        if start + at not in self.at and len(self.at) < _CANDIDATES:
            self.at = sorted([*self.at, start + at])
        self._divide(start, start + at)
        self._divide(start + at, stop)

    def search(self, length: int) -> None:
        """Looks for candidates in windows that overlap by half; the last one ends with the values."""
        n = len(self.values)
        for start in range(0, n, length // 2):
            if n - start <= length:
                self._divide(max(n - length, 0), n)
                return
            self._divide(start, start + length)

    def _test(self, start: int, stop: int) -> Tuple[int, float]:
        """Returns the best split of some values, and its p."""
        if stop - start < LEAST:
            return 0, 1.0
        if (start, stop) not in self._tested:
            ranks = _Ranks(self.values[start:stop])
            at, energy = ranks.best(bytes(range(ranks.n)))
            self._tested[start, stop] = at, _p_value(ranks, energy, self.seed + start, _SHUFFLES)
        return self._tested[start, stop]

    def settle(self, i: int) -> ChangePoint:
        """Moves a candidate to where the values between its neighbours are split best."""
        here = self.at[i]
        start = max(self.at[i - 1] if i > 0 else 0, here - WINDOW)
        stop = min(self.at[i + 1] if i + 1 < len(self.at) else len(self.values), here + WINDOW)
        split, p = self._test(start, stop)
        if p > P:
            return ChangePoint(here, start, stop, 0.0, 0.0, p)
        self.at[i] = at = start + split
        return ChangePoint(at, start, stop, median(self.values[start:at]), median(self.values[at:stop]), p)


def find(values: Sequence[float], seed: int = 1) -> List[ChangePoint]:
    """Returns the changes of level in a series of finite values, in their order."""
    search = _Search(values, seed)
    if len(values) < LEAST:
        return []
    for part in (1, 2, 3):  # down and up again: neither stands out where a window is longer than both
        if part == 1 or len(values) > WINDOW // part:
            search.search(WINDOW // part)
    while True:
        settled = [search.settle(i) for i in range(len(search.at))]
        weakest = max(settled, key=lambda change: change.p, default=None)
        if weakest is None or weakest.p <= P:
            return settled
        del search.at[settled.index(weakest)]
