"""Parts that all pictures share: their list and options, their numbers, and their style.

A picture is a function that registers itself by kind(): posenc plot alibi --heads 4 calls

    @kind("alibi", heads=8, tokens=128)
    def draw_alibi(args): ...

Positions run to the right, and downwards where a map has two of them. Legends stand outside the axes.
"""

import argparse
import inspect
import io
import re
from itertools import cycle
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import ScaledTranslation
import numpy as np
from numpy.typing import NDArray

from ..command import within
from ..engine import Engine

Array = NDArray[np.float64]

# Okabe and Ito's colours without yellow, which is not seen as a line on white.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))

CELLS = 1000  # of a map along an axis: a screen shows no more

matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "posenc", "font.sans-serif": ["DejaVu Sans"], "font.size": 10,
    "axes.titlesize": 11, "axes.grid": True, "axes.axisbelow": True, "grid.color": "#dddddd", "lines.linewidth": 1.8,
    "legend.borderaxespad": 0, "legend.frameon": False, "legend.handlelength": 3, "legend.loc": "upper center",
    "savefig.dpi": 110,
})  # fmt: skip


class Picture:
    """A figure with its panels by name, and its numbers as lines of text, of which the first stands below the title."""

    def __init__(
        self, size: Tuple[float, float], title: str, parameters: str, panels: Sequence[Sequence[str]], **grid: Any
    ) -> None:
        """`size` is in inches; `panels` and `grid` are as subplot_mosaic() of matplotlib takes them."""
        self.figure = Figure(figsize=size, layout="compressed")
        self.figure.suptitle(f"{title}\n{parameters}", fontsize=12)
        self.panels: Dict[str, Axes] = self.figure.subplot_mosaic(panels, **grid)
        self.facts = [parameters]

    def panel(self, name: str, title: str, x: str, y: str) -> Axes:
        """Returns a panel with its title and the labels of its axes."""
        self.panels[name].set(title=title, xlabel=x, ylabel=y)
        return self.panels[name]


def save(figure: Figure, kind: str) -> bytes:
    """Returns the file of a figure: png, svg or pdf. The same figure gives the same bytes."""
    out = io.BytesIO()
    stamp = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}[kind]
    figure.savefig(out, format=kind, metadata={stamp: None})
    return _tidy(out.getvalue().decode()).encode() if kind == "svg" else out.getvalue()


def _tidy(svg: str) -> str:
    """Shortens an SVG: without names that are never used, and with two decimals of coordinates from ten on."""
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg))
    svg = re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in used else "", svg)
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r"\b(\d\d+\.\d\d)\d+", r"\1", tag[0]), svg)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def draw_lines(axes: Axes, x: Any, curves: Dict[str, Array], columns: int = 2, **settings: Any) -> None:
    """Draws curves by their names, each with a colour and a dash, and a legend with `columns` if there are several."""
    for color, dash, (name, y) in zip(SERIES, cycle(DASHES), curves.items()):
        axes.plot(x, y, color=color, linestyle=dash, label=name, **settings)
    axes.set_xlim(x[0], x[-1])
    if len(curves) > 1:
        legend_below(axes, columns)


def draw_map(
    axes: Axes, cells: Array, limits: Optional[Tuple[float, float]] = None, bar: str = "", numbers: str = "",
    aspect: str = "equal",
) -> Any:  # fmt: skip
    """Draws cells[row][column]: columns to the right, rows downwards. A cell is a square, unless `aspect` is auto.

    Values of both signs have a white zero; others run from dark to bright, between `limits` if those are given.
    `bar` labels the bar of colours beside the map. `numbers` is how to write the number of each cell on it.
    """
    least, most = limits or (float(cells.min()), float(cells.max()))
    if least < 0:
        least, most = min(least, -most), max(-least, most)
    colors, crisp = "RdBu_r" if least < 0 else "viridis", "none" if max(cells.shape) <= CELLS else "nearest"
    image = axes.imshow(cells, colors, aspect=aspect, interpolation=crisp, vmin=least, vmax=most)
    axes.grid(False)
    if bar:
        axes.figure.colorbar(image, ax=axes, label=bar, pad=0.02)
    if numbers:
        axes.set(xticks=range(cells.shape[1]), yticks=range(cells.shape[0]))
        for (row, column), value in np.ndenumerate(cells):
            size, ink = 9 if max(cells.shape) < 10 else 6, ink_on(image.to_rgba(value))
            axes.text(column, row, numbers.format(value), ha="center", va="center", fontsize=size, color=ink)
    return image


