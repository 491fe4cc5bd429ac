"""Pictures of tables that are added to tokens: sinusoidal and learned."""

import argparse
import math
from typing import List

import numpy as np

from .picture import SERIES, Array, Picture, describe, draw_lines, draw_map, kind, problem_of, table


def _cosines(rows: Array) -> Array:
    """Returns the cosine of the angle between each two rows; 0 where a row is 0."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return np.asarray(unit @ unit.T)


def _draw_table(title: str, parameters: str, rows: Array) -> Picture:
    """Draws the values of a table, and how similar its rows are."""
    panels = [["values", "values"], ["left", "similarity"]]
    picture = Picture((13, 10), title, parameters, panels, width_ratios=[1.25, 1])
    values = picture.panel("values", "Value of each dimension at each position", "position", "dimension")
    draw_map(values, rows.T, bar="value", aspect="auto")
    similarity = picture.panel("similarity", "Cosine similarity of two positions", "position", "position")
    draw_map(similarity, _cosines(rows), bar="cosine similarity", aspect="auto")
    return picture


def _wavelengths(line: str, options: List[str], interleaved: bool) -> Array:
    """Returns the positions after which each dimension repeats; 0: never."""
    # The angle of a pair at position 1 is its frequency, whatever multiplies the table.
    row = table(f"{line} layout=interleaved", "--positions", "1", *options)["sinusoidal"][0]
    both = len(row) // 2 * 2
    angle = np.arctan2(row[0:both:2], row[1:both:2])
    period = np.divide(2 * math.pi, angle, out=np.zeros_like(angle), where=angle > 0)
    by_dimension = np.repeat(period, 2) if interleaved else np.tile(period, 2)
    return np.asarray(np.pad(by_dimension, (0, len(row) - both)))


def choose_curves(tokens: int, wavelength: Array) -> List[int]:
    """Returns four dimensions whose curves can be read.

    Their wavelengths grow evenly from an eighth of the positions to three times as many, and are eight at least.
    """
    chosen: List[int] = []
    for wanted in np.geomspace(max(tokens / 8, 8), 3 * max(tokens, 8), 4):
        left = [d for d in np.flatnonzero(wavelength) if wavelength[d] not in wavelength[chosen]]
        chosen += sorted(left, key=lambda d: abs(math.log(wavelength[d] / wanted)))[:1]
    return chosen


@kind("sinusoidal", forwards=True, tokens=64, layout=("interleaved", "sin_cos", "cos_sin"))
def draw_sinusoidal(args: argparse.Namespace) -> Picture:  # Vaswani et al. 1706.03762, section 3.5
    """values, single dimensions and similarity of a table

    Above, each column is the row of the table that one position gets; red is 1, white 0, blue −1. Fast dimensions
    flicker at the top, slow ones are stripes at the bottom. Left: four dimensions as curves. Right: bright cells are
    pairs of positions whose rows are alike; the bands run along the diagonal, as similarity depends on the offset.
    """
    line, options = problem_of(args.forwarded, "sinusoidal dim=128")
    whole = f"{line} layout={args.layout}"
    rows = table(whole, "--positions", f"0..{args.tokens - 1}", *options)["sinusoidal"]
    count, width = rows.shape
    title = f"Sinusoidal encoding: {count} positions from 0, {width} dimensions"
    picture = _draw_table(title, describe(whole, [*options, "--backend=scalar"]), rows)

    wavelength = _wavelengths(line, options, args.layout == "interleaved")
    curves = {f"dimension {d}: {wavelength[d]:.4g}": rows[:, d] for d in choose_curves(count, wavelength)}
    left = picture.panel("left", "Single dimensions, and their wavelengths in positions", "position", "value")
    draw_lines(left, np.arange(count), curves)

    picture.facts += [f"shape {list(rows.shape)}", f"min {rows.min():.3f}", f"max {rows.max():.3f}"]
    cosines = _cosines(rows)
    for offset in (1, 4, 16, 32):
        along = np.diagonal(cosines, offset)
        mean = f"{along.mean():.3f}" if len(along) else "too few positions"
        picture.facts.append(f"average cosine similarity at offset {offset}: {mean}")
    return picture


DEVIATION = 0.02  # of a table before training, as BERT and GPT-2 begin


@kind("learned", tokens=64, dim=128, seed=1)
def draw_learned(args: argparse.Namespace) -> Picture:
    """a table before training: values, similarity, its size beside tokens

    Above, each column is the row of the table that one position gets: no pattern. Right: no two positions are alike.
    Left: how far each part spreads around its mean.
    """
    count, width = args.tokens, args.dim
    draw = np.random.default_rng
    tokens = draw([args.seed, 0]).normal(size=(count, width))
    # One row after the other: a row is the same in tables of any size.
    rows = np.array([draw([args.seed, 1, row]).normal(scale=DEVIATION, size=width) for row in range(count)])
    sines = table(f"sinusoidal tokens={count} dim={width}")["sinusoidal"]
    parts = {
        "tokens": tokens, "sinusoidal": sines, "learned": rows, "tokens + sinusoidal": tokens + sines,
        "tokens + learned": tokens + rows,
    }  # fmt: skip
    drawn = f"tokens N(0, 1), table N(0, {DEVIATION}²), seed {args.seed}"
    parameters = f"positions 0 to {count - 1}, {width} dimensions, {drawn}"
    picture = _draw_table("Learned encoding before training: a table drawn at random", parameters, rows)
    axes = picture.panel("left", "Standard deviation of each part", "standard deviation", "")
    bars = axes.barh(list(parts), [part.std() for part in parts.values()], color=SERIES[0], height=0.7)
    axes.bar_label(bars, fmt="%.3f", padding=4)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.grid(False, axis="y")

    picture.facts.append("standard deviations, and root mean squares")
    picture.facts += [f"  {name:<20} {part.std():.4f} {np.sqrt((part**2).mean()):.4f}" for name, part in parts.items()]
    correlation = np.corrcoef(tokens.ravel(), rows.ravel())[0, 1]
    picture.facts.append(f"correlation of tokens and learned table: {correlation:.4f}")
    picture.facts.append(f"parameters: learned {count} x {width} = {count * width}, sinusoidal 0")
    return picture
