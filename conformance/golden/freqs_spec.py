"""Fields of a problem that determine its frequencies, exponents of theta, and axes of positions.

Before scaling, omega_i = theta^(-2i/d), or theta^(-i/(n-1)) with n = d/2 for the spacing `endpoint`. If positions have
several axes (2409.12191), each pair rotates with one of them. mrope_layout is one of:

    qwen2_vl         the pairs of an axis follow each other: a section
    qwen3_vl         pair k of axis a is pair 3k + a of all; the rest rotates with axis 0
    qwen2_vl_vision  as qwen2_vl, but a section of n pairs has omega_j = theta^(-2j/(2n))
    pixtral          as qwen2_vl, but pair j of an axis has the frequency of pair rank(axis, j) of all
    kimi             as qwen2_vl_vision, but pair j of an axis is pair rank(axis, j) of all

rank(axis, j) is the number of pairs before pair j of an axis, if axes take turns as long as they have pairs.
"""

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Mapping, Tuple


@dataclass(frozen=True)
class FreqsSpec:
    """The fields of a problem that determine its frequencies, by their names in the notation."""

    dim: int = 0  # rotary_dim, if the kernel has that field
    numerics: str = "exact"
    freq_spacing: str = "exponent"
    scaling: str = "none"
    rope_theta: float = 10000.0
    factor: float = 1.0
    original_max_position_embeddings: float = 0.0
    low_freq_factor: float = 0.0
    high_freq_factor: float = 0.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float = 0.0
    mscale: float = 0.0
    mscale_all_dim: float = 0.0
    max_position_embeddings: float = 0.0
    seq_len: int = 0
    partial_rotary_factor: float = 1.0
    mrope_section: Tuple[int, ...] = ()
    mrope_layout: str = "qwen2_vl"
    xpos_scale_base: float = 0.0
    xpos_centre: float = 0.0
    xpos_inverse: bool = False
    short_factor: Tuple[float, ...] = ()
    long_factor: Tuple[float, ...] = ()
    inv_freq: Tuple[float, ...] = ()

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "FreqsSpec":
        """Returns the spec of the fields of a problem."""
        values = {"dim": fields["rotary_dim" if "rotary_dim" in fields else "dim"]}
        for field in dataclasses.fields(cls):
            if field.name != "dim" and field.name in fields:
                value = fields[field.name]
                values[field.name] = tuple(value) if isinstance(value, list) else value
        return cls(**values)

    @property
    def n_pairs(self) -> int:
        """The number of frequencies."""
        return (self.dim + 1) // 2

    def notation(self) -> str:
        """Returns the fields that differ from their defaults, in the notation."""
        words = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            if isinstance(value, tuple):
                value = ",".join(map(repr, value))
            name = "rotary_dim" if field.name == "dim" and self.dim % 2 == 0 else field.name
            words.append(f"{name}={str(value).lower() if isinstance(value, bool) else value}")
        return " ".join(words)


@dataclass(frozen=True)
class Section:
    """The n pairs from pair `first` on, which rotate with one axis."""

    axis: int
    first: int
    n: int


@lru_cache(maxsize=None)
def section(spec: FreqsSpec, i: int) -> Section:
    """Returns the section of pair i. With one axis, all pairs are one section."""
    if not spec.mrope_section:
        return Section(0, 0, spec.dim // 2)
    axis, first = 0, 0
    while axis < 2 and i >= first + pairs_of_axis(spec, axis):
        first += pairs_of_axis(spec, axis)
        axis += 1
    return Section(axis, first, pairs_of_axis(spec, axis))


def pairs_of_axis(spec: FreqsSpec, axis: int) -> int:
    """Returns the number of pairs of an axis."""
    return spec.mrope_section[axis] if axis < len(spec.mrope_section) else 0


def rank(spec: FreqsSpec, axis: int, j: int) -> int:
    """Returns the number of pairs before pair j of an axis if axes take turns."""
    return sum(min(pairs_of_axis(spec, a), j + (a < axis)) for a in range(3))


@lru_cache(maxsize=None)
def unrank(spec: FreqsSpec, wanted: int) -> Tuple[int, int]:
    """Returns the axis and the j of the pair of this rank."""
    return next((a, j) for a in range(3) for j in range(pairs_of_axis(spec, a)) if rank(spec, a, j) == wanted)


def axis_of(spec: FreqsSpec, i: int) -> int:
    """Returns the axis with which pair i rotates."""
    if spec.mrope_section and spec.mrope_layout == "kimi":
        return unrank(spec, i)[0]
    if spec.mrope_section and spec.mrope_layout == "qwen3_vl":
        return i % 3 if i // 3 < pairs_of_axis(spec, i % 3) else 0
    return section(spec, i).axis


def exponent(spec: FreqsSpec, i: int) -> Tuple[int, int]:
    """Returns numerator and denominator of the exponent e of pair i: omega_i = theta^-e."""
    layout = spec.mrope_layout if spec.mrope_section else ""
    own = section(spec, i)
    if layout == "qwen2_vl_vision":
        return 2 * (i - own.first), 2 * own.n
    if spec.freq_spacing == "endpoint":
        n = spec.dim // 2
        return (i, n - 1) if n > 1 else (0, 1)
    if layout == "pixtral":
        return 2 * rank(spec, own.axis, i - own.first), spec.dim
    if layout == "kimi":
        axis, j = unrank(spec, i)
        return 2 * j, 2 * pairs_of_axis(spec, axis)
    return 2 * i, spec.dim
