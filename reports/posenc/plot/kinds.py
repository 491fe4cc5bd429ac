"""The list of pictures: each is a function that registers itself."""

import argparse
from dataclasses import dataclass
from typing import Callable, Dict, List, Tuple

from ..command import within
from ..engine import Engine
from .style import Picture

Draw = Callable[[argparse.Namespace, Engine], Picture]


@dataclass(frozen=True)
class Kind:
    """A kind of picture: what it shows, its options, and the function that draws it."""

    name: str
    summary: str
    options: Callable[[argparse.ArgumentParser], None]
    draw: Draw
    forwards: bool


KINDS: Dict[str, Kind] = {}


def _no_options(parser: argparse.ArgumentParser) -> None:
    del parser


def kind(
    name: str, summary: str, options: Callable[[argparse.ArgumentParser], None] = _no_options, forwards: bool = False
) -> Callable[[Draw], Draw]:
    """Registers a function as the picture `name`.

    With `forwards`, options that the picture does not have itself, such as --model or --scaling, go to
    `posenc table`: they are in `args.frequencies`.
    """

    def register(draw: Draw) -> Draw:
        KINDS[name] = Kind(name, summary, options, draw, forwards)
        return draw

    return register


def integer(
    parser: argparse.ArgumentParser, flag: str, bounds: Tuple[int, int], default: int, text: str, metavar: str = "N"
) -> None:
    """Adds an option that is an integer within bounds."""
    parser.add_argument(
        flag, metavar=metavar, type=within(*bounds), default=default, help=f"{text} (default: {default})"
    )


def number(parser: argparse.ArgumentParser, flag: str, default: float, text: str) -> None:
    """Adds an option that is a number."""
    parser.add_argument(flag, metavar="B", type=float, default=default, help=f"{text} (default: {default:g})")


def describe(options: List[str]) -> str:
    """Returns options as a caption: ["--dim", "64", "--model", "phi-4"] is "dim 64, model phi-4"."""
    words: List[str] = []
    for option in options:
        if option.startswith("--"):
            words.append(option[2:].replace("-", "_").replace("=", " "))
        elif words:
            words[-1] += f" {option}"
    return ", ".join(words)
