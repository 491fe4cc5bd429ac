"""Scalings of frequencies by MPFR: first by the exact formula, then in the rounded steps of frameworks (freqs.py).

d is dim, f factor, L original_max_position_embeddings, M max_position_embeddings, and omega the frequency of a pair.
The scaled frequency is:

    linear        omega/f
    llama3        omega/f for wavelengths above L/low, omega below L/high, a blend between
    yarn          a blend of omega/f and omega along a ramp over the pairs (2309.00071, 3.2)
    ntk           omega with the base theta f^(d/(d-2)) in place of theta
    dynamic       omega with the base theta (f s/M - (f-1))^(d/(d-2)); s is the length of the sequence, at least M
    longrope      omega divided by the pair's long factor for sequences above L, else by its short factor
    proportional  omega/f for the first share of the pairs; 0 for the others, which stay unrotated
    resonance     2 pi divided by the integer nearest to 2 pi/omega
    resonance_yarn   the same with yarn's omega
"""

import math
from typing import Dict, Tuple, Type

import gmpy2
from gmpy2 import mpfr

from rounding import EXACT, F32, F64, Real, clamp, f32, in_f32, two_pi
from problem import FreqsSpec, pairs_of


class Scaling:
    """Base class, which changes no frequency. Subclasses override the steps that they change."""

    numerics: Tuple[str, ...] = ("exact", "hf_f32", "ggml_f32")
    rounds_wavelength = False  # as the last step, wavelengths are rounded to whole positions

    def __init__(self, spec: FreqsSpec) -> None:
        self.spec = spec

    def theta(self) -> mpfr:
        """Returns the base."""
        return mpfr(self.spec.rope_theta)

    def is_unrotated(self, i: int) -> bool:
        """Returns true if pair i has frequency 0."""
        return False

    def omega(self, omega: mpfr, i: int) -> mpfr:
        """Returns the frequency of pair i from its unscaled frequency."""
        return omega

    def attention(self) -> float:
        """Returns the attention factor, correctly rounded."""
        return 1.0

    # Steps of frameworks. Those that return mpfr are called within in_f32(), except ggml_divisor().

    def python_theta(self) -> float:
        """Returns the base, computed in f64 like Python's floats."""
        return self.spec.rope_theta

    def hf_theta(self) -> float:
        """Returns the base of hf_f32, in which a scaling may compute by f32 tensors."""
        return self.python_theta()

    def inv_freq(self, power: mpfr, i: int) -> mpfr:
        """Returns the frequency of pair i from theta^(2i/dim)."""
        return 1 / power

    def ggml_divisor(self, omega: mpfr, i: int) -> Real:
        """Returns the divisor of angles of pair i in a GGUF file; omega is its scaled frequency."""
        return 1

    def ggml_scale(self) -> mpfr:
        """Returns the factor of interpolated angles in ggml."""
        return f32(1)

    def ggml_unscaled_weight(self, i: int) -> mpfr:
        """Returns the weight of the unscaled angle of pair i in ggml's blend."""
        return f32(0)


class Unscaled(Scaling):
    """No scaling, in every numerics mode."""

    numerics = ("exact", "hf_f32", "ggml_f32", "torch_exp_f32")


class Linear(Scaling):
    """All frequencies divided by the factor."""

    def omega(self, omega: mpfr, i: int) -> mpfr:
        return omega / self.spec.factor

    def inv_freq(self, power: mpfr, i: int) -> mpfr:
        return 1 / power / f32(self.spec.factor)

    def ggml_scale(self) -> mpfr:
        return 1 / f32(self.spec.factor)


