"""What was read of a model: the ways in which it encodes positions, each with the origins of its numbers."""

import re
from dataclasses import dataclass, field, fields
from typing import Dict, NamedTuple, Optional, Tuple


class Origin(NamedTuple):
    """Where a number is from.

    kind: "file" (key says it), "class" (the default of its class, as key is not there), "assumed" (key is not there:
    formula is taken) or "derived" (formula). value: what was found there.
    """

    kind: str
    key: str = ""
    formula: str = ""
    value: float = 0.0


@dataclass
class Frequencies:
    """Parameters of a table of frequencies, by the names of problems. Factors are those of longrope."""

    rope_theta: float = 10000.0
    factor: float = 1.0
    original_max_position_embeddings: float = 0.0
    low_freq_factor: float = 0.0
    high_freq_factor: float = 0.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float = 0.0
    mscale: float = 0.0
    mscale_all_dim: float = 0.0
    partial_rotary_factor: float = 1.0
    truncate: bool = True
    scaling: str = "none"
    freq_convention: str = "exponent"
    dim: int = 0
    max_position_embeddings: float = 0.0
    short_factor: Tuple[float, ...] = ()
    long_factor: Tuple[float, ...] = ()
    mrope_section: Tuple[int, ...] = ()
    mrope_layout: str = "chunked"


@dataclass
class Part(Frequencies):
    """One way in which a model encodes positions: most have one, some one for each type of layers or each stack."""

    encoding: str = ""
    name: str = ""  # "full", "sliding", "encoder"; "" where it is the only one
    stack: str = ""  # layers whose steps are their own: "encoder", "vision"
    # Sizes
    length: int = 0  # positions it takes
    width: int = 0
    heads: int = 0
    key_heads: int = 0
    head_dim: int = 0
    rotary_dim: int = 0
    layers: int = 0  # that encode positions so; 0: not known
    decoder_layers: int = 0  # the same of T5's decoder
    decodes: bool = True  # generates token by token
    x_scale: float = 1.0  # of embeddings
    scaled: bool = False  # by the square root of the width
    # A learned table
    tabled: bool = False
    first: int = 0  # row of position 0
    rows: int = 0
    # Sinusoids
    cos_first: bool = False
    sin_cos: bool = False
    shrunk: bool = False  # divided by the square root of their width
    # Biases and terms
    alibi_bias_max: float = 0.0
    num_buckets: int = 0
    max_distance: int = 0
    without_c2p: bool = False
    with_p2c: bool = False
    both_ways: bool = False
    bare: bool = False
    left: int = 0
    right: int = 0
    of_values: bool = False
    backward: bool = False
    # Pictures
    image: int = 0
    patch: int = 0
    side: int = 0
    columns: int = 0
    window: int = 0
    windows: int = 0
    window_class: bool = False
    picture: int = 0
    merged: int = 0
    # Towers
    tower: bool = False
    axes: int = 0
    column_first: bool = False
    fractions: bool = False
    halves: bool = False
    dealt: bool = False
    alternating: bool = False
    origin: int = 0
    # A norm before the rotation
    norms: bool = False
    across_heads: bool = False
    unit: bool = False
    epsilon: float = 0.0
    ggml: bool = False  # the profile of its tables is that of llama.cpp
    in_f64: bool = False  # its code forms angles in f64
    # What members say that becomes one of the others
    alibi: bool = False
    adjacent: bool = False
    relative: bool = False
    biased: bool = False
    own_bias: bool = False
    shared_bias: bool = False
    single: bool = False
    grouped: bool = False
    latent: int = 0
    step: int = 0  # from one to the next: patches, or layers of another kind

    origins: Dict[str, Origin] = field(default_factory=dict)

    def set(self, quantity: str, value: float, formula: str = "") -> None:
        """Sets what follows from other quantities, which the formula names."""
        self.say(quantity, self.formula(formula), value)
        setattr(self, quantity, value)

    def say(self, what: str, how: str, value: Optional[float] = None) -> None:
        """Says how something follows from keys."""
        own = getattr(self, what, None) if value is None else value
        self.origins[what] = Origin("derived", "", how, own if isinstance(own, (int, float)) else 0.0)

    def origin_in(self, key: str, value: float = 0.0) -> Origin:
        """Returns the origin of what a key of the file says."""
        return Origin("file", key, "", value)

    def formula(self, text: str) -> str:
        """Returns a formula of quantities as one of keys. What changes nothing is left out."""

        def value(name: str) -> float:
            return float(getattr(self, name)) if name in NAMES else float("nan")

        text = re.sub(r" [+-] (\w+)", lambda m: "" if value(m[1]) == 0 else m[0], text)
        text = re.sub(r" \* (\w+)", lambda m: "" if value(m[1]) == 1 else m[0], text)
        alone = " " not in text
        keys = re.sub(r"\b[a-z_]+\b", lambda m: self._key(m[0], alone), text)
        return keys if re.search("[A-Za-z]", keys) else ""

    def _key(self, name: str, alone: bool) -> str:
        origin = self.origins.get(name)
        if name not in NAMES or origin is None or origin.value != getattr(self, name):
            return name
        if origin.kind in ("file", "class"):
            return origin.key
        if not origin.formula:
            return f"{getattr(self, name):.10g}"
        if len(origin.formula) >= 40:
            return name
        return origin.formula if alone or " " not in origin.formula else f"({origin.formula})"

    @property
    def rotates(self) -> bool:
        """Whether it turns pairs of channels."""
        return self.encoding in ("rope_half", "rope_interleaved")


NAMES = frozenset(one.name for one in fields(Part))
