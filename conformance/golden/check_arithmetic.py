"""Checks the arithmetic of the oracle, and the error metrics and roundings of the suites, against MPFR.

Each function of PARTS yields a sentence for each wrong result. Arguments are pseudo-random; check_dtypes() tries each
value of 16 bits.
"""

import ctypes
import math
import struct
from ctypes import byref, c_bool, c_double, c_float, c_int64, c_uint16, c_uint64
from typing import Any, Iterator

import gmpy2
from gmpy2 import mpfr

from rounding import mix64, nearest_f32, round_to_odd, rounded, same, sincos_of_angle
from problem import Disagreement, library

DTYPES = ("f32", "f16", "bf16")  # in the order of enum posenc_dtype


class Big(ctypes.Structure):
    """struct big of the oracle: a binary fraction of 256 bits times a power of two."""

    _fields_ = [("negative", c_bool), ("inexact", c_bool), ("exponent", c_int64), ("m", c_uint64 * 4)]

    def value(self) -> mpfr:
        """Returns the number, exactly."""
        words = self.m[0] << 192 | self.m[1] << 128 | self.m[2] << 64 | self.m[3]
        return mpfr(-words if self.negative else words) * mpfr(2) ** (self.exponent - 256)


RESULTS = {
    "big_integer": Big,
    "big_double": Big,
    "big_divide": Big,
    "big_inverse_sqrt": Big,
    "big_log": Big,
    "big_exp": Big,
    "big_times": c_double,
    "exact_round_f32": c_float,
    "exact_round": c_float,
    "storage_get": c_float,
    "storage_put": None,
    "exact_ulp_error": c_double,
    "exact_pair_ulp_error": c_double,
}


def call(name: str, *arguments: Any) -> Any:
    """Calls a function of the oracle or of the suites."""
    function = library()[name]
    function.restype = RESULTS[name]
    return function(*arguments)


def big(function: str, *arguments: Any) -> Big:
    """Calls a function of the oracle that returns a number of 256 bits."""
    number: Big = call(function, *arguments)
    return number


def relative_error(value: Big, want: mpfr) -> mpfr:
    """Returns the relative error of a number, or the absolute one if MPFR's is 0."""
    error = abs(value.value() - want)
    return error / abs(want) if want else error


def signed(z: int) -> int:
    """Returns 64 bits as a signed number."""
    return z - (1 << 64) if z >> 63 else z


def check_256_bits() -> Iterator[str]:
    """Checks that roots, logarithms, exponentials and quotients of 256 bits have a relative error below 2^-240."""
    bound = mpfr(2) ** -240
    for k in range(2000):
        z = mix64(31, k)
        a = math.ldexp(z >> 11, (z & 127) - 117)
        small = math.ldexp(float(signed(z)), k % 70 - 124)  # below 2^9
        of_a, of_small = big("big_double", c_double(a)), big("big_double", c_double(small))
        if relative_error(big("big_inverse_sqrt", of_a), 1 / gmpy2.sqrt(mpfr(a))) >= bound:
            yield f"1 / sqrt of {a.hex()}"
        if relative_error(big("big_log", of_a), gmpy2.log(mpfr(a))) >= bound:
            yield f"log of {a.hex()}"
        if relative_error(big("big_divide", big("big_integer", c_int64(3)), of_a), 3 / mpfr(a)) >= bound:
            yield f"3 / {a.hex()}"
        if relative_error(big("big_exp", of_small), gmpy2.exp(mpfr(small))) >= bound:
            yield f"exp of {small.hex()}"


def check_angles() -> Iterator[str]:
    """Checks sines and cosines of angles of every magnitude below 2^60, as f64 and as f32.

    Their relative error is below 2^-122, as exact.h promises. The rounded results would not show it.
    """
    bound = mpfr(2) ** -122
    for k in range(20000):
        z = mix64(77, k)
        angle = math.ldexp(z >> 11, z % 132 - 124)
        angle = -angle if z & 512 else angle
        angle = nearest_f32(angle) if z & 1024 else angle
        sine, cosine, s, c = Big(), Big(), c_double(), c_double()
        library().big_sincos(c_double(angle), byref(sine), byref(cosine))
        library().exact_sincos(c_double(angle), byref(s), byref(c))
        want = gmpy2.sin_cos(mpfr(angle))
        if angle and (relative_error(sine, want[0]) >= bound or relative_error(cosine, want[1]) >= bound):
            yield f"angle {angle.hex()}: sine or cosine wrong before 122 bits"
        right = sincos_of_angle(angle)
        if not same(s.value, right[0]) or not same(c.value, right[1]):
            yield f"angle {angle.hex()}: {s.value.hex()} {c.value.hex()}, MPFR {right[0].hex()} {right[1].hex()}"