class Llama3(Scaling):
    """Three bands of wavelengths."""

    def omega(self, omega: mpfr, i: int) -> mpfr:
        wavelength, context = two_pi() / omega, mpfr(self.spec.original_max_position_embeddings)
        low, high = mpfr(self.spec.low_freq_factor), self.spec.high_freq_factor
        scaled = omega / self.spec.factor
        if wavelength > context / low:
            return scaled
        if wavelength < context / high:
            return omega
        smooth = (context / wavelength - low) / (high - low)
        return omega * smooth + scaled * (1 - smooth)

    def inv_freq(self, power: mpfr, i: int) -> mpfr:
        context, factor = self.spec.original_max_position_embeddings, f32(self.spec.factor)
        low, high = self.spec.low_freq_factor, self.spec.high_freq_factor
        inv_freq = 1 / power
        wavelength = 1 / inv_freq * f32(2 * math.pi)
        kept = inv_freq / factor if wavelength > f32(context / low) else inv_freq
        if wavelength > f32(context / low) or wavelength < f32(context / high) or low == high:
            return kept
        smooth = 1 / wavelength * f32(context)
        smooth = (smooth - f32(low)) / f32(high - low)
        return (1 - smooth) * kept / factor + smooth * kept

    def ggml_divisor(self, omega: mpfr, i: int) -> mpfr:
        # Converters to GGUF store divisors: the unscaled frequency divided by the scaled one.
        _, numerator, denominator = pairs_of(self.spec)[i]
        return self.theta() ** (mpfr(-numerator) / denominator) / omega


class Yarn(Scaling):
    """A ramp over the pairs, from the frequency to that divided by the factor."""

    def _correction_dim(self, rotations: float) -> mpfr:
        """Returns the pair with so many turns in L positions: d log(L / (2 pi rotations)) / (2 log theta)."""
        ratio = self.spec.original_max_position_embeddings / (two_pi() * rotations)
        return gmpy2.log(ratio) * self.spec.dim / (2 * gmpy2.log(self.spec.rope_theta))

    def _ramp_ends(self) -> Tuple[Real, Real]:
        low, high = self._correction_dim(self.spec.beta_fast), self._correction_dim(self.spec.beta_slow)
        if self.spec.truncate:
            low, high = gmpy2.floor(low), gmpy2.ceil(high)
        return clamp(low, 0, math.inf), clamp(high, -math.inf, self.spec.dim - 1)

    def omega(self, omega: mpfr, i: int) -> mpfr:
        low, high = self._ramp_ends()
        width = high - low or mpfr(1) / 1000
        ramp = clamp((i - mpfr(low)) / width, 0, 1)
        return omega * (1 - ramp) + omega / self.spec.factor * ramp

    def inv_freq(self, power: mpfr, i: int) -> mpfr:
        # The ends of the ramp are rounded once, although Python rounds each step towards them.
        with gmpy2.local_context(EXACT):
            low, high = map(float, self._ramp_ends())
        if low == high:
            high += 0.001
        extrapolation, interpolation = 1 / power, 1 / (f32(self.spec.factor) * power)
        ramp = clamp((i - f32(low)) / f32(high - low), 0, 1)
        weight = 1 - f32(ramp)
        return interpolation * (1 - weight) + extrapolation * weight

    def _ggml_corr_dim(self, rotations: float) -> mpfr:
        """Returns n_dims log(n_ctx_orig / (n_rot 2 pi)) / (2 log(base)), in the order of operations of ggml."""
        span = f32(rotations) * 2 * f32(math.pi)
        ratio = f32(self.spec.original_max_position_embeddings) / span
        return self.spec.dim * gmpy2.log(ratio) / (2 * gmpy2.log(f32(self.spec.rope_theta)))

    def ggml_scale(self) -> mpfr:
        return 1 / f32(self.spec.factor)

    def ggml_unscaled_weight(self, i: int) -> mpfr:
        low = max(gmpy2.floor(self._ggml_corr_dim(self.spec.beta_fast)), 0)
        high = min(gmpy2.ceil(self._ggml_corr_dim(self.spec.beta_slow)), self.spec.dim - 1)
        y = (i - f32(low)) / max(f32(0.001), f32(high) - low)
        return f32(1 - clamp(y, 0, 1))

    def attention(self) -> float:
        spec = self.spec
        both = spec.mscale != 0 and spec.mscale_all_dim != 0
        if spec.numerics == "ggml_f32" and not both:
            with in_f32():
                return float(1 + f32(0.1) * gmpy2.log(1 / self.ggml_scale()))
        if both:
            return float(self._magnitude(spec.mscale) / self._magnitude(spec.mscale_all_dim))
        return float(self._magnitude(1))

    def _magnitude(self, mscale: float) -> mpfr:
        """Returns mscale log(f)/10 + 1, or 1 for f <= 1."""
        return gmpy2.log(max(self.spec.factor, 1)) * mscale / 10 + 1


