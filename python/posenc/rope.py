"""posenc.Frequencies, and posenc.Rope, the rotation of a model:

    rope = posenc.Rope.from_model("llama-3.1-8b")
    q, k = rope(q, k, positions=cached)
"""

import json
from array import array
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from . import _core
from .arrays import Error, copy_of

if TYPE_CHECKING:  # the readers of model files are imported by the calls that need them
    from typing import Iterable, Mapping, Sequence, TypedDict

    import numpy
    from typing_extensions import Unpack

    from .models.part import Part

    class Parameters(TypedDict, total=False):
        """The members of struct posenc_freqs_spec, which posenc.h describes."""

        rope_theta: float
        scaling: str
        factor: float
        original_max_position_embeddings: float
        low_freq_factor: float
        high_freq_factor: float
        beta_fast: float
        beta_slow: float
        truncate: bool
        attention_factor: float
        mscale: float
        mscale_all_dim: float
        max_position_embeddings: float
        seq_len: int
        partial_rotary_factor: float
        short_factor: Optional[Iterable[float]]
        long_factor: Optional[Iterable[float]]
        mrope_section: Optional[Sequence[int]]
        mrope_layout: str
        xpos_scale_base: float
        xpos_centre: float
        xpos_inverse: bool
        values: Optional[Iterable[float]]
        numerics: str
        spacing: str


LISTS = ("short_factor", "long_factor", "values")  # of numbers, one for each pair


def _spec(parameters: "Mapping[str, Any]") -> Dict[str, Any]:
    """Returns parameters with their lists as arrays of float64."""
    for name in LISTS:  # array() would take their bytes as numbers
        if isinstance(parameters.get(name), (bytes, bytearray)):
            raise Error(f"{name} is of type {type(parameters[name]).__name__}, expected numbers", what=name)
    lists = {name: array("d", parameters[name]) for name in LISTS if parameters.get(name) is not None}
    return {**parameters, **lists}


class Frequencies:
    """Frequencies of a rotation or of a sinusoidal encoding.

    dim is the number of channels, two for each pair. The other parameters are those of struct posenc_freqs_spec, named
    as in config.json: rope_theta=10000.0, scaling='none', factor, original_max_position_embeddings, low_freq_factor,
    high_freq_factor, beta_fast, beta_slow, truncate, attention_factor, mscale, mscale_all_dim,
    max_position_embeddings, seq_len, partial_rotary_factor, short_factor, long_factor, mrope_section, mrope_layout,
    xpos_scale_base, xpos_centre, xpos_inverse, values, numerics='exact', spacing='exponent'.

    attention_factor  factor of the cosines and sines of rope_table()
    n_axes            axes of the positions; 1 without mrope_section
    axis              axis of each pair, a tuple; None if there is one axis

    Raises posenc.Error: status argument, shape, theta, parameter.
    """

    def __init__(self, dim: int, **parameters: "Unpack[Parameters]") -> None:
        self._handle = _core.freqs_create(dim, _spec(parameters))
        self.dim, self.n_axes, self.attention_factor, axis, *self._inv_freq = _core.freqs_view(self._handle)
        self.axis: Optional[Tuple[int, ...]] = axis and tuple(axis)

    @property
    def inv_freq(self) -> "numpy.ndarray[Any, Any]":
        """Radians per position of each pair: [n_pairs], float64 in numerics exact, otherwise float32. Read-only."""
        import numpy

        dtype, values = self._inv_freq
        return numpy.frombuffer(values, dtype)


