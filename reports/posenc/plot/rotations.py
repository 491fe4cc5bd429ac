"""Pictures of rotations: RoPE, xPos, scaling families, and positions with several axes."""

import argparse
import math
from typing import Dict, Iterator, List, Tuple

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
import numpy as np

from .picture import (
    SERIES, Array, Picture, angles, describe, draw_lines, draw_map, ink_on, kind, legend_below, ordered_colors,
    pairs_of, plain_ticks, problem_of, table,
)  # fmt: skip

FAR = 1 << 20  # a query far out, beside one at the end of the picture
OFFSET = "offset m − n, in positions"
SHOWN = 8  # positions drawn of each pair
DEFAULT = "rope_table rotary_dim=128"


def rotate(vectors: Array, cos: Array, sin: Array) -> Array:
    """Rotates a vector, or the vector of each row, by the angles of each row: channel i with channel i + half."""
    a, b = np.split(vectors, 2, axis=-1)
    return np.hstack([a * cos - b * sin, b * cos + a * sin])


@kind("rope", forwards=True, tokens=128, seed=1)
def draw_rope(args: argparse.Namespace) -> Picture:  # Su et al. 2104.09864, section 3.2
    """pairs rotating with the position; products of a query and a key by offset

    Above, one pair of channels each: the arrow (1, 0) after rotating by the angles of positions 0 to 7.
    Below, lines and circles are products of the same vectors at two places of the sequence; they lie on each other.
    """
    line, options = problem_of(args.forwarded, DEFAULT)
    radians = pairs_of(line, options)["radians"]
    n, pairs = args.tokens, len(radians)
    cos, sin = angles(line, "--positions", f"0..{max(n, SHOWN) - 1},{FAR - n + 1}..{FAR}", *options)
    shown = sorted({0, pairs // 4, pairs // 2} if pairs > 2 else {0})
    title = f"Rotary encoding: each pair of channels rotates with the position, here 0 to {SHOWN - 1}"
    panels = [[f"pair {pair}" for pair in shown], ["products"] * len(shown)]
    picture = Picture((13, 9.5), title, describe(line, [*options, "--backend=scalar"]), panels)
    for pair in shown:
        step = f"pair {pair}: {radians[pair]:.6g} radians per position"
        count = f"{2 * math.pi / radians[pair]:.6g}" if radians[pair] > 0 else "no number of"
        turn = f"a full turn in {count} positions"
        axes = picture.panel(f"pair {pair}", f"{step},\n{turn}", f"channel {pair}", f"channel {pair + pairs}")
        _draw_pair(axes, radians[pair], cos[:SHOWN, pair], sin[:SHOWN, pair])
        picture.facts.append(f"{step}, {turn}")

    vectors = {
        "query and key of ones": np.ones((2, 2 * pairs)),
        "random query and key": np.random.default_rng(args.seed).normal(size=(2, 2 * pairs)),
    }
    picture.facts += _draw_products(picture, vectors, (cos[:n], sin[:n]), (cos[-n:], sin[-n:]))
    return picture


def _draw_products(
    picture: Picture, vectors: Dict[str, Array], near: Tuple[Array, Array], far: Tuple[Array, Array]
) -> Iterator[str]:
    """Draws products of each query and key by offset, at two places of the sequence. Yields facts about them."""
    title = "Product of a query at m and a key at n: it depends on the offset alone"
    axes, n = picture.panel("products", title, OFFSET, "q · k / (|q| |k|)"), len(near[0])
    for color, (name, (query, key)) in zip(SERIES, vectors.items()):
        norm = math.sqrt((query @ query) * (key @ key))
        # By offset, for the query at the last of the positions.
        lines, circles = (
            (rotate(key, cos, sin) @ rotate(query, cos[-1:], sin[-1:])[0])[::-1] / norm for cos, sin in (near, far)
        )
        axes.plot(lines, color=color, label=f"{name}, m = {n - 1}")
        marks = {"marker": "o", "markersize": 5, "fillstyle": "none", "markevery": n // 48 + 1}
        axes.plot(circles, color=color, linestyle="none", label=f"{name}, m = {FAR}", **marks)
        apart = f"{abs(lines - circles).max():.2g}"
        yield f"{name}: products of m = {n - 1} and m = {FAR} differ by at most {apart}"
        for at in np.flatnonzero(np.diff(lines) > 0)[:1]:
            rise = f"{lines[at]:.4f} at offset {at}, {lines[at + 1]:.4f} at {at + 1}"
            yield f"{name}: nearer is not always more similar: {rise}"
    axes.axhline(0, color="#999999", linewidth=0.8)
    axes.set_xlim(0, n - 1)
    legend_below(axes, 2)


def _draw_pair(axes: Axes, radians: float, cos: Array, sin: Array) -> None:
    """Draws where (1, 0) is at positions 0, 1, ...; numbers stand where there is room for them."""
    circle = np.linspace(0, 2 * math.pi, 200)
    axes.plot(np.cos(circle), np.sin(circle), color="#bbbbbb", linewidth=1)
    arrows = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.012}
    axes.quiver(*np.zeros((2, SHOWN)), cos, sin, color=ordered_colors(SHOWN), **arrows)
    for position in range(SHOWN):
        if radians > 0.3 or position in (0, SHOWN - 1):
            away = 0.0 if radians > 0.3 else 0.1 if position else -0.1
            axes.text(1.2 * cos[position], 1.2 * sin[position] + away, str(position), ha="center", va="center")
    ticks, limits = (-1, 0, 1), (-1.4, 1.4)
    axes.set(aspect="equal", xlim=limits, ylim=limits, xticks=ticks, yticks=ticks)
    axes.grid(False)


@kind("xpos", tokens=1024, dim=64)
def draw_xpos(args: argparse.Namespace) -> Picture:  # Sun et al. 2212.10554
    """the products of RoPE and of xPos by offset, and the factor of each pair

    Left: the products of RoPE swing on at any offset, those of xPos calm down. Right: the factor that
    each pair's product has at an offset; a straight line is an exponential decay.
    """
    n, dim, base = args.tokens, args.dim, 512  # positions over which a pair's factor counts once
    plain = f"rope_table rotary_dim={dim} tokens={n}"
    scaled = f"{plain} xpos_scale_base={base} xpos_centre={n // 2}"
    products = {}
    for name, query, key in (("RoPE", plain, plain), ("xPos", scaled, f"{scaled} xpos_inverse=true")):
        (cos, sin), (key_cos, key_sin) = angles(query), angles(key)
        # Vectors of ones: (c - s, c + s) of the query times that of each key, over the channels.
        products[name] = (key_cos @ cos[-1] + key_sin @ sin[-1])[::-1] * 2 / dim
    shown = sorted({k * (dim // 2 - 1) // 3 for k in range(4)})
    factors = {pair: (2 * pair + 0.4 * dim) / (1.4 * dim) for pair in shown}

    parameters = f"rope_interleaved, head_dim {dim}, scale base {base}"
    title = "xPos: a rotation whose fast pairs fade with the offset"
    picture = Picture((13, 6), title, parameters, [["products", "factors"]], width_ratios=[1.4, 1])
    offsets = np.arange(n)
    left = picture.panel("products", "Product of a query and a key of ones, divided by head_dim", OFFSET, "product")
    draw_lines(left, offsets, products)
    right = picture.panel("factors", "Factor of some pairs", OFFSET, "factor (logarithmic)")
    draw_lines(right, offsets, {f"pair {pair}": f ** (offsets / base) for pair, f in factors.items()}, columns=4)
    right.set_yscale("log")
    plain_ticks(right.yaxis)

    picture.facts.append(f"{'offset':<8} {'RoPE':>10} {'xPos':>10}")
    for offset in (4**k for k in range(7) if 4**k < n):
        picture.facts.append(f"{offset:<8} {products['RoPE'][offset]:10.4f} {products['xPos'][offset]:10.4f}")
    picture.facts += [f"pair {pair}: factor {f:.4f} every {base} positions" for pair, f in factors.items()]
    return picture


# One published model for each family, or parameters where no model here has it.
FAMILIES = {
    "linear, factor 4": f"{DEFAULT} scaling=linear factor=4",
    "dynamic, factor 2,\n4096 tokens trained, 16384 read": f"{DEFAULT} scaling=dynamic factor=2 "
    "max_position_embeddings=4096 seq_len=16384",
    "ntk, factor 4": f"{DEFAULT} scaling=ntk factor=4",
    "llama3: llama-3.1-8b": "rope_table --model llama-3.1-8b",
    "yarn: gpt-oss-20b": "rope_table --model gpt-oss-20b",
    "longrope:\nphi-3-mini-128k, 131072 tokens": "rope_table seq_len=131072 --model phi-3-mini-128k",
    "proportional, a quarter of the pairs": f"{DEFAULT} scaling=proportional partial_rotary_factor=0.25",
    "resonance: whole wavelengths": f"{DEFAULT} scaling=resonance",
}


def _line_and_model(text: str) -> Tuple[str, List[str]]:
    """Returns a problem, and the options that name its model."""
    line, flag, model = text.partition(" --model ")
    return line, ["--model", model] if flag else []


@kind("frequencies", forwards=True)
def draw_frequencies(args: argparse.Namespace) -> Picture:
    """wavelengths of the pairs before and after a scaling: of each family, or of one

    One family each: the dashed line is the wavelength of each pair before, the blue one after. A pair
    is kept if both lie on each other, and divided by the factor if they are a constant distance apart.
    """
    if args.forwarded:
        line, options = problem_of(args.forwarded, DEFAULT)
        families = {describe(line, options): (line, options)}
        rows, size, parameters = [list(families)], (8.0, 6.0), describe(line, options)
    else:
        families = {name: _line_and_model(text) for name, text in FAMILIES.items()}
        names = list(families)
        rows, size, parameters = [names[:4], names[4:]], (15.0, 8.5), "one scaling family each"
    title = "Wavelengths before (dashed) and after (blue) context extension; shaded pairs do not rotate"
    picture = Picture(size, title, parameters, rows, sharey=True)
    for name, (line, options) in families.items():
        axes = picture.panel(name, name, "pair", "positions per full turn" if name in (row[0] for row in rows) else "")
        columns = pairs_of(line, options)
        pairs, before, after = columns["pair"], columns["unscaled_wavelength"], columns["wavelength"]
        rotating = np.isfinite(after)
        axes.semilogy(pairs[rotating], after[rotating], color=SERIES[0], linewidth=2.5)
        axes.semilogy(pairs, before, color="black", linestyle="--", linewidth=1)
        axes.axvspan(rotating.sum() - 0.5, len(pairs), color="#eeeeee", zorder=0)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xlim(0, len(pairs) - 1)

        slower = columns["unscaled_radians"][rotating] / columns["radians"][rotating]
        picture.facts.append(
            f"{' '.join(name.split())}: {len(slower)} of {len(pairs)} pairs rotate, {slower.min():.4g} to "
            f"{slower.max():.4g} times as slowly, attention factor {columns['attention_factor'][0]:.6g}"
        )
    return picture


BEFORE, WIDTH, HEIGHT = 5, 6, 4  # tokens of text before the image; columns and rows of the image
AXES = ("time", "row", "column")


@kind("mrope", layout=("qwen2_vl", "qwen3_vl", "qwen2_vl_vision", "pixtral", "kimi"))
def draw_mrope(args: argparse.Namespace) -> Picture:  # Wang et al. 2409.12191, section 2.1
    """positions with three axes: an image in a text, and the pair that each axis rotates

    Above, the three positions of each token of a small image, which follows five tokens of text. In the
    middle, the angle by which one pair of each axis rotates there. Below, the axis that each pair follows.
    """
    layout = f"rope_table rotary_dim=32 mrope_section=4,6,6 mrope_layout={args.layout}"
    image = f"{layout} position_kind=i64 mrope_grid={WIDTH} tokens={HEIGHT * WIDTH} position_offset={BEFORE}"
    position, cos, sin = table(image).values()
    degrees = np.degrees(np.arctan2(sin, cos)) % 360
    axis_of_pair = pairs_of(layout)["axis"].astype(int)

    text = f"{BEFORE} of text, whose positions are 0 to {BEFORE - 1} on all axes"
    parameters = f"{args.layout}, sections 4, 6, 6 of 16 pairs; an image of {HEIGHT} × {WIDTH} tokens after {text}"
    panels = [list(AXES), [f"angle {name}" for name in AXES], ["pairs"] * 3]
    title = "M-RoPE: each pair rotates with one axis of the position"
    picture = Picture((13, 9.2), title, parameters, panels, height_ratios=[3, 3, 1])
    strip = picture.panel("pairs", "axis of each pair: t time, r row, c column", "pair", "")
    for k, name in enumerate(AXES):
        pairs = np.flatnonzero(axis_of_pair == k)
        places = position[:, k].reshape(HEIGHT, WIDTH)
        turned = degrees[:, pairs[0]].reshape(HEIGHT, WIDTH)
        angle = f"angle of pair {pairs[0]} ({name}), in degrees"
        maps = ((name, f"position: {name}", places, "{:.0f}"), (f"angle {name}", angle, turned, "{:.1f}"))
        for panel, title, cells, numbers in maps:
            axes = picture.panel(panel, title, "column of the image", "row of the image")
            draw_map(axes, cells, numbers=numbers)
        strip.bar(pairs, 1, width=0.94, color=SERIES[k])
        for pair in pairs:
            strip.text(pair, 0.5, name[0], ha="center", va="center", color=ink_on(SERIES[k]))
        picture.facts.append(f"{name}: pairs {' '.join(map(str, pairs))}")
    strip.grid(False)
    strip.set(yticks=(), xlim=(-0.5, 15.5), ylim=(0, 1), xticks=range(16))
    return picture
