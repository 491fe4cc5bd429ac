"""Data read from a model file: each way in which the model encodes positions, with the origins of its numbers.

Readers of files fill a Part: part.width = 4096, part.origins["width"] = Origin("file", "hidden_size", value=4096).
calls.py makes problems of parts, and posenc explain prints their origins.
"""

import re
from dataclasses import dataclass, field, fields
from typing import Any, Dict, NamedTuple, Optional, Tuple


class Origin(NamedTuple):
    """Source of a number.

    `kind` is one of four:

        file     it is the value of `key`
        class    the file lacks `key`: it is the default of the model's class
        assumed  the file lacks `key`: `formula` gives it
        derived  `formula` gives it

    `value` is the number at the source, from which the member of a part may differ.
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
        names = [parameter.name for parameter in fields(Frequencies) if parameter.name != "dim"]
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(Frequencies, name)}


@dataclass
class Part(Frequencies):
    """One way in which a model encodes positions. Some models have one for each type of layers or each stack.

    Members that do not concern the encoding of a part keep their defaults.
    """

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
    layers: int = 0  # number of layers that encode positions so; 0: not known
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
    windows: int = 0  # number of windows in a picture
    window_class: bool = False  # a class token stands before the patches of a window
    picture: int = 0  # patches along a side of the picture in cases
    merged: int = 0  # patches along a side that become one token
    # Towers
    tower: bool = False  # of pictures: positions are those of patches
    axes: int = 0  # 2: rows and columns; 3: time as well
    column_first: bool = False  # positions of a patch: its column, then its row
    fractions: bool = False  # positions are fractions of the picture (DINOv3)
    halves: bool = False  # each half of a head rotates as a head of its own
    dealt: bool = False  # wavelengths are dealt out to the axes by turns
    alternating: bool = False  # pairs follow the axes by turns
    origin: int = 0  # position of the first row and column
    # A norm before the rotation
    norms: bool = False  # queries and keys are normalised
    across_heads: bool = False  # the norm is over all heads of a token, not each by itself
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
    single: bool = False  # one key head for all queries; a class token before a time series
    grouped: bool = False  # the key heads of Falcon's newer decoder
    latent: int = 0  # rotary_dim and head_dim of latent attention
    step: int = 0  # distance from one to the next: patches, or layers of another kind

    origins: Dict[str, Origin] = field(default_factory=dict)

    def set(self, quantity: str, value: float, formula: str = "") -> None:
        """Sets a member and its origin: the formula of other members that gave it, such as "width / heads"."""
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
        """Returns a formula with members replaced by their keys. Terms of 0 and factors of 1 are left out.

        "length + first" is "max_position_embeddings + 2" if `first` is 2 by the code, and max_position_embeddings if 0.
        """

        def value(name: str) -> float:
            return float(getattr(self, name)) if name in NAMES else float("nan")

        text = re.sub(r" [+-] (\w+)", lambda term: "" if value(term[1]) == 0 else term[0], text)
        text = re.sub(r" \* (\w+)", lambda factor: "" if value(factor[1]) == 1 else factor[0], text)
        is_alone = " " not in text
        keys = re.sub(r"\b[a-z_]+\b", lambda name: self._key(name[0], is_alone), text)
        return keys if re.search("[A-Za-z]", keys) else ""

    def _key(self, name: str, is_alone: bool) -> str:
        """Returns the key, the number or the formula of a member; its name if it changed after it was read."""
        origin = self.origins.get(name)
        if name not in NAMES or origin is None or origin.value != getattr(self, name):
            return name
        if origin.kind in ("file", "class"):
            return origin.key
        if not origin.formula:
            return f"{getattr(self, name):.10g}"
        if len(origin.formula) >= 40:
            return name
        return origin.formula if is_alone or " " not in origin.formula else f"({origin.formula})"

    @property
    def rotates(self) -> bool:
        """True if it rotates pairs of channels."""
        return self.encoding in ("rope_half", "rope_interleaved")


NAMES = frozenset(member.name for member in fields(Part))
