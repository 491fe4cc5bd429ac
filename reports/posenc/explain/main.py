"""posenc explain: an encoding, a model file or the list of model types, in words."""

import json
import shlex
import sys
import textwrap
from argparse import Action, ArgumentParser, Namespace
from collections import Counter
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..command import CommandError, Parser, file_path, write_output
from ..engine import Engine
from ..models.llama_cpp import architectures
from ..models.members import Rejected
from ..models.model import Model, find_file, preset, read_model
from ..models.part import Origin, Part
from ..models.types import type_of, types
from ..terminal import escape_hidden
from .c_code import MARKER, c_code
from .pages import thing_lines
from .parts import part_facts, title

ABOUT = """Explains THING, a kernel, a scaling, a numerics mode, a method or a parameter: definition, shapes,
source, traps and what catches each, and the presets that use it (docs/encodings has the same pages).

Or explains a model file: which key says what, what was assumed and from where, each part in words
(wavelengths, which pairs are scaled, from which position on f32 angles are off, reach of biases), and
what is not covered."""
EPILOG = """Examples
  posenc explain yarn
  posenc explain freq_base
  posenc explain --config path/config.json
  posenc explain --model llama-3.1-8b
  posenc explain --config path/config.json -o rope.c
"""
ABOUT_WIDTH, NOTE_COLUMN, WIDTH = 15, 40, 110


class Once(Action):
    """Stores an option, and rejects a second one."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option: Optional[str] = None) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option}: expected one model (got '{values}' besides)")
        setattr(namespace, self.dest, values)


def _parser() -> Parser:
    parser = Parser("posenc explain", ABOUT, EPILOG)
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group(required=True)
    names = (
        "a name of posenc list kernels, posenc list scalings, posenc list numerics or posenc list methods; "
        "or a parameter"
    )
    what.add_argument("thing", metavar="THING", nargs="?", help=names)
    files = "a config.json, a params.json, a GGUF file, a folder with one, or an org/name of the hub's local cache"
    what.add_argument("--config", metavar="FILE", action=Once, help=files)
    what.add_argument("--model", metavar="NAME", action=Once, help="a preset (posenc list models)")
    what.add_argument("--types", action="store_true", help="the model types that are read, and those that are rejected")
    add("--record", action="store_true", help="print what the engine needs to know: a record, in JSON")
    code = "write C that creates the frequencies of the model; - is standard output"
    add("-o", "--output", metavar="PATH", type=file_path, help=code)
    add("--force", action="store_true", help="overwrite any file at PATH")
    add("--for", dest="command", metavar="COMMAND", default="explain", help="whom messages name (default: explain)")
    return parser


def _model(options: Namespace) -> Tuple[Model, str]:
    """Returns the model, and its path or name for messages and commands."""
    if options.model is not None:
        return preset(options.model), options.model
    try:
        path, message = find_file(options.config)
    except Rejected as why:
        raise Rejected(f"{options.config}: {why}") from None
    if message:
        where = escape_hidden(options.config)
        print(f"posenc {options.command}: --config {where}: {escape_hidden(message)}", file=sys.stderr)
    return read_model(path), str(path)


# ---- numbers that were read, with the key or the rule that each comes from ----

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


# ---- the page of a model ----


def _fill(words: str, first: str, margin: int) -> str:
    """Wraps words behind the beginning of their first line. Further lines begin at column `margin`."""
    return textwrap.fill(words, WIDTH, initial_indent=first, subsequent_indent=" " * margin, break_long_words=False,
                         break_on_hyphens=False)  # fmt: skip


def _notes(model: Model) -> Iterator[str]:
    notes = [sentence for note in model.reading.notes for sentence in note.split(".  ")]
    if model.reading.facts.get("trained_numerics"):
        notes.append(model.trained)
    for note in notes:
        yield _fill(note, "  - ", 4)
    if not notes:
        yield "  none"


def page_lines(engine: Engine, model: Model, option: str, where: str) -> Iterator[str]:
    """Yields the page of a model."""
    facts = model.reading.facts
    path = f", {where}" if option == "--config" else ""
    yield f"{facts['title']} ({model.name}): {facts.get('source', '')}{path}"
    yield from ("", "What was read, and from which key", *read_lines(model))
    for part in model.reading.parts:
        yield from (
            "",
            title(part),
            *(_fill(words, f"  {about:<{ABOUT_WIDTH - 2}}", ABOUT_WIDTH) for about, words in part_facts(engine, part)),
        )
    yield from ("", "Notes", *_notes(model), "", "Next")
    word = shlex.quote(where)
    yield f"  posenc verify {option} {word}    # checks its shapes on every backend"
    yield f"  posenc report {option} {word}    # checks and times them"


# ---- --types ----


def _type_table(heading: str, kinds: Sequence[Tuple[str, str, str]]) -> Iterator[str]:
    """Yields a table of model types: name, encoding, and a note about the code of the type."""
    for name, encoding, note in (heading, "encoding", "what its code does besides, or why it is rejected"), *kinds:
        first = f"{name:<21} {encoding:<17} "
        yield _fill(note, first, NOTE_COLUMN) if note else first.rstrip()


def type_lines() -> Iterator[str]:
    """Yields the model types and architectures that are read or rejected, and how many there are of each kind."""
    rows = [(kind.name, "rejected" if kind.rejected else kind.encoding, kind.note) for kind in types().values()]
    sorts = Counter(sort if sort in ("rejected", "composite", "none") else "read" for _, sort, _ in rows)
    gguf = [(one.name, one.encoding, one.note) for one in architectures().values()]
    rejected = sum(what == "rejected" for _, what, _ in gguf)
    yield from _type_table("model_type", rows)
    yield ""
    yield from _type_table("general.architecture", gguf)
    yield ""
    yield (
        f"Hugging Face: {len(rows)} model types: {sorts['read']} read, {sorts['composite']} composite, {sorts['none']} "
        f"without positions (none), {sorts['rejected']} rejected"
    )
    yield f"GGUF: {len(gguf)} architectures: {len(gguf) - rejected} read as llama.cpp does, {rejected} rejected"
    yield "norm rotates neighbours, neox halves, mrope and imrope halves by three axes.  --config also reads the"
    yield "params.json of Meta's and Mistral's releases, and the configurations of diffusers' transformers."


# ---- the command ----


def main(arguments: List[str]) -> int:
    """Runs the command."""
    options = _parser().parse_args(arguments)
    if options.output and (options.types or options.thing is not None or options.record):
        raise CommandError(f"-o is for the C code of --config or --model (got '{options.output}' with another output).")
    if options.types:
        print("\n".join(type_lines()))
        return 0
    if options.thing is not None:
        print("\n".join(thing_lines(options.thing)))
        return 0
    option = "--config" if options.model is None else "--model"
    try:
        model, where = _model(options)
    except Rejected as why:
        print(f"posenc {options.command}: {option}: {escape_hidden(str(why))}", file=sys.stderr)
        return 2
    if options.record:
        print(json.dumps(model.record()))
        return 0
    if options.output:
        path = None if str(options.output) == "-" else options.output
        write_output(path, c_code(model, f"{option} {where}"), MARKER, force=options.force)
        return 0
    lines = list(page_lines(Engine(), model, option, where))  # before any is printed: the program may reject a part
    for line in "\n".join(lines).splitlines():
        print(escape_hidden(line))
    return 0