class Rope:
    """The rotation of queries and keys: its frequencies, and the cosines and sines of positions so far.

    dim is rotary_dim, the number of channels that are rotated, even. pairing is "half" (channels i and
    i + rotary_dim/2) or "interleaved" (2i and 2i + 1). The other parameters are those of posenc.Frequencies.
    Threads may share one object.
    """

    def __init__(self, dim: int, pairing: str = "half", **parameters: "Unpack[Parameters]") -> None:
        spec = _spec(parameters)
        self._handle = _core.rope_create(dim, pairing, spec)
        self.freqs = Frequencies(dim, **spec)  # for posenc.rope_table()
        self.pairing = pairing

    @classmethod
    def from_config(
        cls, config: Any, layer_type: Optional[str] = None, *, seq_len: int = 0, numerics: str = "exact"
    ) -> "Rope":
        """Returns the rotation of a model.

        config      path of a config.json, params.json, GGUF file or their folder; a dict; or a transformers config
        layer_type  such as "full_attention" or "sliding_attention", in models with several rotations
        seq_len     tokens that will be used, for scalings that depend on it (dynamic, longrope)
        numerics    "exact", or "hf_f32" for the numbers of transformers

        Raises posenc.Error if the file is rejected or has no such rotation.
        """
        return cls._of_parts(_parts_of(config), layer_type, seq_len, numerics)

    @classmethod
    def from_model(
        cls, name: str, layer_type: Optional[str] = None, *, seq_len: int = 0, numerics: str = "exact"
    ) -> "Rope":
        """Returns the rotation of a preset, such as "llama-3.1-8b": `posenc list models` has their names."""
        from .models.members import Rejected
        from .models.model import preset

        try:
            parts = preset(name).reading.parts
        except Rejected as why:
            raise Error(str(why), what="name") from None
        return cls._of_parts(parts, layer_type, seq_len, numerics)

    @classmethod
    def _of_parts(cls, parts: "List[Part]", layer_type: Optional[str], seq_len: int, numerics: str) -> "Rope":
        from .models.part import Frequencies as OfModel

        part = _choose(parts, layer_type)
        parameters: Dict[str, Any] = {one.name: getattr(part, one.name) for one in fields(OfModel)}
        parameters["spacing"] = parameters.pop("freq_spacing")
        given = {name: value for name, value in parameters.items() if value != ()}
        pairing = "half" if part.encoding == "rope_half" else "interleaved"
        return cls(given.pop("dim"), pairing, seq_len=seq_len, numerics=numerics, **given)

    def reserve(self, n: int) -> None:
        """Computes the cosines and sines of positions 0 to n - 1 now. Calls compute them as needed otherwise."""
        _core.rope_reserve(self._handle, n)

    def __call__(self, q: Any, k: Any = None, positions: Any = 0, *, inplace: bool = False) -> Any:
        """Returns q and k, rotated; q alone if k is None.

        q, k       [tokens, heads, head_dim] or [batch, tokens, heads, head_dim], with any strides. Heads may differ.
        positions  of token 0 (the others follow); or an array [tokens], [batch, tokens], or [axes, ...] of several axes
        inplace    rotate the arrays themselves, and return them

        Raises posenc.Error. The arrays are then unchanged.
        """
        if inplace:
            _core.rope_apply(self._handle, q, k, positions)
            return q if k is None else (q, k)
        new_q, convert = copy_of(q)
        new_k = None if k is None else copy_of(k)[0]
        _core.rope_apply(self._handle, new_q, new_k, positions)
        if convert:
            return convert(new_q, new_k)
        return new_q if new_k is None else (new_q, new_k)

    def __repr__(self) -> str:
        return f"posenc.Rope({self.freqs.dim}, {self.pairing!r})"


def _parts_of(config: Any) -> "List[Part]":
    """Returns the encodings of a model: config is a path, a dict, or a configuration of transformers."""
    from .models.members import Rejected
    from .models.model import read_json, read_model

    try:
        if isinstance(config, (str, Path)):
            path = Path(config)
            return read_model(path / "config.json" if path.is_dir() else path).reading.parts
        members = config if isinstance(config, dict) else config.to_dict()
        return read_json(json.dumps(members, default=str)).parts
    except Rejected as why:
        raise Error(str(why), what="config") from None


def _choose(parts: "List[Part]", layer_type: Optional[str]) -> "Part":
    """Returns the rotation for a type of layers, which may be None if there is one rotation."""
    rotations = [part for part in parts if part.rotates]
    names = [_layer_type(part) for part in rotations]
    matching = [part for part, name in zip(rotations, names) if layer_type in (None, name)]
    if not rotations:
        raise Error(f"the model has no rotation: its encoding is {parts[0].encoding}", what="config")
    if len(rotations) == 1 and not rotations[0].name:
        return rotations[0]
    if len(matching) != 1:
        raise Error(f"layer_type is {layer_type!r}, expected one of {', '.join(names)}", what="layer_type")
    return matching[0]


def _layer_type(part: "Part") -> str:
    """Returns the name of the layers that a rotation is for, as in transformers; "text" if they have none."""
    return f"{part.name}_attention" if part.name in ("full", "sliding", "chunked") else part.name or "text"
