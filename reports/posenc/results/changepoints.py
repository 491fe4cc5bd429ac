"""Changes of level in a series, by E-divisive (Matteson and James, JASA 109, 2014).

Hunter and Apache Otava use it for performance (Fleming et al., Hunter, ICPE 2023). A series is split where both sides
differ most in energy distance, and the split is tested by shuffling. Distances are of ranks: no distribution is
assumed, and a wild value is no more than the largest. Splits found in windows of 50, 25 and 16 values are tested again
against their neighbours alone, and the weakest is given up until all hold. The shuffles follow from a seed.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice
from operator import add, mul
from statistics import median
from typing import Iterator, List, Sequence, Set, Tuple

LEAST = 14  # values: of fewer no order is as rare as one in a thousand
SIDE = 3  # values at least on either side of a change
WINDOW = 50  # values that are looked at together
P = 0.001
_CANDIDATE_P = 0.02  # p of candidates, which are tested again
_SHUFFLES = 9999
_SEED = 1
_MOST_EXTREME = 9  # shuffles that may reach the energy of a split: (1 + 9) / (1 + 9999) is P
_LANE = 24  # bits of a sum of distances of 2 * WINDOW ranks
_TIE = 1e-7  # energies are fractions whose denominators are below WINDOW^2 / 4: others are further apart


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


def splitmix(seed: int) -> Iterator[int]:
    """Yields numbers of 64 random bits: splitmix64 (Steele, Lea and Flood 2014)."""
    mask = (1 << 64) - 1
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = ((seed ^ seed >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        yield z ^ z >> 31


class Shuffles:
    """The shuffles of n values from a seed, each of the one before. They are made as they are needed, and kept."""

    def __init__(self, n: int, seed: int) -> None:
        self._order, self._bits = bytearray(range(n)), splitmix(seed)
        self._kept: List[bytes] = []

    def __getitem__(self, at: int) -> bytes:
        order = self._order
        while len(self._kept) <= at:
            for i, bits in zip(range(len(order) - 1, 0, -1), self._bits):
                k = (bits >> 32) * (i + 1) >> 32
                order[i], order[k] = order[k], order[i]
            self._kept.append(bytes(order))
        return self._kept[at]


_shuffles = lru_cache(maxsize=64)(Shuffles)

# ---- energy ----


class _Ranks:
    """Ranks of values, doubled to be whole where equal values share one, and the energies of their splits.

    The weighted energy distance of a split into a and b of n values is 2 / n times

        across - b / (a - 1) left - a / (b - 1) right

    with the sums of the distances between the sides, and of those within each. The three add up to the total, so
    that it is linear in two sums that grow by one value from split to split: of the distances within the left side,
    and of those of its values from all others.
    """

    def __init__(self, values: Sequence[float]) -> None:
        ordered = sorted(values)
        self.n = n = len(values)
        ranks = [2 * ordered.index(value) + ordered.count(value) + 1 for value in values]
        rows = [[abs(a - b) for b in ranks] for a in ranks]
        self.from_all = [sum(row) for row in rows]
        # The same as one number, a lane for each value: what several rows add up to is one addition.
        self.packed = [sum(distance << _LANE * at for at, distance in enumerate(row)) for row in rows]
        splits = [(a, n - a) for a in range(SIDE, n - SIDE + 1)]
        total = sum(self.from_all) / 2
        self.weights = [(n - 1) / (b - 1) for a, b in splits]
        self.left_weights = [-2 * (n - 1) / (b - 1) - b / (a - 1) + a / (b - 1) for a, b in splits]
        self.constants = [-total * a / (b - 1) for a, b in splits]

    def energies(self, order: bytes) -> Iterator[float]:
        """Yields the energy of each split of the values in an order."""
        mask = (1 << _LANE) - 1
        to_left = (row >> _LANE * at & mask for row, at in zip(accumulate(map(self.packed.__getitem__, order)), order))
        left = islice(accumulate(to_left), SIDE - 1, self.n - SIDE)
        from_all = islice(accumulate(map(self.from_all.__getitem__, order)), SIDE - 1, self.n - SIDE)
        return map(add, map(add, map(mul, self.left_weights, left), map(mul, self.weights, from_all)), self.constants)

    def best(self) -> Tuple[int, float]:
        """Returns the first split of the largest energy of the values as they come, and that energy."""
        energies = list(self.energies(bytes(range(self.n))))
        at = next(at for at, energy in enumerate(energies) if energy > max(energies) - _TIE)
        return SIDE + at, energies[at]

    def p_value(self, energy: float, seed: int, shuffles: int) -> float:
        """Returns the share of shuffles with a split of as much energy.

        Shuffling ends when that is known to be above P (Besag and Clifford 1991).
        """
        order, as_much = _shuffles(self.n, seed), 0
        for i in range(shuffles):
            as_much += max(self.energies(order[i])) > energy - _TIE
            if as_much > _MOST_EXTREME:
                return as_much / (i + 1)
        return (1.0 + as_much) / (1.0 + _SHUFFLES)


# ---- search ----


@lru_cache(maxsize=4096)
def _test(values: Tuple[float, ...], start: int, stop: int, shuffles: int) -> Tuple[int, float]:
    """Returns the best split of some values, and its p."""
    if stop - start < LEAST:
        return start, 1.0
    ranks = _Ranks(values[start:stop])
    at, energy = ranks.best()
    return start + at, ranks.p_value(energy, _SEED + start, shuffles)


def _divide(values: Tuple[float, ...], start: int, stop: int) -> Set[int]:
    """Returns candidates: values are split as long as their sides differ."""
    enough = int((_MOST_EXTREME + 1) / _CANDIDATE_P) - 1  # after as many p is known to be at most that
    at, p = _test(values, start, stop, enough)
    return {at, *_divide(values, start, at), *_divide(values, at, stop)} if p <= _CANDIDATE_P else set()


def _refit(values: Tuple[float, ...], candidates: List[int], i: int) -> ChangePoint:
    """Moves a candidate to where the values between its neighbours are split best."""
    before, here, after = [0, *candidates, len(values)][i : i + 3]
    start, stop = max(before, here - WINDOW), min(after, here + WINDOW)
    at, p = _test(values, start, stop, _SHUFFLES)
    if p > P:
        return ChangePoint(here, start, stop, 0.0, 0.0, p)
    candidates[i] = at
    return ChangePoint(at, start, stop, median(values[start:at]), median(values[at:stop]), p)


def find(values: Sequence[float]) -> List[ChangePoint]:
    """Returns the changes of level in a series of finite values, in their order."""
    series, n = tuple(values), len(values)
    found: Set[int] = set()
    for length in (WINDOW, WINDOW // 2, WINDOW // 3):  # down and up again: neither stands out in a window of both
        last = max(n - length, 0)
        if last or length == WINDOW:  # windows overlap by half; the last one ends with the values
            for start in (*range(0, last, length // 2), last):
                found |= _divide(series, start, min(start + length, n))
    candidates = sorted(found)
    while True:
        refitted = [_refit(series, candidates, i) for i in range(len(candidates))]
        weakest = max(refitted, key=lambda change: change.p, default=None)
        if weakest is None or weakest.p <= P:
            return refitted
        del candidates[refitted.index(weakest)]
