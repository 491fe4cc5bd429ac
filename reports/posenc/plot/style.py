"""How pictures look: colours, maps, titles, and their files.

Positions run to the right, and downwards where a map has two of them. Legends stand outside the axes.
"""

import io
import re
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
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
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.grid": False,
        "grid.color": "#dddddd",
        "axes.axisbelow": True,
        "lines.linewidth": 1.8,
        "figure.constrained_layout.use": True,
        "legend.frameon": False,
    }
)


@dataclass
class Picture:
    """A figure, and its numbers as text."""

    figure: Figure
    facts: str


def new_figure(width: float, height: float, title: str, caption: str) -> Figure:
    """Returns a figure of that size in inches, with a title and a line of parameters below it."""
    figure = Figure(figsize=(width, height))
    figure.suptitle(f"{title}\n{caption}", fontsize=12)
    return figure


def save(figure: Figure, kind: str) -> bytes:
    """Returns the file of a figure: png, svg or pdf. The same figure gives the same bytes."""
    out = io.BytesIO()
    stamp = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}[kind]
    metadata: Dict[str, Optional[str]] = {stamp: None}
    figure.draw_without_rendering()  # fixed aspects move what the first layout placed
    figure.savefig(out, format=kind, dpi=110, metadata=metadata)
    data = out.getvalue()
    return _tidy(data.decode()).encode() if kind == "svg" else data


def _tidy(svg: str) -> str:
    """Numbers the names in an SVG, some of which come from addresses of memory, and drops those never used."""
    used = dict.fromkeys(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg))
    short = {name: f"n{k}" for k, name in enumerate(used)}

    def define(found: "re.Match[str]") -> str:
        return f' id="{short[found[1]]}"' if found[1] in short else ""

    svg = re.sub(r' id="([^"]+)"', define, svg)
    svg = re.sub(r"(url\(#|href=\"#)([^)\"]+)", lambda found: found[1] + short[found[2]], svg)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _thin(cells: Array) -> Tuple[Array, int, int]:
    every = [-(-count // CELLS) for count in cells.shape]
    return cells[:: every[0], :: every[1]], every[0], every[1]


def draw_map(axes: Axes, cells: Array, label: str, first: Tuple[float, float] = (0, 0), scale: bool = True) -> Any:
    """Draws cells[row][column]: columns to the right, rows downwards, the first with its centre at `first`.

    Values of both signs have a white zero; others run from dark to bright.
    """
    few, every_row, every_column = _thin(cells)
    least, most = float(few.min()), float(few.max())
    left, top = first[0] - every_column / 2, first[1] - every_row / 2
    extent = (left, left + few.shape[1] * every_column, top + few.shape[0] * every_row, top)
    settings: Dict[str, Any] = {"cmap": "viridis", "vmin": least, "vmax": most}
    if least < 0:
        reach = max(-least, most)
        settings = {"cmap": "RdBu_r", "norm": TwoSlopeNorm(0, -reach, reach)}
    image = axes.imshow(few, extent=extent, aspect="auto", interpolation="none", **settings)
    if scale:
        axes.figure.colorbar(image, ax=axes, label=label, pad=0.02)
    return image


def write_numbers(axes: Axes, image: Any, cells: Array, form: str, size: float) -> None:
    """Writes the number of each cell of a map on it, dark or bright as the cell asks for."""
    for (row, column), value in np.ndenumerate(cells):
        red, green, blue, _ = image.cmap(image.norm(value))
        ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else "black"
        axes.text(column, row, form.format(value), ha="center", va="center", fontsize=size, color=ink)


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


def cosines(table: Array) -> Array:
    """Returns the cosine of the angle between each two rows; 0 where a row is 0."""
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    unit = np.divide(table, norms, out=np.zeros_like(table), where=norms > 0)
    return np.asarray(unit @ unit.T)