class Ntk(Scaling):
    """A base raised by a power of the factor."""

    def stretch(self) -> Real:
        """Returns the factor of theta before it is raised to the power dim/(dim-2)."""
        return self.spec.factor

    def theta(self) -> mpfr:
        return self.spec.rope_theta * mpfr(self.stretch()) ** (mpfr(self.spec.dim) / (self.spec.dim - 2))

    def python_stretch(self) -> float:
        """Returns the same, computed in f64 like Python's floats."""
        return self.spec.factor

    def python_theta(self) -> float:
        dim = self.spec.dim
        return self.spec.rope_theta * float(F64.pow(self.python_stretch(), dim / (dim - 2)))


class Dynamic(Ntk):
    """A base that grows with the sequence beyond max_position_embeddings."""

    def stretch(self) -> Real:
        f, most = mpfr(self.spec.factor), self.spec.max_position_embeddings
        return f * max(self.spec.seq_len, most) / most - f + 1

    def python_stretch(self) -> float:
        f, most = self.spec.factor, self.spec.max_position_embeddings
        return f * max(self.spec.seq_len, most) / most - (f - 1)

    def hf_theta(self) -> float:
        # base * ((factor * seq_len / max_position_embeddings) - (factor - 1)) ** (dim / (dim - 2)). seq_len is a
        # tensor: torch.max(position_ids) + 1. factor - 1 and the exponent are Python floats.
        f, now, most, dim = self.spec.factor, self.spec.seq_len, self.spec.max_position_embeddings, self.spec.dim
        if now <= most:
            return self.python_theta()
        with in_f32():
            stretch = f32(f) * f32(now) / f32(most) - f32(f - 1)
            return float(f32(self.spec.rope_theta) * F32.pow(stretch, dim / (dim - 2)))


class LongRope(Scaling):
    """A divisor for each pair."""

    def _factor(self, i: int) -> float:
        beyond = self.spec.seq_len > self.spec.original_max_position_embeddings
        return (self.spec.long_factor if beyond else self.spec.short_factor)[i]

    def omega(self, omega: mpfr, i: int) -> mpfr:
        return omega / self._factor(i)

    def inv_freq(self, power: mpfr, i: int) -> mpfr:
        return 1 / (f32(self._factor(i)) * power)

    def ggml_divisor(self, omega: mpfr, i: int) -> float:
        return self._factor(i)

    def attention(self) -> float:
        ratio = gmpy2.log(self.spec.factor) / gmpy2.log(self.spec.original_max_position_embeddings)
        return float(gmpy2.sqrt(ratio + 1))


class Proportional(Linear):
    """A share of all pairs rotates, divided by the factor."""

    numerics = ("exact", "hf_f32")

    def is_unrotated(self, i: int) -> bool:
        # int(share * dim // 2) pairs rotate. The product is a Python float.
        return self.spec.partial_rotary_factor * self.spec.dim // 2 <= i


class Resonance(Scaling):
    """Whole wavelengths."""

    numerics = ("exact",)
    rounds_wavelength = True


class ResonanceYarn(Yarn):
    """Whole wavelengths, after YaRN."""

    numerics = ("exact",)
    rounds_wavelength = True
    inv_freq = Scaling.inv_freq


SCALINGS: Dict[str, Type[Scaling]] = {
    "none": Unscaled,
    "linear": Linear,
    "llama3": Llama3,
    "yarn": Yarn,
    "dynamic": Dynamic,
    "ntk": Ntk,
    "longrope": LongRope,
    "proportional": Proportional,
    "resonance": Resonance,
    "resonance_yarn": ResonanceYarn,
}


def scaling_of(spec: FreqsSpec) -> Scaling:
    """Returns the scaling of a spec."""
    return SCALINGS[spec.scaling](spec)
