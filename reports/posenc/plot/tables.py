"""Pictures of tables that are added to tokens: sinusoidal and learned."""

import argparse
import math
from typing import List, Tuple

from matplotlib.axes import Axes
import numpy as np

from ..command import CommandError, within
from ..engine import Engine
from .kinds import describe, integer, kind
from .style import SERIES, Array, Picture, cosines, draw_map, legend_below, new_figure

TWO_PI = 2 * math.pi


def _similarity(axes: Axes, table: Array, first: int) -> None:
    draw_map(axes, cosines(table), "cosine similarity", (first, first))
    axes.set(title="Cosine similarity of two positions", xlabel="position", ylabel="position")


def _values(axes: Axes, table: Array, first: int) -> None:
    draw_map(axes, table.T, "value", (first, 0))
    axes.set(title="Value of each dimension at each position", xlabel="position", ylabel="dimension")


# ---- sinusoidal ----


def wavelengths(layout: str, row: Array) -> Array:
    """Returns the positions after which each dimension repeats, from the row of position 1; 0: never.

    The angle of a pair at position 1 is its frequency, whatever multiplies the table.
    """
    pairs = len(row) // 2
    if layout == "interleaved":
        sines, cosine = row[0 : 2 * pairs : 2], row[1 : 2 * pairs : 2]
    elif layout == "sin_cos":
        sines, cosine = row[:pairs], row[pairs : 2 * pairs]
    else:
        cosine, sines = row[:pairs], row[pairs : 2 * pairs]
    angle = np.arctan2(sines, cosine)
    period = np.divide(TWO_PI, angle, out=np.zeros_like(angle), where=angle > 0)
    by_dimension = np.zeros(len(row))
    by_dimension[: 2 * pairs] = np.repeat(period, 2) if layout == "interleaved" else np.tile(period, 2)
    return by_dimension


def choose_curves(tokens: int, wavelength: Array, count: int = 4) -> List[int]:
    """Returns dimensions whose curves can be read.

    Their wavelengths grow evenly from an eighth of the positions to three times as many, and are eight at least.
    """
    chosen: List[int] = []
    first, last = max(tokens / 8, 8.0), 3.0 * max(tokens, 8.0)
    for k in range(count):
        wanted = first * (last / first) ** (k / (count - 1))
        known = {wavelength[d] for d in chosen}
        left = [d for d in range(len(wavelength)) if wavelength[d] > 0 and wavelength[d] not in known]
        if left:
            chosen.append(min(left, key=lambda d: abs(math.log(wavelength[d] / wanted))))
    return chosen


def _curves(axes: Axes, table: Array, first: int, dimensions: List[int], wavelength: Array) -> None:
    positions = first + np.arange(len(table))
    for color, d in zip(SERIES, dimensions):
        period = f": {wavelength[d]:.4g}" if wavelength[d] > 0 else ""
        axes.plot(positions, table[:, d], color=color, label=f"dimension {d}{period}")
    axes.set(
        title="Single dimensions, and their wavelengths in positions",
        xlabel="position",
        ylabel="value",
        xlim=(positions[0], positions[-1]),
    )
    axes.grid(True)
    legend_below(axes, 2 if len(dimensions) < 5 else 4)


def _take_dimensions(text: str, width: int) -> List[int]:
    try:
        dimensions = [int(word) for word in text.split(",")]
    except ValueError:
        dimensions = []
    if not 1 <= len(dimensions) <= len(SERIES) or not all(0 <= d < width for d in dimensions):
        raise CommandError(
            f"--dims takes up to {len(SERIES)} dimensions from 0 to {width - 1}, "
            f"separated by commas (got '{text}')."
        )
    return dimensions


def _sinusoidal_options(parser: argparse.ArgumentParser) -> None:
    integer(parser, "--tokens", (2, 4096), 64, "consecutive positions")
    parser.add_argument(
        "--first", metavar="P", type=within(-(2**31) + 1, 2**31 - 1), default=0, help="the first position (default: 0)"
    )
    parser.add_argument("--dim", metavar="D", type=within(1, 4096), help="dimensions (default: 128, or the model's)")
    parser.add_argument(
        "--layout",
        choices=("interleaved", "sin_cos", "cos_sin"),
        default="interleaved",
        help="order of sines and cosines in a row (default: interleaved)",
    )
    parser.add_argument("--dims", metavar="LIST", help="dimensions drawn as curves, such as 0,8,32")