def check_products() -> Iterator[str]:
    """Checks m times a sine for finite m of every magnitude, subnormal ones too, and for zeros of both signs."""
    for k in range(5000):
        z = mix64(9, k)
        angle = math.ldexp(0 if k % 32 < 2 else z >> 11, (z & 63) - 100) * (-1 if k % 8 in (1, 3) else 1)
        m = float(mpfr((mix64(z, 1) >> 11) * (1 if z & 64 else -1)) * mpfr(2) ** ((z >> 7) % 2104 - 1128))
        m = math.copysign(0, m) if k % 32 in (1, 2, 3) else m
        if not math.isfinite(m):
            continue
        digits = Big(), Big()
        library().big_sincos(c_double(angle), byref(digits[0]), byref(digits[1]))
        for got, want in zip(digits, gmpy2.sin_cos(mpfr(angle))):
            product = call("big_times", got, c_double(m))
            if not same(product, round_to_odd(want * m, angle == 0 or m == 0)):
                yield f"{m.hex()} times sine or cosine of {angle.hex()}: {product.hex()}"


def random_value(k: int) -> mpfr:
    """Returns a value in f32's range or near it, often next to an f32 or to a midpoint of two."""
    z = mix64(5, k)
    power = mpfr(2) ** -(z >> 2 & 127)
    value = mpfr((z >> 40 | 1 << 23) + (0.5 if z & 1 else 0))
    if z & 2:
        value += -power if z & 1024 else power
    value *= mpfr(2) ** ((z >> 12 & 511) - 300)
    return -value if z & 2048 else value


def next_f32(value: float, to: float) -> float:
    """Returns the f32 next to a value in the direction of `to`."""
    if value == 0 or value == to:
        return math.copysign(2.0**-149, to) if value != to else value
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits += 1 if (to > value) == (value > 0) else -1
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def check_metrics() -> Iterator[str]:
    """Checks the nearest f32, its error in ulp, and the error of the f32 after it."""
    for k in range(50000):
        value = random_value(k)
        odd, nearest = round_to_odd(value), nearest_f32(value)
        got = call("exact_round_f32", c_double(odd))
        after = next_f32(got, math.inf)
        error, error_after = (call("exact_ulp_error", c_float(f), c_double(odd)) for f in (got, after))
        if not same(got, nearest):
            yield f"{odd.hex()} to f32: {got.hex()}, MPFR {nearest.hex()}"
        if not (error <= 0.5 or (abs(odd) < 2.0**-149 and error <= 1)):
            yield f"the nearest f32 of {odd.hex()} errs by {error} ulp"
        # The next f32 is 0.5 to 1.5 ulp away, or 2.5 ulp if it lies above a power of two and the value below. Rounding
        # to odd moves the value by less than 2^-28 ulp.
        both_finite, ends_binade = math.isfinite(after) and math.isfinite(got), abs(math.frexp(got)[0]) == 0.5
        if both_finite and not (0.49999 <= error_after <= 1.50001 or (error_after <= 2.50001 and ends_binade)):
            yield f"the f32 after the nearest of {odd.hex()} errs by {error_after} ulp"


# ---- Types of 16 bits ----


def value_of(dtype: str, bits: int) -> float:
    """Returns the value of an f16 or bf16 by its sign, exponent and fraction."""
    fraction_bits, bias = (10, 15) if dtype == "f16" else (7, 127)
    exponent, fraction = (bits & 0x7FFF) >> fraction_bits, bits & ((1 << fraction_bits) - 1)
    if exponent == 2 * bias + 1:
        magnitude = math.nan if fraction else math.inf
    elif exponent == 0:
        magnitude = math.ldexp(fraction, 1 - bias - fraction_bits)
    else:
        magnitude = math.ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits)
    return -magnitude if bits >> 15 else magnitude


def check_narrowing(dtype: str, value: float) -> Iterator[str]:
    """Checks an f32 rounded to a dtype by the suites and by the oracle."""
    want, code = rounded(dtype, value), DTYPES.index(dtype)
    bits = c_uint16()
    call("storage_put", code, byref(bits), c_int64(0), c_float(value))
    stored = call("storage_get", code, byref(bits), c_int64(0))
    odd = call("exact_round", code, c_double(value))
    if not same(stored, want) or not same(odd, want):
        yield f"{dtype} of {value.hex()}: stored as {stored.hex()}, {odd.hex()} by the oracle, MPFR {want.hex()}"


def check_dtypes() -> Iterator[str]:
    """Checks each f16 and bf16, the midpoint to the next one, and the two f32 values next to the midpoint."""
    for dtype, overflow in (("f16", 2.0**16), ("bf16", 2.0**128)):
        for bits in range(1 << 16):
            value = call("storage_get", DTYPES.index(dtype), byref(c_uint16(bits)), c_int64(0))
            want = value_of(dtype, bits)
            if not same(value, want):
                yield f"{dtype} {bits:x} widened: {value.hex()}, not {want.hex()}"
            if not math.isfinite(want):
                continue
            after = value_of(dtype, bits + 1)
            middle = nearest_f32((value + (math.copysign(overflow, after) if math.isinf(after) else after)) / 2)
            yield from check_narrowing(dtype, value)
            yield from check_narrowing(dtype, middle)
            yield from check_narrowing(dtype, next_f32(middle, 0))
            yield from check_narrowing(dtype, next_f32(middle, math.copysign(math.inf, middle)))


PARTS = (check_256_bits, check_angles, check_products, check_metrics, check_dtypes)


def check(part: int) -> None:
    """Raises Disagreement for the first wrong result of one of PARTS."""
    for sentence in PARTS[part]():
        raise Disagreement(sentence)