def ordered_colors(count: int) -> Any:
    """Returns colours of series that have an order, from dark to bright."""
    return matplotlib.colormaps["viridis"](np.linspace(0, 0.85, count))


def ink_on(color: Any) -> str:
    """Returns the colour of a text that can be read on a colour."""
    return "white" if np.dot((0.299, 0.587, 0.114), to_rgb(color)) < 0.55 else "black"


def legend_below(axes: Axes, columns: int, lines: int = 1) -> None:
    """Puts the legend below the axes, where it covers nothing. `lines` are those of a tick's label."""
    below = ScaledTranslation(0, -(28 + 14 * lines) / 72, axes.figure.dpi_scale_trans)
    axes.legend(bbox_to_anchor=(0.5, 0), bbox_transform=axes.transAxes + below, ncol=columns)


def plain_ticks(axis: Any) -> None:
    """Marks a logarithmic axis at 1, 2, 3, 5, 7, 10, 20 and so on, written as numbers without exponents."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


# ---- the list of pictures, and their options ----

Draw = Callable[[argparse.Namespace], Picture]
# Options that pictures share: metavariable, type, and help.
OPTIONS: Dict[str, Tuple[str, Callable[[str], Any], str]] = {
    "tokens": ("N", within(2, 4096), "positions or offsets"),
    "dim": ("N", within(2, 1024), "dimensions"),
    "heads": ("N", within(1, 256), "attention heads"),
    "seed": ("N", within(0, 2**63 - 1), "seed of what is drawn at random"),
    "layout": ("NAME", str, "order of a row, or of the axes"),
    "sentence": ("WORDS", str, "2 to 12 words"),
}


class Kind(NamedTuple):
    """A kind of picture; see kind()."""

    summary: str  # what it shows
    caption: str  # how to read it
    draw: Draw
    defaults: Dict[str, Any]  # of its options
    forwards: bool  # other options go to posenc table

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options of the picture. One whose default is a tuple takes one of the names in it."""
        for name, default in self.defaults.items():
            metavar, parse, text = OPTIONS[name]
            names = default if isinstance(default, tuple) else None
            text += f": {', '.join(default[:-1])} or {default[-1]}" if names else ""
            default = names[0] if names else default
            parser.add_argument(f"--{name}", metavar=metavar, type=parse, default=default, choices=names,
                                help=f"{text} (default: {default})")  # fmt: skip


KINDS: Dict[str, Kind] = {}


def kind(name: str, forwards: bool = False, **defaults: Any) -> Callable[[Draw], Draw]:
    """Registers a function as the picture of this name; its docstring is the summary and, below it, how to read it.

    `defaults` are its options, by their names in OPTIONS. With `forwards`, options that the picture does not have
    itself, such as --model or --problem, go to `posenc table`: they are in `args.forwarded`.
    """

    def register(draw: Draw) -> Draw:
        summary, _, caption = (inspect.getdoc(draw) or "").partition("\n\n")
        KINDS[name] = Kind(summary, caption, draw, defaults, forwards)
        return draw

    return register


# ---- numbers of `posenc table`, and its options as words ----


def table(line: str, *options: str) -> Dict[str, Array]:
    """Returns the values of a problem: arrays [row][column] by name. The first has the position of each row."""
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
