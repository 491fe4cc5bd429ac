"""Rounding by MPFR. Operators on mpfr keep 640 bits by default; within in_f32() they round each result to f32."""

import math
import struct
from typing import Tuple, Union

import gmpy2
from gmpy2 import mpfr

Real = Union[float, mpfr]

# The default precision, in which sums of two products of f32 values are exact: they span 2^-298 to 2^256.
EXACT = gmpy2.context(precision=640)
gmpy2.set_context(EXACT)


def ieee(precision: int, emin: int, emax: int) -> gmpy2.context:
    """Returns a format with subnormals. The exponents are MPFR's, whose significands are from 1/2 to 1."""
    return gmpy2.context(precision=precision, emin=emin, emax=emax, subnormalize=True)


F32 = ieee(24, -148, 128)
F64 = ieee(53, -1073, 1024)
FORMATS = {"f16": ieee(11, -23, 16), "bf16": ieee(8, -132, 128), "f32": F32}


def in_f32() -> gmpy2.context:
    """Returns a context manager in which the operators on mpfr round each result to f32."""
    return gmpy2.local_context(F32)


def f32(value: Real) -> mpfr:
    """Rounds a number to f32."""
    return F32.mul(mpfr(value), 1)  # F32 would first round a float to a multiple of the least subnormal


def nearest_f32(value: Real) -> float:
    """Returns the f32 nearest to a number."""
    return float(f32(value))


def rounded(dtype: str, value: float, direction: int = gmpy2.RoundToNearest) -> float:
    """Rounds a number to a dtype in one direction."""
    context = FORMATS[dtype].copy()
    context.round = direction
    return float(context.mul(mpfr(value), 1))


def two_pi() -> mpfr:
    """Returns 2 pi."""
    return gmpy2.const_pi() * 2


def clamp(value: Real, least: float, most: float) -> Real:
    """Returns a value limited to a range."""
    return least if value < least else most if value > most else value


def bits_of(value: float) -> int:
    """Returns the 64 bits of an f64."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def round_to_odd(value: mpfr, exact: bool = True) -> float:
    """Rounds to f64: an exact value to itself, any other to the one of its two neighbours whose last bit is 1.

    Rounding the result again, to f32 or less, equals one rounding of the value: the last bit tells on which side of a
    tie the value lies. `exact` is false if the value itself was rounded before.
    """
    near = float(value)
    if not gmpy2.is_regular(value) or (exact and near == value):
        return near
    if near != value:
        other = math.nextafter(near, math.inf if value > near else -math.inf)
    elif abs(near) == 1:
        return math.nextafter(near, 0)  # a cosine that rounded to 1 is below 1
    else:
        other = math.nextafter(near, math.copysign(math.inf, near))
    return near if bits_of(near) & 1 else other


def sum_of_products(a: float, b: float, c: float, d: float) -> float:
    """Returns a b + c d rounded to odd."""
    return round_to_odd(mpfr(a) * b + mpfr(c) * d)


def add_f32(a: float, b: float) -> float:
    """Returns the sum of two f32 values rounded to f32."""
    return float(F32.add(a, b))


def sincos_of_angle(angle: float) -> Tuple[float, float]:
    """Returns the sine and the cosine of an f64, each rounded to odd."""
    sine, cosine = gmpy2.sin_cos(mpfr(angle))
    return round_to_odd(sine, angle == 0), round_to_odd(cosine, angle == 0)


def same(a: float, b: float) -> bool:
    """Returns true if two f64 are the same. NaN equals NaN, and -0 differs from 0."""
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (math.isnan(a) and math.isnan(b))


def mix64(seed: int, index: int) -> int:
    """Returns number `index` of the pseudo-random generator splitmix64: 64 bits."""
    mask = (1 << 64) - 1
    z = seed + (index + 1) * 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31
