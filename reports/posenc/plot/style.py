"""How pictures look: colours, maps, titles, and their files.

Positions run to the right, and downwards where a map has two of them. Legends stand outside the axes.
"""

import io
import re
from itertools import cycle
from typing import Any, Dict, Optional, Sequence, Tuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, TwoSlopeNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import ScaledTranslation
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Okabe and Ito's colours without yellow, which is not seen as a line on white.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))

CELLS = 1000  # of a map along each axis: a screen shows no more

matplotlib.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "posenc",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.grid": False,
        "grid.color": "#dddddd",
        "axes.axisbelow": True,
        "lines.linewidth": 1.8,
        "legend.frameon": False,
    }
)


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
    metadata: Dict[str, Optional[str]] = {stamp: None}
    figure.savefig(out, format=kind, dpi=110, metadata=metadata)
    data = out.getvalue()
    return _tidy(data.decode()).encode() if kind == "svg" else data


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
    axes.grid(True)
    axes.set_xlim(x[0], x[-1])
    if len(curves) > 1:
        legend_below(axes, columns)


def draw_map(
    axes: Axes,
    cells: Array,
    first: Tuple[float, float] = (0, 0),
    limits: Optional[Tuple[float, float]] = None,
    bar: str = "",
    numbers: str = "",
) -> Any:
    """Draws cells[row][column]: columns to the right, rows downwards, the first with its centre at `first`.

    Values of both signs have a white zero; others run from dark to bright, between `limits` if those are given.
    `bar` labels the bar of colours beside the map. `numbers` is how to write the number of each cell on it.
    """
    every_row, every_column = (-(-count // CELLS) for count in cells.shape)
    few = cells[::every_row, ::every_column]
    left, top = first[0] - every_column / 2, first[1] - every_row / 2
    extent = (left, left + few.shape[1] * every_column, top + few.shape[0] * every_row, top)
    least, most = limits or (float(few.min()), float(few.max()))
    reach = max(-least, most)
    norm = TwoSlopeNorm(0, -reach, reach) if least < 0 else Normalize(least, most)
    colors = "RdBu_r" if least < 0 else "viridis"
    image = axes.imshow(few, extent=extent, aspect="auto", interpolation="none", cmap=colors, norm=norm)
    if bar:
        axes.figure.colorbar(image, ax=axes, label=bar, pad=0.02)
    if numbers:
        for (row, column), value in np.ndenumerate(cells):
            size, ink = 9 if max(cells.shape) < 10 else 6, ink_on(image.cmap(norm(value)))
            axes.text(column, row, numbers.format(value), ha="center", va="center", fontsize=size, color=ink)
    return image


def in_order(count: int) -> Any:
    """Returns colours of series that have an order, from dark to bright."""
    return matplotlib.colormaps["viridis"](np.linspace(0, 0.85, count))


def ink_on(color: Any) -> str:
    """Returns the colour of a text that can be read on a colour."""
    return "white" if np.dot((0.299, 0.587, 0.114), to_rgb(color)) < 0.55 else "black"


def legend_below(axes: Axes, columns: int) -> None:
    """Puts the legend below the axes, where it covers nothing."""
    lines = 1 + axes.get_xticklabels()[0].get_text().count("\n") if axes.get_xticklabels() else 1
    below = ScaledTranslation(0, -(28 + 14 * lines) / 72, axes.figure.dpi_scale_trans)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=axes.transAxes + below,
        ncol=columns,
        handlelength=3,
        borderaxespad=0,
    )


def plain_ticks(axis: Any) -> None:
    """Marks a logarithmic axis at 1, 2, 3, 5, 7, 10, 20 and so on, written as numbers without exponents."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
