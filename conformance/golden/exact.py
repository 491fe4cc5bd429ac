"""Arithmetic of MPFR: numbers of many bits by default, f32 and f64 where every step is rounded, rounding to odd."""

import math
import struct
from typing import Tuple, Union

import gmpy2
from gmpy2 import mpfr

Real = Union[float, mpfr]

# Holds sums of two products of f32 values whole: they span 2^-298 to 2^256.
EXACT = gmpy2.context(precision=640)
gmpy2.set_context(EXACT)


def ieee(precision: int, emin: int, emax: int) -> gmpy2.context:
    """Returns a format with gradual underflow; MPFR counts exponents of numbers from 1/2 to 1."""
    return gmpy2.context(precision=precision, emin=emin, emax=emax, subnormalize=True)


F32 = ieee(24, -148, 128)
F64 = ieee(53, -1073, 1024)
FORMATS = {"f16": ieee(11, -23, 16), "bf16": ieee(8, -132, 128), "f32": F32}


def in_f32() -> gmpy2.context:
    """Returns a context manager in which the operators on mpfr round each result to f32."""
    return gmpy2.local_context(F32)


def f32(value: Real) -> mpfr:
    """Rounds a number to f32."""
    return F32.mul(mpfr(value), 1)  # a float would first be made a multiple of the least subnormal


def nearest_f32(value: Real) -> float:
    """Returns the f32 next to a number."""
    return float(f32(value))


def rounded(dtype: str, value: float, direction: int = gmpy2.RoundToNearest) -> float:
    """Rounds a number to a type of storage in one direction."""
    context = FORMATS[dtype].copy()
    context.round = direction
    return float(context.mul(mpfr(value), 1))


def two_pi() -> mpfr:
    """Returns 2 pi."""
    return gmpy2.const_pi() * 2


def clamp(value: Real, least: float, most: float) -> Real:
    """Returns the number in a range that is nearest to a value."""
    return least if value < least else most if value > most else value


def bits_of(value: float) -> int:
    """Returns the 64 bits of an f64."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def round_to_odd(value: mpfr, exact: bool = True) -> float:
    """Rounds to f64: an inexact value becomes the neighbour whose last bit is 1.

    Its last bit keeps the side on which the truth lies, so rounding it to f32 or less equals rounding the truth.
    `exact` is false if the value itself is truncated.
    """
    near = float(value)
    if not gmpy2.is_regular(value) or (exact and near == value):
        return near
    if near != value:
        other = math.nextafter(near, math.inf if value > near else -math.inf)
    elif abs(near) == 1:
        return math.nextafter(near, 0)  # a cosine so near 1 that its bits do not tell them apart is still below
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
    """Returns true if two f64 are the same: NaN equals NaN, and zeros differ by sign."""
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (math.isnan(a) and math.isnan(b))


def mix64(seed: int, index: int) -> int:
    """Returns 64 bits of splitmix64, which is how numbers are drawn here."""
    mask = (1 << 64) - 1
    z = seed + (index + 1) * 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31
