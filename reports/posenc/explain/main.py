"""posenc explain: an encoding, a model file or the list of model types, in words."""

import importlib
import json
import shlex
import sys
import textwrap
from argparse import Action, ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from ..command import CommandError, Parser, file_path, write_output
from ..engine import Engine
from ..models.llama_cpp import architectures
from ..models.members import Rejected
from ..models.model import Model, preset, read_model
from ..models.places import find
from ..models.types import types
from ..terminal import escape_hidden
from .c_code import MARKER, c_code
from .origins import read_lines
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
SURVEY = Path(__file__).resolve().parents[3] / "conformance" / "models" / "survey"
WORDS = {
    "agrees": "Pairs, frequencies, heads and layers are those of the model that transformers {} makes of it",
    "differs": "transformers {} makes another model of it: {}",
    "not asked": "transformers {} cannot be asked: {}",
}


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
    add("--check", action="store_true", help="ask transformers, where this Python has it, whether it is read rightly")
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
        place = find(options.config)
    except Rejected as why:
        raise Rejected(f"{options.config}: {why}") from None
    if place.message:
        print(
            f"posenc {options.command}: --config {escape_hidden(options.config)}: {escape_hidden(place.message)}",
            file=sys.stderr,
        )
    return read_model(place.path), str(place.path)


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


# ---- --types and --check ----


def _type_table(heading: str, kinds: Sequence[Tuple[str, str, str]]) -> Iterator[str]:
    """Yields a table of model types: name, encoding, and a note about the code of the type."""
    for name, encoding, note in (heading, "encoding", "what its code does besides, or why it is rejected"), *kinds:
        first = f"{name:<21} {encoding:<17} "
        yield _fill(note, first, NOTE_COLUMN) if note else first.rstrip()


def type_lines() -> Iterator[str]:
    """Yields the model types and architectures that are read or rejected, and how many there are of each kind."""
    rows = [(kind.name, "rejected" if kind.rejected else kind.encoding, kind.note) for kind in types().values()]
    sorts = Counter(sort if sort in ("rejected", "composite", "none") else "read" for _, sort, _ in rows)
    gguf = [(one.name, one.what, one.note) for one in architectures().values()]
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


def check(engine: Engine, path: Path) -> Tuple[bool, str]:
    """Returns whether posenc reads a file as transformers does, and a sentence about it.

    transformers' own class for the model_type is used. No code from the model's repository is run.
    """
    if not SURVEY.is_dir():
        raise CommandError("--check needs the source tree of posenc, where the survey of transformers is.")
    sys.path.insert(0, str(SURVEY))
    try:
        file_check, table, models = map(importlib.import_module, ("file_check", "types_table", "transformers_models"))
    except ModuleNotFoundError as error:
        raise CommandError(
            f"--check asks transformers, and {sys.executable} lacks {error.name}. Install it: pip install transformers "
            "torch pillow scipy"
        ) from None
    try:
        file: Dict[str, Any] = json.loads(path.read_bytes())
        named = isinstance(file, dict) and "model_type" in file
    except ValueError:
        named = False
    if not named:
        raise CommandError(f"--check needs a config.json with its model_type (got '{path}').")
    what, why = file_check.check_file(models.config_classes(), table.read_table(), engine.program, file, {})
    return what != "differs", WORDS[what].format(models.transformers.__version__, why)


# ---- the command ----


def main(arguments: List[str]) -> int:
    """Runs the command."""
    options = _parser().parse_args(arguments)
    if options.output and (options.types or options.thing is not None or options.check or options.record):
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
    if options.check and option == "--config":
        agrees, statement = check(Engine(), Path(where))
        print(escape_hidden(f"{where}: {statement}"))
        return 0 if agrees else 1
    if options.record:
        print(json.dumps(model.record()))
        return 0
    if options.output:
        path = None if str(options.output) == "-" else options.output
        write_output(path, c_code(model, f"{option} {where}"), MARKER, force=options.force)
        return 0
    lines = list(
        page_lines(Engine(), model, option, where)
    )  # complete before anything is printed: the program may reject a part
    for line in "\n".join(lines).splitlines():
        print(escape_hidden(line))
    return 0
