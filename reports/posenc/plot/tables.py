"""Pictures of tables that are added to tokens: sinusoidal and learned."""

import argparse
import math
from typing import Any, List, Tuple

import numpy as np

from ..command import CommandError
from ..engine import Engine
from .kinds import SEED, describe, integer, kind, option, with_dim
from .style import SERIES, Array, Picture, draw_lines, draw_map


def _cosines(table: Array) -> Array:
    """Returns the cosine of the angle between each two rows; 0 where a row is 0."""
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    unit = np.divide(table, norms, out=np.zeros_like(table), where=norms > 0)
    return np.asarray(unit @ unit.T)


def _draw_table(title: str, parameters: str, table: Array, first: int) -> Picture:
    """Draws the values of a table whose first row is of position `first`, and how similar its rows are."""
    panels = [["values", "values"], ["left", "similarity"]]
    picture = Picture((13, 10), title, parameters, panels, width_ratios=[1.25, 1])
    values = picture.panel("values", "Value of each dimension at each position", "position", "dimension")
    draw_map(values, table.T, (first, 0), bar="value")
    similarity = picture.panel("similarity", "Cosine similarity of two positions", "position", "position")
    draw_map(similarity, _cosines(table), (first, first), bar="cosine similarity")
    return picture


def _wavelengths(engine: Engine, options: List[str], interleaved: bool) -> Array:
    """Returns the positions after which each dimension repeats; 0: never."""
    # The angle of a pair at position 1 is its frequency, whatever multiplies the table.
    row = np.array(engine.rows("sinusoidal", "--positions", "1", *options).arrays["sinusoidal"][0])
    both = len(row) // 2 * 2
    angle = np.arctan2(row[0:both:2], row[1:both:2])
    period = np.divide(2 * math.pi, angle, out=np.zeros_like(angle), where=angle > 0)
    by_dimension = np.repeat(period, 2) if interleaved else np.tile(period, 2)
    return np.asarray(np.pad(by_dimension, (0, len(row) - both)))


def choose_curves(tokens: int, wavelength: Array, count: int = 4) -> List[int]:
    """Returns dimensions whose curves can be read.

    Their wavelengths grow evenly from an eighth of the positions to three times as many, and are eight at least.
    """
    chosen: List[int] = []
    first, last = max(tokens / 8, 8.0), 3.0 * max(tokens, 8.0)
    for wanted in np.geomspace(first, last, count):
        known = {wavelength[d] for d in chosen}
        left = [d for d in range(len(wavelength)) if wavelength[d] > 0 and wavelength[d] not in known]
        if left:
            chosen.append(min(left, key=lambda d: abs(math.log(wavelength[d] / wanted))))
    return chosen


def _take_dimensions(text: str, width: int) -> List[int]:
    words = text.split(",")
    if len(words) > len(SERIES) or not all(word.isdecimal() and int(word) < width for word in words):
        raise CommandError(
            f"--dims takes up to {len(SERIES)} dimensions from 0 to {width - 1}, "
            f"separated by commas (got '{text}')."
        )
    return [int(word) for word in words]