@kind("sinusoidal", "values, single dimensions and similarity of a table", _sinusoidal_options, forwards=True)
def draw_sinusoidal(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws the table of Vaswani et al. 1706.03762, section 3.5."""
    options = ["--layout", args.layout, *args.frequencies]
    if args.dim is not None or "--model" not in args.frequencies and "--config" not in args.frequencies:
        options += ["--dim", str(args.dim or 128)]
    places = [f"{args.first}..{args.first + args.tokens - 1}", "1"]
    table = np.array(engine.rows("sinusoidal", "--positions", ",".join(places), *options).arrays["sinusoidal"])
    table, unit = table[:-1], table[-1]
    wavelength = wavelengths(args.layout, unit)
    dimensions = _take_dimensions(args.dims, table.shape[1]) if args.dims else choose_curves(args.tokens, wavelength)
    figure = new_figure(
        13,
        10,
        f"Sinusoidal encoding: {len(table)} positions from {args.first}, " f"{table.shape[1]} dimensions",
        describe(options + engine.options),
    )
    panels = figure.subplot_mosaic(
        [["values", "values"], ["curves", "similarity"]], gridspec_kw={"width_ratios": [1.25, 1]}
    )
    _values(panels["values"], table, args.first)
    if dimensions:
        _curves(panels["curves"], table, args.first, dimensions, wavelength)
    _similarity(panels["similarity"], table, args.first)
    return Picture(figure, _sinusoidal_facts(table))


def _sinusoidal_facts(table: Array) -> str:
    similar = cosines(table)
    lines = [f"shape {list(table.shape)}", f"min {table.min():.3f}", f"max {table.max():.3f}"]
    for offset in (1, 4, 16, 32):
        mean = f"{np.diagonal(similar, offset).mean():.3f}" if offset < len(table) else "too few positions"
        lines.append(f"average cosine similarity at offset {offset}: {mean}")
    return "\n".join(lines)


# ---- learned ----

DEVIATION = 0.02  # of a table before training, as BERT and GPT-2 begin


def _rows(text: str) -> Tuple[int, int]:
    first, dots, last = text.partition("..")
    if not (dots and first.isdigit() and last.isdigit() and 0 < int(last) - int(first) < 1024):
        raise argparse.ArgumentTypeError(f"expected A..B, 2 to 1024 rows of the table (got '{text}')")
    return int(first), int(last)


def _learned_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rows", metavar="A..B", type=_rows, default=(0, 63), help="rows of the table (default: 0..63)"
    )
    integer(parser, "--dim", (1, 1024), 128, "dimensions", "D")
    integer(parser, "--seed", (0, 2**63 - 1), 1, "seed of tokens and table")


@kind("learned", "a table before training: values, similarity, its size beside tokens", _learned_options)
def draw_learned(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws a table that was drawn at random, as it is before training."""
    first, last = args.rows
    shape = (last - first + 1, args.dim)
    tokens = np.random.default_rng([args.seed, 0]).normal(size=shape)
    # One row after the other: a row is the same whichever are drawn.
    table = np.array(
        [
            np.random.default_rng([args.seed, 1, row]).normal(scale=DEVIATION, size=args.dim)
            for row in range(first, last + 1)
        ]
    )
    rows = engine.rows("sinusoidal", "--positions", f"{first}..{last}", "--dim", str(args.dim))
    sinusoidal = np.array(rows.arrays["sinusoidal"])
    parts = {
        "tokens": tokens,
        "sinusoidal": sinusoidal,
        "learned": table,
        "tokens + sinusoidal": tokens + sinusoidal,
        "tokens + learned": tokens + table,
    }
    caption = (
        f"positions {first} to {last}, {args.dim} dimensions, tokens N(0, 1), "
        f"table N(0, {DEVIATION}²), seed {args.seed}"
    )
    figure = new_figure(13, 10, "Learned encoding before training: a table drawn at random", caption)
    panels = figure.subplot_mosaic(
        [["values", "values"], ["sizes", "similarity"]], gridspec_kw={"width_ratios": [1.25, 1]}
    )
    _values(panels["values"], table, first)
    _sizes(panels["sizes"], {name: float(part.std()) for name, part in parts.items()})
    _similarity(panels["similarity"], table, first)
    facts = [caption, "standard deviations, and root mean squares"]
    facts += [f"  {name:<20} {part.std():.4f} {math.sqrt((part ** 2).mean()):.4f}" for name, part in parts.items()]
    facts.append(f"correlation of tokens and learned table: {np.corrcoef(tokens.ravel(), table.ravel())[0, 1]:.4f}")
    facts.append(f"parameters: learned {last + 1} x {args.dim} = {(last + 1) * args.dim}, sinusoidal 0")
    return Picture(figure, "\n".join(facts))


def _sizes(axes: Axes, deviations: "dict[str, float]") -> None:
    bars = axes.barh(list(deviations), list(deviations.values()), color=SERIES[0], height=0.7)
    axes.bar_label(bars, fmt="%.3f", padding=4)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.grid(True, axis="x")
    axes.set(title="Standard deviation of each part", xlabel="standard deviation")
