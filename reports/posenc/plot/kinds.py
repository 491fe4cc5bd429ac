"""The list of pictures: each is a function that registers itself, with its options and its caption."""

import argparse
import inspect
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Tuple

from ..command import within
from ..engine import Engine
from .style import Picture

Draw = Callable[[argparse.Namespace, Engine], Picture]
Option = Tuple[str, Dict[str, Any]]


@dataclass(frozen=True)
class Kind:
    """A kind of picture: what it shows, how to read it, the function that draws it, and its options."""

    summary: str
    caption: str
    draw: Draw
    options: Tuple[Option, ...]
    forwards: bool


KINDS: Dict[str, Kind] = {}


def kind(*options: Option, forwards: bool = False) -> Callable[[Draw], Draw]:
    """Registers a function as the picture of its name; its docstring is the summary and, below it, how to read it.

    With `forwards`, options that the picture does not have itself, such as --model or --scaling, go to
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


def integer(flag: str, least: int, most: int, default: int, text: str, metavar: str = "N") -> Option:
    """Returns an option that is an integer within bounds."""
    return option(flag, default, text, type=within(least, most), metavar=metavar)


SEED = integer("--seed", 0, 2**63 - 1, 1, "seed of what is drawn at random")


def with_dim(options: List[str]) -> List[str]:
    """Returns options with a dimension of 128, unless they name a dimension or a model."""
    named = {option.partition("=")[0] for option in options} & {"--model", "--config", "--dim"}
    return options if named else ["--dim", "128", *options]


def describe(options: List[str]) -> str:
    """Returns options as words: ["--dim", "64", "--model", "phi-4"] is "dim 64, model phi-4"."""
    words: List[str] = []
    for option in options:
        if option.startswith("--"):
            words.append(option[2:].replace("-", "_").replace("=", " "))
        elif words:
            words[-1] += f" {option}"
    return ", ".join(words)
