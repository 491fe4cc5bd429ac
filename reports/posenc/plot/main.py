"""posenc plot KIND: draws one picture and prints its numbers."""

import argparse
import sys
from pathlib import Path
from typing import Dict, List, Tuple

from ..command import CommandError, Parser, suggest, write_file
from .picture import KINDS, Kind, Picture, save
from . import tables, rotations, biases, measured  # noqa: F401  # they register their kinds, in this order

# How files begin, or what they hold near their beginning; others are not replaced.
MARKERS: Dict[str, bytes] = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF"}

USAGE = """usage: posenc plot KIND [OPTIONS]

Pictures of encodings, of errors and of speeds. The numbers of a picture go to stdout.

Kinds
{kinds}

posenc plot KIND --help prints the options of a kind, and how to read it.

Examples
  posenc plot rope -o rope.svg
  posenc plot sinusoidal --tokens 256 --problem 'sinusoidal dim=64' -o table.png"""


def _file(text: str) -> Path:
    if Path(text).suffix.lower() not in MARKERS:
        expected = f"Expected a name that ends in {', '.join(MARKERS)}."
        raise CommandError(f"the format of a picture is that of its name (got '{text}'). {expected}")
    return Path(text)


def _parser(name: str, kind: Kind) -> Parser:
    more = "Other options, such as --model or --problem, go to posenc table.\n\n" if kind.forwards else ""
    parser = Parser(f"posenc plot {name}", f"Draws {kind.summary}.", f"{more}How to read this: {kind.caption}")
    kind.add_options(parser)
    if name == "speed":
        parser.add_argument("file", metavar="FILE", help="records of posenc bench --out jsonl:FILE")
    picture = f".png, .svg or .pdf; may be repeated (default: posenc-{name}.png)"
    parser.add_argument("-o", "--output", metavar="PATH", type=_file, action="append", help=picture)
    parser.add_argument("--force", action="store_true", help="overwrite any file at PATH")
    return parser


def draw(name: str, arguments: List[str]) -> Tuple[Picture, argparse.Namespace]:
    """Draws the picture that the arguments ask for. Returns it, and the options."""
    kind = KINDS.get(name)
    if not kind:
        problem = f"no such kind of picture (got '{name}')" if name else "no kind of picture was given"
        raise CommandError(f"{problem}. {suggest(name, list(KINDS))}")
    args, rest = _parser(name, kind).parse_known_args(arguments)
    args.forwarded = rest
    if rest and not kind.forwards:
        raise CommandError(f"unknown argument (got '{rest[0]}'). See posenc plot {name} --help.")
    return kind.draw(args), args


def main(arguments: List[str]) -> int:
    """Draws the picture that the arguments ask for, and prints its numbers. Returns the exit code."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE.format(kinds="\n".join(f"  {name:<12} {kind.summary}" for name, kind in KINDS.items())))
        return 0
    name = arguments[0] if arguments else ""
    picture, args = draw(name, arguments[1:])
    for path in args.output or [Path(f"posenc-{name}.png")]:
        suffix = path.suffix.lower()
        write_file(path, save(picture.figure, suffix[1:]), MARKERS[suffix], force=args.force)
        print(f"written: {path}", file=sys.stderr)
    print("\n".join(picture.facts))
    return 0
