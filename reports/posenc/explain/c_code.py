"""C code that creates the frequencies of a model: posenc explain --config FILE -o FILE.

    enum posenc_status create_rope(struct posenc_rope **rope, struct posenc_error *error)
    {
        struct posenc_freqs_spec spec = posenc_freqs_spec_init();
        spec.dim = 128;
        return posenc_rope_create(&spec, POSENC_PAIRING_HALF, rope, error);
    }
"""

import re
from typing import Iterator, List, Sequence

from ..command import CommandError
from ..models.model import Model
from ..models.part import Part

# Members that are enums, by their names in problems.
ENUMS = {"scaling": "SCALING", "freq_spacing": "SPACING", "mrope_layout": "MROPE_LAYOUT"}
MEMBERS = {"freq_spacing": "spacing"}  # names of struct posenc_freqs_spec that differ from those of problems
NUMBERS_PER_LINE = 5
MARKER = b"Written by posenc explain"  # in each file


def _constants(name: str, values: Sequence[float]) -> Iterator[str]:
    """Yields the definition of an array."""
    yield f"    static const double {name}[{len(values)}] = {{"
    for at in range(0, len(values), NUMBERS_PER_LINE):
        yield f"        {', '.join(repr(float(value)) for value in values[at : at + NUMBERS_PER_LINE])},"
    yield "    };"


def _assignments(part: Part) -> Iterator[str]:
    """Yields the statements that set the members of a spec which differ from their defaults."""
    yield f"    spec.dim = {part.width if part.encoding == 'sinusoidal' else part.dim};"
    for name, value in part.changed_frequencies().items():
        member = MEMBERS.get(name, name)
        if name in ENUMS:
            yield f"    spec.{member} = POSENC_{ENUMS[name]}_{value.upper()};"
        elif name == "mrope_section":
            yield from (f"    spec.{member}[{axis}] = {pairs};" for axis, pairs in enumerate(value))
        elif isinstance(value, tuple):
            yield f"    spec.{member} = {name};"
        elif isinstance(value, bool):
            yield f"    spec.{member} = {str(value).lower()};"
        else:
            yield f"    spec.{member} = {float(value)!r};"
    if part.scaling in ("dynamic", "longrope"):
        yield f"    spec.seq_len = {part.length}; /* tokens of the longest sequence; the frequencies depend on it */"


def _function(part: Part) -> Iterator[str]:
    """Yields the function that creates the frequencies or the rotation of a part."""
    rotates = part.encoding != "sinusoidal"
    what = "rope" if rotates else "freqs"  # of posenc that the function creates
    suffix = f"_{re.sub(r'[^a-z0-9]+', '_', part.name.lower())}" if part.name else ""
    layers = f" of {part.name} layers" if part.name else ""
    if rotates:
        pairing = "INTERLEAVED" if part.encoding == "rope_interleaved" else "HALF"
        yield f"/* Creates the rotation{layers}: {part.dim} of {part.head_dim} channels of a head. */"
        call = f"posenc_rope_create(&spec, POSENC_PAIRING_{pairing}, rope, error)"
    else:
        layout = "COS_SIN" if part.cos_first else "SIN_COS" if part.sin_cos else "INTERLEAVED"
        yield f"/* Creates the frequencies of the sinusoids{layers}. Their layout is POSENC_LAYOUT_{layout}. */"
        call = "posenc_freqs_create(&spec, freqs, error)"
    yield f"enum posenc_status create_{what}{suffix}(struct posenc_{what} **{what}, struct posenc_error *error)"
    yield "{"
    for name in ("short_factor", "long_factor"):
        if getattr(part, name):
            yield from _constants(name, getattr(part, name))
    yield "    struct posenc_freqs_spec spec = posenc_freqs_spec_init();"
    yield from _assignments(part)
    yield f"    return {call};"
    yield "}"


def c_code(model: Model, command: str) -> str:
    """Returns a C file with a function for each part of a model that has frequencies."""
    parts = [part for part in model.reading.parts if part.rotates or part.encoding == "sinusoidal"]
    if not parts:
        raise CommandError(f"-o: expected a model that rotates or adds sinusoids (got '{model.name}').")
    facts = model.reading.facts
    title = f"{facts['title']}. Written by posenc explain {command}."
    lines: List[str] = [f"/* {re.sub(r'[*]/|/[*]|[^ -~]', '?', title)} */"]
    numerics = facts.get("trained_numerics") or "exact"
    if numerics != "exact":
        lines.append(f"/* spec.numerics = POSENC_NUMERICS_{numerics.upper()} gives the angles it was trained with. */")
    lines.append("#include <posenc.h>")
    for part in parts:
        lines += ["", *_function(part)]
    return "\n".join(lines) + "\n"
