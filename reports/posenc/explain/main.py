"""posenc explain: a model file, or an encoding, in words."""

import json
import shlex
import sys
import textwrap
from argparse import Action, ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Iterator, List, Optional, Tuple

from ..command import Parser
from ..engine import Engine
from ..models.members import Rejected
from ..models.model import Model, read_model
from ..models.places import find
from ..models.presets import preset
from ..show import plain
from .check import check
from .origins import read_lines
from .pages import thing_lines
from .parts import part_facts, title
from .types import type_lines

ABOUT = """Explains THING, a kernel, a scaling, a profile, a method or a parameter: definition, shapes,
source, traps and what catches each, and the presets that use it (docs/encodings has the same pages).

Or explains a model file: which key says what, what was assumed and from where, each part in words
(wavelengths, which pairs are scaled, from which position on f32 angles are off, reach of biases), and
what is not covered."""
EPILOG = """Examples
  posenc explain yarn
  posenc explain freq_base
  posenc explain --config path/config.json
  posenc explain --model llama-3.1-8b
"""
ABOUT_WIDTH, WIDTH = 15, 110


class Once(Action):
    """Takes an option that is given once."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option: Optional[str] = None) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option}: expected one model (got '{values}' besides)")
        setattr(namespace, self.dest, values)


def _parser() -> Parser:
    parser = Parser("posenc explain", ABOUT, EPILOG)
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("thing", metavar="THING", nargs="?", help="a name from posenc list, or a parameter")
    files = "a config.json, a params.json, a GGUF file, a folder with one, or an org/name of the hub's local cache"
    what.add_argument("--config", metavar="FILE", action=Once, help=files)
    what.add_argument("--model", metavar="NAME", action=Once, help="a preset (posenc list models)")
    what.add_argument("--types", action="store_true", help="the model types that are read, and those that are rejected")
    add("--check", action="store_true", help="ask transformers, where this Python has it, whether it is read rightly")
    add("--record", action="store_true", help="print what the engine needs to know: a record, in JSON")
    add("--for", dest="command", metavar="COMMAND", default="explain", help="whom messages name (default: explain)")
    return parser


def _model(options: Namespace) -> Tuple[Model, str]:
    """Returns the model that is meant, and the path or name that messages and commands say."""
    if options.model is not None:
        return preset(options.model), options.model
    try:
        place = find(options.config)
    except Rejected as why:
        raise Rejected(f"{options.config}: {why}") from None
    if place.said:
        print(f"posenc {options.command}: --config {plain(options.config)}: {plain(place.said)}", file=sys.stderr)
    return read_model(place.path), str(place.path)


def _wrapped(about: str, words: str) -> str:
    indent = " " * ABOUT_WIDTH
    return textwrap.fill(words, WIDTH, initial_indent=f"  {about:<{ABOUT_WIDTH - 2}}", subsequent_indent=indent,
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip


def _notes(model: Model) -> Iterator[str]:
    notes = [sentence for note in model.reading.notes for sentence in note.split(".  ")]
    if model.reading.facts.get("trained_profile"):
        notes.append(model.trained)
    for note in notes:
        yield textwrap.fill(note, WIDTH, initial_indent="  - ", subsequent_indent="    ", break_long_words=False,
                            break_on_hyphens=False)  # fmt: skip
    if not notes:
        yield "  none"


def page_lines(engine: Engine, model: Model, option: str, where: str) -> Iterator[str]:
    """Yields the page of a model."""
    facts = model.reading.facts
    path = f", {where}" if option == "--config" else ""
    yield f"{facts['title']} ({model.name}): {facts.get('source', '')}{path}"
    yield from ("", "What was read, and from which key", *read_lines(model))
    for part in model.reading.parts:
        yield from ("", title(part), *(_wrapped(*said) for said in part_facts(engine, part)))
    yield from ("", "Notes", *_notes(model), "", "Next")
    word = shlex.quote(where)
    yield f"  posenc verify {option} {word}    # checks its shapes on every backend"
    yield f"  posenc report {option} {word}    # checks and times them"


def main(arguments: List[str]) -> int:
    """Runs the command."""
    options = _parser().parse_args(arguments)
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
        print(f"posenc {options.command}: {option}: {plain(str(why))}", file=sys.stderr)
        return 2
    if options.check and option == "--config":
        rightly, said = check(Engine(), Path(where))
        print(plain(f"{where}: {said}"))
        return 0 if rightly else 1
    if options.record:
        print(json.dumps(model.record()))
        return 0
    lines = list(page_lines(Engine(), model, option, where))  # the engine may reject a part
    for line in "\n".join(lines).splitlines():
        print(plain(line))
    return 0