@kind(
    integer("--tokens", 2, 4096, 64, "consecutive positions"),
    integer("--first", -(2**31) + 1, 2**31 - 1, 0, "the first position", "P"),
    option(
        "--layout", "interleaved", "order of sines and cosines in a row", choices=("interleaved", "sin_cos", "cos_sin")
    ),
    ("--dims", {"metavar": "LIST", "help": "dimensions drawn as curves, such as 0,8,32"}),
    forwards=True,
)
def sinusoidal(args: argparse.Namespace, engine: Engine) -> Picture:  # Vaswani et al. 1706.03762, section 3.5
    """values, single dimensions and similarity of a table

    Above, each column is the row of the table that one position gets; red is 1, white 0, blue −1. Fast dimensions
    flicker at the top, slow ones are stripes at the bottom. Left: four dimensions as curves. Right: bright cells are
    pairs of positions whose rows are alike; the bands run along the diagonal, as similarity depends on the offset.
    """
    forwarded = with_dim(args.forwarded)
    options = ["--layout", args.layout, *forwarded]
    places = f"{args.first}..{args.first + args.tokens - 1}"
    table = np.array(engine.rows("sinusoidal", "--positions", places, *options).arrays["sinusoidal"])
    count, width = table.shape
    title = f"Sinusoidal encoding: {count} positions from {args.first}, {width} dimensions"
    picture = _draw_table(title, describe(options + engine.options), table, args.first)

    wavelength = _wavelengths(engine, forwarded, args.layout == "interleaved")
    dimensions = _take_dimensions(args.dims, width) if args.dims else choose_curves(args.tokens, wavelength)
    periods = {d: f": {wavelength[d]:.4g}" if wavelength[d] > 0 else "" for d in dimensions}
    curves = {f"dimension {d}{period}": table[:, d] for d, period in periods.items()}
    left = picture.panel("left", "Single dimensions, and their wavelengths in positions", "position", "value")
    draw_lines(left, args.first + np.arange(count), curves)

    picture.facts += [f"shape {list(table.shape)}", f"min {table.min():.3f}", f"max {table.max():.3f}"]
    for offset in (1, 4, 16, 32):
        along = np.diagonal(_cosines(table), offset)
        mean = f"{along.mean():.3f}" if len(along) else "too few positions"
        picture.facts.append(f"average cosine similarity at offset {offset}: {mean}")
    return picture


DEVIATION = 0.02  # of a table before training, as BERT and GPT-2 begin


def _rows(text: str) -> Tuple[int, int]:
    first, dots, last = text.partition("..")
    if not (dots and first.isdigit() and last.isdigit() and 0 < int(last) - int(first) < 1024):
        raise argparse.ArgumentTypeError(f"expected A..B, 2 to 1024 rows of the table (got '{text}')")
    return int(first), int(last)


def _normal(seed: Any, deviation: float, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(scale=deviation, size=shape)


@kind(
    option("--rows", "0..63", "rows of the table", metavar="A..B", type=_rows),
    integer("--dim", 1, 1024, 128, "dimensions", "D"),
    SEED,
)
def learned(args: argparse.Namespace, engine: Engine) -> Picture:
    """a table before training: values, similarity, its size beside tokens

    Above, each column is the row of the table that one position gets: no pattern. Right: no two positions are alike.
    Left: how far each part spreads around its mean.
    """
    (first, last), width = args.rows, args.dim
    tokens = _normal([args.seed, 0], 1, last - first + 1, width)
    # One row after the other: a row is the same whichever are drawn.
    table = np.array([_normal([args.seed, 1, row], DEVIATION, width) for row in range(first, last + 1)])
    rows = engine.rows("sinusoidal", "--positions", f"{first}..{last}", "--dim", str(width))
    sinusoidal = np.array(rows.arrays["sinusoidal"])
    parts = {
        "tokens": tokens,
        "sinusoidal": sinusoidal,
        "learned": table,
        "tokens + sinusoidal": tokens + sinusoidal,
        "tokens + learned": tokens + table,
    }
    parameters = (
        f"positions {first} to {last}, {width} dimensions, tokens N(0, 1), table N(0, {DEVIATION}²), seed {args.seed}"
    )
    picture = _draw_table("Learned encoding before training: a table drawn at random", parameters, table, first)
    axes = picture.panel("left", "Standard deviation of each part", "standard deviation", "")
    bars = axes.barh(list(parts), [part.std() for part in parts.values()], color=SERIES[0], height=0.7)
    axes.bar_label(bars, fmt="%.3f", padding=4)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.grid(True, axis="x")

    picture.facts.append("standard deviations, and root mean squares")
    picture.facts += [f"  {name:<20} {part.std():.4f} {np.sqrt((part**2).mean()):.4f}" for name, part in parts.items()]
    correlation = np.corrcoef(tokens.ravel(), table.ravel())[0, 1]
    picture.facts.append(f"correlation of tokens and learned table: {correlation:.4f}")
    picture.facts.append(f"parameters: learned {last + 1} x {width} = {(last + 1) * width}, sinusoidal 0")
    return picture
