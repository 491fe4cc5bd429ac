"""Lists the numbers that were read from a model file, with the key or the rule that each comes from."""

from typing import Iterator, List, NamedTuple, Sequence

from ..models.model import Model
from ..models.part import Origin, Part
from ..models.types import type_of

ROTATION = "length heads key_heads head_dim rotary_dim layers merged rope_theta"
# Members of a part to list for each encoding, in the order of the page.
COUNTING = {
    "sinusoidal": "length width rope_theta scaled", "learned": "length width rows first scaled",
    "rope_half": ROTATION, "rope_interleaved": ROTATION, "alibi": "length heads layers alibi_bias_max",
    "t5": "length heads num_buckets max_distance layers decoder_layers",
    "deberta": "length heads num_buckets max_distance layers", "transformer_xl": "length heads head_dim layers",
    "shaw": "length heads head_dim max_distance layers", "decomposed": "image patch window windows heads layers",
    "window": "image patch window windows heads layers",
}  # fmt: skip
WHERE_SCALED = "factor original_max_position_embeddings"
YARN = f"{WHERE_SCALED} beta_fast beta_slow attention_factor mscale mscale_all_dim truncate"
# What each rule of scaling takes besides.
SCALING = {
    "linear": "factor", "ntk": "factor", "dynamic": "factor", "yarn": YARN, "resonance_yarn": YARN,
    "llama3": f"{WHERE_SCALED} low_freq_factor high_freq_factor", "longrope": f"{WHERE_SCALED} attention_factor",
    "proportional": "factor partial_rotary_factor",
}  # fmt: skip


class Row(NamedTuple):
    """A line of the list: name, value and origin."""

    name: str
    value: str
    origin: str


def _of(origin: Origin, value: float) -> str:
    """Describes the origin of a value."""
    found = f", {origin.value:.10g} there" if value != origin.value else ""
    if origin.kind == "file":
        return f"from {origin.key}{found}" if found else origin.key
    if origin.kind == "class":
        return f"assumed: the default of its class, as {origin.key} is not there{found}"
    if origin.kind == "assumed":
        return f"assumed: {origin.formula}{', as ' if origin.formula else ''}{origin.key} is not there{found}"
    return f"{origin.formula or 'what its code does'}{found}"


def _origin(part: Part, name: str, value: float = 0.0) -> str:
    origin = part.origins.get(name)
    return _of(origin, value) if origin else "nothing says otherwise"


def _is_there(part: Part, name: str) -> bool:
    """Returns whether a part has a member: it is not 0, and not a false that no key states."""
    if part.tower and name == "length":  # the length is that of the picture in cases
        return False
    value, origin = getattr(part, name), part.origins.get(name)
    return bool(value) or (isinstance(value, bool) and origin is not None and origin.kind == "file")


def _numbers(part: Part, names: str) -> Iterator[Row]:
    for name in names.split():
        value = getattr(part, name)
        if _is_there(part, name):
            text = str(value).lower() if isinstance(value, bool) else f"{value:.10g}"
            yield Row(name, text, _origin(part, name, float(value)))


def _scaling(part: Part) -> Iterator[Row]:
    if part.mrope_section and "mrope_section" in part.origins:
        yield Row("mrope_section", ", ".join(map(str, part.mrope_section)), _origin(part, "mrope_section"))
    yield Row("scaling", part.scaling, _origin(part, "scaling"))
    yield from _numbers(part, SCALING.get(part.scaling, ""))
    for name in ("short_factor", "long_factor"):
        factors: Sequence[float] = getattr(part, name)
        if factors and name in part.origins:
            yield Row(name, f"{len(factors)}, {min(factors):.4g} to {max(factors):.4g}", _origin(part, name))


def _rows(part: Part) -> List[Row]:
    rows = [Row("encoding", part.encoding, _origin(part, "encoding")), *_numbers(part, COUNTING[part.encoding])]
    if part.rotates:
        rows += _scaling(part)
    if part.norms:
        rows += _numbers(part, "epsilon")
    return rows


def _line(row: Row) -> str:
    return f"  {row.name:<32} {row.value:<20} {row.origin}"


def read_lines(model: Model) -> Iterator[str]:
    """Yields the lines that all parts share, then the other lines of each part below its name."""
    reading = model.reading
    yield _line(Row("model_type", reading.type, reading.type_from))
    yield _line(Row("storage", reading.storage, reading.storage_from or "assumed: no key says it"))
    rows = [_rows(part) for part in reading.parts]
    yield from (_line(row) for row in rows[0] if all(row in others for others in rows))
    for part, own in zip(reading.parts, rows):
        apart = [row for row in own if not all(row in others for others in rows)]
        if apart:
            yield f"  {part.name or 'text'}"
        yield from map(_line, apart)
    kind = type_of(reading.type)
    if kind and any(origin.kind == "class" for part in reading.parts for origin in part.origins.values()):
        seen = "as the survey of it saw (docs/models.md)" if "surveyed" in kind.flags else "as posenc list types has it"
        yield f"  (its class: that of {kind.name} in transformers, {seen})"
