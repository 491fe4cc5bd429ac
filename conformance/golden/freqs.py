"""Frequencies by MPFR in every numerics mode, and sines and cosines of their angles.

Modes other than exact take the steps of a framework. Each step is rounded to f32, or to f64 if Python floats compute
it. Powers, logarithms and exponentials are correctly rounded like other steps.

    hf_f32         Hugging Face transformers, modeling_rope_utils.py: inverse frequencies; PyTorch divides a number by a
                   tensor as reciprocal times number
    torch_exp_f32  exp(arange(0, d, 2) * (-log(theta)/d)), the widespread PyTorch module
    ggml_f32       ggml-cpu/ops.cpp ggml_rope_cache_init, rope_yarn: angles by an iterated product

With xPos the sine and cosine of a pair are multiplied by zeta^((p - centre) / scale_base), or divided by it, with
zeta = (2i + 0.4 d) / (1.4 d) = (10 i + 2 d) / (7 d) (2212.10554, section 3.2).
"""

import math
from functools import cached_property
from typing import Dict, Iterator, List, Optional, Tuple

import gmpy2
from gmpy2 import mpfr

from rounding import F64, f32, in_f32, nearest_f32, round_to_odd, sincos_of_angle, two_pi
from problem import FreqsSpec, pairs_of
from scalings import scaling_of

# The sine of k twelfths of a turn, if it is a rational number.
SINES_OF_TWELFTHS = (0.0, 0.5, None, 1.0, None, 0.5, 0.0, -0.5, None, -1.0, None, -0.5)


class Freqs:
    """Frequencies of a spec in radians per position: omega, exact, and inv_freq, as the f32 modes compute it."""

    def __init__(self, spec: FreqsSpec) -> None:
        self.spec = spec
        self.scaling = scaling_of(spec)
        self.omega = [self._omega(i) for i in range(spec.n_pairs)]
        self.inv_freq = [float(self._inv_freq(i)) for i in range(spec.n_pairs)]
        self.attention_factor = spec.attention_factor or (1.0 if spec.inv_freq else self.scaling.attention())
        self._angles: Dict[float, List[float]] = {}

    def _omega(self, i: int) -> mpfr:
        if self.spec.inv_freq:
            return mpfr(self.spec.inv_freq[i])
        if self.scaling.is_unrotated(i):
            return mpfr(0)
        _, numerator, denominator = pairs_of(self.spec)[i]
        omega = self.scaling.omega(self.scaling.theta() ** (mpfr(-numerator) / denominator), i)
        return two_pi() / gmpy2.rint(two_pi() / omega) if self.scaling.rounds_wavelength else omega

    def _inv_freq(self, i: int) -> mpfr:
        spec, scaling = self.spec, self.scaling
        _, numerator, denominator = pairs_of(spec)[i]
        if spec.inv_freq:
            return f32(spec.inv_freq[i])
        if spec.numerics == "torch_exp_f32":
            slope = -float(F64.log(spec.rope_theta)) / denominator
            with in_f32():
                return gmpy2.exp(f32(numerator) * f32(slope))
        if scaling.is_unrotated(i):
            return mpfr(0)
        theta = f32(scaling.hf_theta())
        with in_f32():
            return scaling.inv_freq(theta ** (f32(numerator) / f32(denominator)), i)

    @cached_property
    def _ggml(self) -> List[Tuple[mpfr, mpfr]]:
        """The divisor of each pair's angle, and the weight of its unscaled angle."""
        divisors = [f32(self.scaling.ggml_divisor(omega, i)) for i, omega in enumerate(self.omega)]
        with in_f32():
            return [(divisor, self.scaling.ggml_unscaled_weight(i)) for i, divisor in enumerate(divisors)]

    def _ggml_angles(self, position: float) -> List[float]:
        pairs, angles = self._ggml, []
        with in_f32():
            theta_scale = f32(self.scaling.python_theta()) ** (f32(-2) / f32(self.spec.dim))
            theta, freq_scale = f32(position), self.scaling.ggml_scale()
            for divisor, weight in pairs:
                extrapolated = theta / divisor
                interpolated = freq_scale * extrapolated
                angles.append(float(interpolated * (1 - weight) + extrapolated * weight))
                theta = theta * theta_scale
        return angles

    def angle(self, pair: int, position: float) -> float:
        """Returns the angle of a pair in an f32 mode."""
        if self.spec.numerics != "ggml_f32":
            return nearest_f32(f32(position) * self.inv_freq[pair])
        if position not in self._angles:
            self._angles[position] = self._ggml_angles(position)
        return self._angles[position][pair]

    def sincos(self, pair: int, position: float, m: float = 1) -> Tuple[float, float]:
        """Returns m sin and m cos of a pair at a position, in the spec's numerics mode, rounded to odd.

        In an f32 mode with m other than 1, they are exact products of f32 values.
        """
        if self.spec.numerics == "exact":
            return self._exact_sincos(pair, position, m)
        sine, cosine = sincos_of_angle(self.angle(pair, position))
        if m == 1:
            return sine, cosine
        return nearest_f32(sine) * nearest_f32(m), nearest_f32(cosine) * nearest_f32(m)

    def _exact_sincos(self, pair: int, position: float, m: float) -> Tuple[float, float]:
        angle = self.omega[pair] * position
        is_zero = bool(angle == 0)
        twelfth = None if is_zero else self._twelfth(pair, position)
        sine, cosine = gmpy2.sin_cos(angle)
        rational_sine = rational_cosine = None
        if twelfth is not None:
            rational_sine = SINES_OF_TWELFTHS[twelfth]
            rational_cosine = SINES_OF_TWELFTHS[(twelfth + 3) % 12]  # the sine a quarter turn on
        if rational_sine is not None:
            sine = mpfr(math.copysign(1, position) * rational_sine)
        if rational_cosine is not None:
            cosine = mpfr(rational_cosine)
        scale, exact = self._scale(pair, position, m)
        return (
            round_to_odd(sine * scale, exact and (is_zero or rational_sine is not None)),
            round_to_odd(cosine * scale, exact and (is_zero or rational_cosine is not None)),
        )

    def _twelfth(self, pair: int, position: float) -> Optional[int]:
        """Returns the phase of a pair in twelfths of a turn if it and the wavelength are integers, else None."""
        if not self.scaling.rounds_wavelength or self.spec.inv_freq:
            return None
        twelfths = mpfr(abs(position)) * 12 / gmpy2.rint(two_pi() / self.omega[pair])
        return int(math.fmod(twelfths, 12)) if gmpy2.is_integer(twelfths) else None

    def _scale(self, pair: int, position: float, m: float) -> Tuple[mpfr, bool]:
        """Returns the factor of a sine by xPos and m, and true if it is exact, such as (3/8)^2."""
        spec = self.spec
        if spec.xpos_scale_base == 0:
            return mpfr(m), True
        context = gmpy2.get_context()
        context.clear_flags()
        power = (mpfr(position) - spec.xpos_centre) / spec.xpos_scale_base
        zeta = mpfr(10 * pair + 2 * spec.dim), mpfr(7 * spec.dim)
        # zeta^power or its inverse. The power is made positive, so that values such as (3/8)^2 stay exact.
        up, down = zeta if spec.xpos_inverse == (power < 0) else zeta[::-1]
        scale = m * (up / down) ** abs(power) if power else mpfr(m)
        return scale, not context.inexact


