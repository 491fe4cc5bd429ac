"""Data read from a model file: each way in which the model encodes positions, with the origins of its numbers."""

import re
from dataclasses import dataclass, field, fields
from typing import Any, Dict, NamedTuple, Optional, Tuple


class Origin(NamedTuple):
    """Source of a number.

    `kind` is "file" (the value of `key`), "class" (the default of the model's class, as the file lacks `key`),
    "assumed" (computed by `formula`, as the file lacks `key`) or "derived" (computed by `formula`). `value` is the
    number at the source.
    """

    kind: str
    key: str = ""
    formula: str = ""
    value: float = 0.0


@dataclass
class Frequencies:
    """Parameters of frequencies, by their names in problems. short_factor and long_factor belong to longrope."""

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
    freq_spacing: str = "exponent"
    dim: int = 0
    max_position_embeddings: float = 0.0
    short_factor: Tuple[float, ...] = ()
    long_factor: Tuple[float, ...] = ()
    mrope_section: Tuple[int, ...] = ()
    mrope_layout: str = "qwen2_vl"

    def changed_frequencies(self) -> Dict[str, Any]:
        """Returns the parameters that differ from their defaults, without dim."""
        stated = {one.name: getattr(self, one.name) for one in fields(Frequencies) if one.name != "dim"}
        return {name: value for name, value in stated.items() if value != getattr(Frequencies, name)}


@dataclass
class Part(Frequencies):
    """One way in which a model encodes positions. Some models have one for each type of layers or each stack."""

    encoding: str = ""
    name: str = ""  # "full", "sliding", "encoder"; "" where it is the only one
    stack: str = ""  # layers whose steps are their own: "encoder", "vision"
    # Sizes
    length: int = 0  # positions it takes
    width: int = 0  # of embeddings, or of rows that are added to them
    heads: int = 0  # of queries
    key_heads: int = 0  # of keys, each of which several queries may share
    head_dim: int = 0  # channels of a head
    rotary_dim: int = 0  # channels of a head that rotate
    layers: int = 0  # that encode positions so; 0: not known
    decoder_layers: int = 0  # the same of T5's decoder
    decodes: bool = True  # generates token by token
    scaled: bool = False  # embeddings are multiplied by the square root of their width
    # A learned table
    tabled: bool = False  # it has a table of learned rows
    first: int = 0  # row of position 0
    rows: int = 0  # of the table
    # Sinusoids
    cos_first: bool = False  # all cosines, then all sines
    sin_cos: bool = False  # all sines, then all cosines
    shrunk: bool = False  # divided by the square root of their width
    # Biases and terms
    alibi_bias_max: float = 0.0  # exponent of the gentlest slope, negated
    num_buckets: int = 0  # of distances
    max_distance: int = 0  # from which on keys share a bucket or a row
    without_c2p: bool = False  # DeBERTa: no term of queries by positions
    with_p2c: bool = False  # DeBERTa: a term of keys by positions as well
    both_ways: bool = False  # a sinusoid of each distance to earlier and to later keys (XLNet)
    bare: bool = False  # terms are not scaled by the square root of head_dim
    left: int = 0  # clipped distances to earlier keys
    right: int = 0  # clipped distances to later keys
    of_values: bool = False  # values have terms by distance as well
    backward: bool = False  # distances count from the key to the query
    # Pictures
    image: int = 0  # pixels, or frames, along a side of the input
    patch: int = 0  # pixels, or frames, along a side of a patch
    side: int = 0  # rows of patches
    columns: int = 0  # columns of patches
    window: int = 0  # patches along a side of a window
    windows: int = 0  # in a picture
    window_class: bool = False  # a class token stands before the patches of a window
    picture: int = 0  # patches along a side of the picture in cases
    merged: int = 0  # patches along a side that become one token
    # Towers
    tower: bool = False  # of pictures: positions are those of patches
    axes: int = 0  # rows and columns; time as well
    column_first: bool = False  # positions of a patch: its column, then its row
    fractions: bool = False  # positions are fractions of the picture (DINOv3)
    halves: bool = False  # each half of a head rotates as a head of its own
    dealt: bool = False  # wavelengths are dealt out to the axes by turns
    alternating: bool = False  # pairs follow the axes by turns
    origin: int = 0  # position of the first row and column
    # A norm before the rotation
    norms: bool = False  # queries and keys are normalised
    across_heads: bool = False  # over all heads of a token, not each by itself
    unit: bool = False  # weights are stored less 1
    epsilon: float = 0.0  # added to the mean square
    ggml: bool = False  # the numerics mode of its tables is that of llama.cpp
    in_f64: bool = False  # its code forms angles in f64
    # Values of keys that determine other members
    alibi: bool = False  # encoding is alibi
    adjacent: bool = False  # encoding is rope_interleaved
    relative: bool = False  # a switch without which the type has no such positions
    biased: bool = False  # learned positions are added to the input as well
    own_bias: bool = False  # each layer has a bias of its own (BEiT)
    shared_bias: bool = False  # all layers share one (BEiT)
    single: bool = False  # one key head for all, or one token more
    grouped: bool = False  # the key heads of Falcon's newer decoder
    latent: int = 0  # rotary_dim and head_dim of latent attention
    step: int = 0  # from one to the next: patches, or layers of another kind

    origins: Dict[str, Origin] = field(default_factory=dict)

    def set(self, quantity: str, value: float, formula: str = "") -> None:
        """Sets a member and its origin: the formula of other members by which it was computed."""
        self.set_origin(quantity, self.formula(formula), value)
        setattr(self, quantity, value)

    def set_origin(self, what: str, how: str, value: Optional[float] = None) -> None:
        """Sets the origin of a member: `how` describes its computation from keys."""
        own = getattr(self, what, None) if value is None else value
        self.origins[what] = Origin("derived", "", how, own if isinstance(own, (int, float)) else 0.0)

    def origin_in(self, key: str, value: float = 0.0) -> Origin:
        """Returns the origin of a value that the file has under a key."""
        return Origin("file", key, "", value)

    def formula(self, text: str) -> str:
        """Returns a formula with members replaced by their keys. Terms of 0 and factors of 1 are left out."""

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
        """True if it rotates pairs of channels."""
        return self.encoding in ("rope_half", "rope_interleaved")


NAMES = frozenset(one.name for one in fields(Part))
