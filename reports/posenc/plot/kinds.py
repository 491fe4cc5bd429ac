"""The list of pictures: each is a function that registers itself, with its options and its caption."""

import argparse
import inspect
from typing import Any, Callable, Dict, NamedTuple, Tuple

from ..command import within
from .style import Picture

Draw = Callable[[argparse.Namespace], Picture]
Option = Tuple[str, Dict[str, Any]]


class Kind(NamedTuple):
    """A kind of picture: what it shows, how to read it, the function that draws it, and its options; see kind()."""

    summary: str
    caption: str
    draw: Draw
    options: Tuple[Option, ...]
    forwards: bool


KINDS: Dict[str, Kind] = {}


def kind(*options: Option, forwards: bool = False) -> Callable[[Draw], Draw]:
    """Registers a function as the picture of its name; its docstring is the summary and, below it, how to read it.

    With `forwards`, options that the picture does not have itself, such as --model or --problem, go to
    `posenc table`: they are in `args.forwarded`.
    """

    def register(draw: Draw) -> Draw:
        summary, _, caption = (inspect.getdoc(draw) or "").partition("\n\n")
        KINDS[draw.__name__] = Kind(summary, caption, draw, options, forwards)
        return draw

    return register


def option(flag: str, default: Any, text: str, **settings: Any) -> Option:
    """Returns an option with argparse's settings, whose help ends with its default."""
    return flag, {"default": default, "help": f"{text} (default: {default})", **settings}


def choice(flag: str, names: Tuple[str, ...], text: str) -> Option:
    """Returns an option that is one of the names, by default the first."""
    listed = f"{', '.join(names[:-1])} or {names[-1]}"
    return option(flag, names[0], f"{text}: {listed}", choices=names, metavar="NAME")


def integer(flag: str, least: int, most: int, default: int, text: str) -> Option:
    """Returns an option that is an integer within bounds."""
    return option(flag, default, text, type=within(least, most), metavar="N")


SEED = integer("--seed", 0, 2**63 - 1, 1, "seed of what is drawn at random")