# ---- Positions next to a zero ----
#
# |sin(p omega)| is small if p omega is near h pi, so p is the denominator of a convergent h/p of the continued
# fraction of omega/pi. |cos(p omega)| is small if 2 p omega / pi is near an odd integer. Nothing below the next
# denominator is nearer (Khinchin, "Continued Fractions", theorem 17).

SINE, COSINE = 0, 1
MOST_POSITIONS = 64
MOST_TERMS = 64  # of a continued fraction


def convergents(omega: mpfr, kind: int) -> Iterator[Tuple[int, float]]:
    """Yields positions below 2^31 next to a zero of a sine or cosine, ascending, and their distance from it."""
    x = omega / gmpy2.const_pi() * (2 if kind == COSINE else 1)
    rest, h0, h1, k0, k1 = x, 0, 1, 1, 0
    for _ in range(MOST_TERMS):
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
    """Returns the n positions of the least distance, the nearest first."""
    by_distance = sorted(found, key=lambda item: (item[1], item[0]))
    return list(dict.fromkeys(position for position, _ in by_distance))[:n]


def hard_positions(freqs: Freqs, kind: int, n: int) -> List[int]:
    """Returns the n positions nearest to a zero of any pair, ascending."""
    return sorted(_nearest((item for omega in freqs.omega for item in convergents(omega, kind)), n))


def hard_halves(freqs: Freqs, n: int) -> List[int]:
    """Returns n odd numbers m below 2^24 with the position m/2 next to a zero, the nearest first."""
    found = (item for kind in (SINE, COSINE) for omega in freqs.omega for item in convergents(omega / 2, kind))
    return _nearest(((m, distance) for m, distance in found if m % 2 and m < 1 << 24), n)


def is_convergent(freqs: Freqs, position: int) -> bool:
    """Returns true if a position is next to a zero of some pair."""
    found = (item for kind in (SINE, COSINE) for omega in freqs.omega for item in convergents(omega, kind))
    return any(position == near for near, _ in found)
