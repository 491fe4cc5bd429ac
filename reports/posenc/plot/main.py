"""posenc plot KIND: draws one picture and prints its numbers."""

import argparse
import sys
from pathlib import Path
from typing import Dict, List, Tuple

from ..command import CommandError, Parser, suggest, write_file
from ..engine import Engine
from .kinds import KINDS, Kind
from .style import save
from . import tables, rotations, biases, measured  # noqa: F401  # they register their kinds, in this order

BEGINS: Dict[str, bytes] = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}


def _usage() -> str:
    lines = [
        "usage: posenc plot KIND [OPTIONS]",
        "",
        "Pictures of encodings, of errors and of speeds. The numbers of a picture " "go to stdout.",
        "",
        "Kinds",
    ]
    lines += [f"  {kind.name:<12} {kind.summary}" for kind in KINDS.values()]
    lines += [
        "",
        "posenc plot KIND --help prints the options of a kind.",
        "",
        "Examples",
        "  posenc plot rope -o rope.svg",
        "  posenc plot sinusoidal --tokens 256 --dim 64 -o table.png",
    ]
    return "\n".join(lines)


def _parser(kind: Kind) -> Parser:
    epilog = "Other options, such as --model, --rope-theta or --scaling, go to posenc table." if kind.forwards else None
    parser = Parser(prog=f"posenc plot {kind.name}", description=f"Draws {kind.summary}.", epilog=epilog)
    kind.options(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        type=Path,
        action="append",
        help="picture: .png, .svg or .pdf; may be repeated (default: " f"posenc-{kind.name}.png)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite any file at PATH")
    if kind.name != "speed":
        parser.add_argument(
            "--backend",
            metavar="NAME",
            action="append",
            default=[],
            help="backend that computes the numbers (default: scalar; error: all)",
        )
        parser.add_argument(
            "--plugin", metavar="LIB", action="append", default=[], help="plug-in that may be named as backend"
        )
    return parser


def _outputs(paths: List[Path]) -> List[Tuple[Path, str]]:
    outputs = []
    for path in paths:
        suffix = path.suffix[1:].lower()
        if suffix not in BEGINS:
            raise CommandError(
                f"the format of a picture is that of its name (got '{path}'). "
                f"Expected a name that ends in .{', .'.join(BEGINS)}."
            )
        outputs.append((path, suffix))
    return outputs


def take(arguments: List[str]) -> Tuple[Kind, argparse.Namespace, Engine]:
    """Reads the arguments: the kind of picture, its options, and the program that computes its numbers."""
    name = arguments[0] if arguments else ""
    if not name:
        raise CommandError(f"no kind of picture was given. Expected one of {', '.join(KINDS)}.")
    if name not in KINDS:
        raise CommandError(f"no such kind of picture (got '{name}'). {suggest(name, list(KINDS))}")
    kind = KINDS[name]
    args, rest = _parser(kind).parse_known_args(arguments[1:])
    args.frequencies = rest
    if args.frequencies and not kind.forwards:
        raise CommandError(f"unknown argument (got '{args.frequencies[0]}'). See posenc plot {name} --help.")
    options: List[str] = []
    if name != "speed":
        backends = args.backend or ([] if name == "error" or args.plugin else ["scalar"])
        for flag, values in (("--plugin", args.plugin), ("--backend", backends)):
            options += [word for value in values for word in (flag, value)]
    return kind, args, Engine(options)


def main(arguments: List[str]) -> int:
    """Draws the picture that the arguments ask for. Returns the exit code."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(_usage())
        return 0
    kind, args, engine = take(arguments)
    outputs = _outputs(args.output or [Path(f"posenc-{kind.name}.png")])
    picture = kind.draw(args, engine)
    for path, suffix in outputs:
        write_file(path, save(picture.figure, suffix), BEGINS[suffix], args.force)
        print(f"written: {path}", file=sys.stderr)
    print(picture.facts)
    return 0
