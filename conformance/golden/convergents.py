"""Positions at which a sine or cosine almost vanishes.

|sin(p omega)| is small where p omega is near h pi, so p is the denominator of a convergent h/p of the continued
fraction of omega/pi; |cos(p omega)| where 2 p omega / pi is near an odd integer (Khinchin, "Continued Fractions",
theorem 17: nothing below the next denominator is nearer).
"""

from typing import Iterator, List, Tuple

import gmpy2
from gmpy2 import mpfr

from plan import Plan

SINE, COSINE = 0, 1
MOST = 64


def convergents(omega: mpfr, kind: int) -> Iterator[Tuple[int, float]]:
    """Yields positions below 2^31 next to a zero of a sine or cosine, in order, and how far from it they are."""
    x = omega / gmpy2.const_pi() * (1 + kind)
    rest, h0, h1, k0, k1 = x, 0, 1, 1, 0
    for _ in range(MOST):
        term = int(gmpy2.floor(rest))
        h0, h1, k0, k1 = h1, h0 + term * h1, k1, k0 + term * k1
        if k1 > 0x7FFFFFFF:
            return
        if k1 > 1 and (h1 % 2 == 1 if kind == COSINE else h1 > 0):
            yield k1, float(abs(x * k1 - h1))
        rest -= term
        if rest == 0:
            return
        rest = 1 / rest


def _nearest(found: Iterator[Tuple[int, float]], n: int) -> List[int]:
    """The n positions that are nearest, the nearest first."""
    in_order = sorted(found, key=lambda one: (one[1], one[0]))
    return list(dict.fromkeys(position for position, _ in in_order))[:n]


def hard_positions(plan: Plan, kind: int, n: int) -> List[int]:
    """Returns the n positions next to a zero of all pairs, ascending."""
    return sorted(_nearest((one for omega in plan.omega for one in convergents(omega, kind)), n))


def hard_halves(plan: Plan, n: int) -> List[int]:
    """Returns n odd m below 2^24 of times m/2 next to a zero, the nearest first."""
    found = (one for kind in (SINE, COSINE) for omega in plan.omega for one in convergents(omega / 2, kind))
    return _nearest((one for one in found if one[0] % 2 and one[0] < 1 << 24), n)


def is_convergent(plan: Plan, position: int) -> bool:
    """Tells whether a position is next to a zero of some pair."""
    found = (one for kind in (SINE, COSINE) for omega in plan.omega for one in convergents(omega, kind))
    return any(position == one for one, _ in found)
