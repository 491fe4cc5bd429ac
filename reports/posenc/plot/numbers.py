"""Numbers of pictures: what `posenc table` prints, and its options as words."""

import argparse
from typing import Dict, List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ..engine import Engine

Array = NDArray[np.float64]


def table(line: str, *options: str) -> Dict[str, Array]:
    """Returns the values of a problem: arrays [row][column] by name. The first says where each row is."""
    head, *lines = Engine().run("table", "--problem", line, *options, "--backend=scalar").splitlines()
    names = [name.partition("[")[0] for name in head.split(",")]
    numbers = np.loadtxt(lines, delimiter=",", ndmin=2)
    return {name: numbers[:, np.array(names) == name] for name in dict.fromkeys(names)}


def problem(line: str) -> Array:
    """Returns the one output of a problem, [row][column]."""
    _, output = table(line).values()
    return output


def angles(line: str, *options: str) -> Tuple[Array, Array]:
    """Returns the cosines and sines of a problem of rope_table: [position][pair]."""
    arrays = table(line, *options)
    return arrays["cos"], arrays["sin"]


def pairs_of(line: str, options: Sequence[str] = ()) -> Dict[str, Array]:
    """Returns the columns of `posenc table frequencies`, a line for each pair. An empty cell is infinity."""
    lines = Engine().columns("frequencies", "--problem", line, *options)
    return {name: np.array([float(line[name] or "inf") for line in lines]) for name in lines[0]}


def problem_of(options: List[str], default: str) -> Tuple[str, List[str]]:
    """Returns the line of --problem, and the other options. Without it a model has its own parameters."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--problem")
    args, others = parser.parse_known_args(options)
    has_model = {option.partition("=")[0] for option in others} & {"--model", "--config"}
    return args.problem or (default.split()[0] if has_model else default), others


def describe(line: str, options: Sequence[str] = ()) -> str:
    """Returns a problem and options as words: ["--model", "phi-4"] is "model phi-4"."""
    words = [line]
    for option in options:
        if option.startswith("--"):
            words.append(option[2:].replace("-", "_").replace("=", " "))
        else:
            words[-1] += f" {option}"
    return ", ".join(words)
