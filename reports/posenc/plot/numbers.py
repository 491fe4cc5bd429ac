"""Numbers of pictures: what `posenc table` prints, and its options as words."""

from typing import Dict, List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ..engine import Engine

Array = NDArray[np.float64]


def table(*arguments: str) -> Dict[str, Array]:
    """Returns what `posenc table` computes: arrays [row][column] by name. The first says where each row is."""
    head, *lines = Engine().run("table", *arguments, "--backend=scalar").splitlines()
    names = [name.partition("[")[0] for name in head.split(",")]
    numbers = np.loadtxt(lines, delimiter=",", ndmin=2)
    return {name: numbers[:, np.array(names) == name] for name in dict.fromkeys(names)}


def problem(line: str) -> Array:
    """Returns the one output of a problem, [row][column]."""
    _, output = table("--problem", line).values()
    return output


def angles(*options: str) -> Tuple[Array, Array]:
    """Returns the cosines and sines of `posenc table rope_table`: [position][pair]."""
    arrays = table("rope_table", *options)
    return arrays["cos"], arrays["sin"]


def pairs_of(options: Sequence[str]) -> Dict[str, Array]:
    """Returns the columns of `posenc table frequencies`, a line for each pair. What is empty there is infinity."""
    lines = Engine().columns("frequencies", *options)
    return {name: np.array([float(line[name] or "inf") for line in lines]) for name in lines[0]}


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
