"""Pictures of rotations: RoPE, xPos, scaling families, and positions with several axes."""

import argparse
import math
from typing import Dict, List, Sequence, Tuple

from matplotlib.axes import Axes
import matplotlib
import numpy as np

from ..engine import Engine
from .kinds import describe, integer, kind, number
from .style import DASHES, SERIES, Array, Picture, draw_map, legend_below, new_figure, write_numbers

TWO_PI = 2 * math.pi
FAR = 1 << 20  # a query far out, beside one at the end of the picture


def frequencies(engine: Engine, options: Sequence[str]) -> "dict[str, Array]":
    """Returns the columns of posenc table frequencies; what is empty there is infinity."""
    lines = engine.columns("frequencies", *options)
    return {name: np.array([float(line[name] or "inf") for line in lines]) for name in lines[0]}


def _with_dim(options: List[str], dim: int) -> List[str]:
    named = any(option in ("--model", "--config", "--dim") for option in options)
    return options if named else ["--dim", str(dim), *options]


def _tables(engine: Engine, positions: str, options: Sequence[str]) -> Tuple[Array, Array]:
    arrays = engine.rows("rope_table", "--positions", positions, *options).arrays
    return np.array(arrays["cos"]), np.array(arrays["sin"])


# ---- rope ----

TURNS = 8  # positions drawn of each pair


def _rope_options(parser: argparse.ArgumentParser) -> None:
    integer(parser, "--tokens", (2, 4096), 128, "offsets")
    integer(parser, "--seed", (0, 2**63 - 1), 1, "seed of the random query and key")


def rotate(vectors: Array, cos: Array, sin: Array) -> Array:
    """Rotates a vector, or the vector of each row, by the angles of each row: channel i with channel i + half."""
    a, b = np.split(vectors, 2, axis=-1)
    return np.hstack([a * cos - b * sin, b * cos + a * sin])


@kind("rope", "pairs rotating with the position; products of a query and a key by offset", _rope_options, forwards=True)
def draw_rope(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws the rotation of Su et al. 2104.09864, section 3.2."""
    options = _with_dim(args.frequencies, 128)
    radians = frequencies(engine, options)["radians"]
    n, pairs = args.tokens, len(radians)
    near = f"0..{max(n, TURNS) - 1}"
    cos, sin = _tables(engine, f"{near},{FAR - n + 1}..{FAR}", options)
    parts = {n - 1: (cos[:n], sin[:n]), FAR: (cos[-n:], sin[-n:])}
    vectors = {
        "query and key of ones": (np.ones(2 * pairs), np.ones(2 * pairs)),
        "random query and key": tuple(np.random.default_rng(args.seed).normal(size=(2, 2 * pairs))),
    }
    products: Dict[str, Dict[int, Array]] = {}
    for name, (query, key) in vectors.items():
        products[name] = {}
        for position, (c, s) in parts.items():
            rotated = rotate(query, c[-1:], s[-1:])[0]
            products[name][position] = (rotate(key, c, s) @ rotated)[::-1] / math.sqrt((query @ query) * (key @ key))
    shown = sorted({0, pairs // 4, pairs // 2} if pairs > 2 else {0})
    caption = describe(options + engine.options)
    figure = new_figure(
        13, 9.5, f"Rotary encoding: each pair of channels rotates with the position, here 0 to {TURNS - 1}", caption
    )
    mosaic = [[f"pair {k}" for k in range(len(shown))], ["products"] * len(shown)]
    panels = figure.subplot_mosaic(mosaic)
    for k, pair in enumerate(shown):
        _pair(panels[f"pair {k}"], pair, pairs, radians[pair], cos[:TURNS, pair], sin[:TURNS, pair])
    _products(panels["products"], products)
    return Picture(figure, _rope_facts(caption, shown, radians, products))


def _pair(axes: Axes, pair: int, pairs: int, radians: float, cos: Array, sin: Array) -> None:
    """Draws where (1, 0) is at positions 0, 1, ...; labels stand where there is room for them."""
    circle = np.linspace(0, TWO_PI, 200)
    axes.plot(np.cos(circle), np.sin(circle), color="#bbbbbb", linewidth=1)
    colors = matplotlib.colormaps["viridis"](np.linspace(0, 0.85, TURNS))
    axes.quiver(
        np.zeros(TURNS), np.zeros(TURNS), cos, sin, color=colors, angles="xy", scale_units="xy", scale=1, width=0.012
    )
    for position in range(TURNS):
        if radians > 0.3 or position in (0, TURNS - 1):
            away = 0.0 if radians > 0.3 else 0.1 if position else -0.1
            axes.text(1.2 * cos[position], 1.2 * sin[position] + away, str(position), ha="center", va="center")
    turn = f"{TWO_PI / radians:.4g}" if radians > 0 else "no number of"
    axes.set(
        title=f"pair {pair}: {radians:.4g} radians per position,\na full turn in {turn} positions",
        xlim=(-1.4, 1.4),
        ylim=(-1.4, 1.4),
        aspect="equal",
        xlabel=f"channel {pair}",
        ylabel=f"channel {pair + pairs}",
        xticks=(-1, 0, 1),
        yticks=(-1, 0, 1),
    )


def _products(axes: Axes, products: Dict[str, Dict[int, Array]]) -> None:
    for color, (name, by_query) in zip(SERIES, products.items()):
        (near, first), (far, second) = by_query.items()
        offsets = np.arange(len(first))
        axes.plot(offsets, first, color=color, label=f"{name}, m = {near}")
        axes.plot(
            offsets,
            second,
            color=color,
            linestyle="none",
            marker="o",
            markersize=5,
            fillstyle="none",
            markevery=len(first) // 48 + 1,
            label=f"{name}, m = {far}",
        )
    axes.axhline(0, color="#999999", linewidth=0.8)
    axes.grid(True)
    axes.set(
        title="Product of a query at m and a key at n: it depends on the offset alone",
        xlabel="offset m − n, in positions",
        ylabel="q · k / (|q| |k|)",
        xlim=(0, len(offsets) - 1),
    )
    legend_below(axes, 2)


def _rope_facts(caption: str, shown: Sequence[int], radians: Array, products: Dict[str, Dict[int, Array]]) -> str:
    lines = [caption]
    for pair in shown:
        turn = f"{TWO_PI / radians[pair]:.6g}" if radians[pair] > 0 else "no number of"
        lines.append(f"pair {pair}: {radians[pair]:.6g} radians per position, a full turn in {turn} positions")
    for name, by_query in products.items():
        (near, first), (far, second) = by_query.items()
        lines.append(f"{name}: products of m = {near} and m = {far} differ by at most {abs(first - second).max():.2g}")
        rises = np.flatnonzero(np.diff(first) > 0)
        if len(rises):
            at = int(rises[0])
            lines.append(
                f"{name}: nearer is not always more similar: {first[at]:.4f} at offset {at}, "
                f"{first[at + 1]:.4f} at {at + 1}"
            )
    return "\n".join(lines)


# ---- xpos ----


def _xpos_options(parser: argparse.ArgumentParser) -> None:
    integer(parser, "--tokens", (2, 4096), 1024, "offsets")
    integer(parser, "--dim", (2, 4096), 64, "head_dim", "D")
    number(parser, "--xpos-scale-base", 512.0, "positions over which a pair's factor counts once")
    number(parser, "--rope-theta", 10000.0, "base of the frequencies")


@kind("xpos", "the products of RoPE and of xPos by offset, and the factor of each pair", _xpos_options)
def draw_xpos(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws the decay of Sun et al. 2212.10554: queries grow as keys shrink."""
    n, dim = args.tokens, args.dim
    base = ["--dim", str(dim), "--rope-theta", repr(args.rope_theta)]
    scaled = [*base, "--xpos-scale-base", repr(args.xpos_scale_base), "--xpos-centre", str(n // 2)]
    places = f"0..{n - 1}"
    products = {}
    for name, query, key in (("RoPE", base, base), ("xPos", scaled, [*scaled, "--xpos-inverse"])):
        (cos, sin), (key_cos, key_sin) = _tables(engine, places, query), _tables(engine, places, key)
        # Vectors of ones: (c - s, c + s) of the query times that of each key, over the channels.
        products[name] = (key_cos @ cos[-1] + key_sin @ sin[-1])[::-1] * 2 / dim
    pairs = [k * (dim // 2 - 1) // 3 for k in range(4)] if dim > 2 else [0]
    factors = {pair: (2 * pair + 0.4 * dim) / (1.4 * dim) for pair in dict.fromkeys(pairs)}
    caption = f"rope_interleaved, head_dim {dim}, scale base {args.xpos_scale_base:g}"
    figure = new_figure(13, 6, "xPos: a rotation whose fast pairs fade with the offset", caption)
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.4, 1]})
    offsets = np.arange(n)
    left.plot(offsets, products["RoPE"], color=SERIES[5], linewidth=1.2, label="RoPE")
    left.plot(offsets, products["xPos"], color=SERIES[1], label="xPos")
    left.set(
        title="Product of a query and a key of ones, divided by head_dim",
        xlabel="offset m − n, in positions",
        ylabel="product",
        xlim=(0, n - 1),
    )
    for color, dash, (pair, factor) in zip(SERIES, DASHES, factors.items()):
        right.semilogy(
            offsets, factor ** (offsets / args.xpos_scale_base), color=color, linestyle=dash, label=f"pair {pair}"
        )
    right.set(
        title="Factor of some pairs",
        xlabel="offset m − n, in positions",
        ylabel="factor (logarithmic)",
        xlim=(0, n - 1),
    )
    for axes in (left, right):
        axes.grid(True)
        legend_below(axes, 4)
    lines = [caption, f"{'offset':<8} {'RoPE':>10} {'xPos':>10}"]
    lines += [
        f"{o:<8} {products['RoPE'][o]:10.4f} {products['xPos'][o]:10.4f}" for o in (4**k for k in range(7)) if o < n
    ]
    lines += [
        f"pair {pair}: factor {factor:.4f} every {args.xpos_scale_base:g} positions" for pair, factor in factors.items()
    ]
    return Picture(figure, "\n".join(lines))


# ---- frequencies ----

# One published model for each family, or parameters where no model here has it.
FAMILIES: "dict[str, list[str]]" = {
    "linear, factor 4": ["--dim", "128", "--scaling", "linear", "--factor", "4"],
    "dynamic, factor 2, 4096 tokens trained, 16384 read": [
        "--dim",
        "128",
        "--scaling",
        "dynamic",
        "--factor",
        "2",
        "--max-position-embeddings",
        "4096",
        "--seq-len",
        "16384",
    ],
    "ntk, factor 4": ["--dim", "128", "--scaling", "ntk", "--factor", "4"],
    "llama3: llama-3.1-8b": ["--model", "llama-3.1-8b"],
    "yarn: gpt-oss-20b": ["--model", "gpt-oss-20b"],
    "longrope: phi-3-mini-128k, 131072 tokens": ["--model", "phi-3-mini-128k", "--seq-len", "131072"],
    "proportional, a quarter of the pairs": [
        "--dim",
        "128",
        "--scaling",
        "proportional",
        "--partial-rotary-factor",
        "0.25",
    ],
    "resonance: whole wavelengths": ["--dim", "128", "--scaling", "resonance"],
}


@kind("frequencies", "wavelengths of the pairs before and after a scaling: of each family, or of one", forwards=True)
def draw_frequencies(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws what context extension does to the frequencies of each pair."""
    asked = args.frequencies
    families = {describe(_with_dim(asked, 128)): _with_dim(asked, 128)} if asked else FAMILIES
    across = 1 if asked else 4
    down = -(-len(families) // across)
    figure = new_figure(
        8 if asked else 15,
        6 if asked else 8.5,
        "Wavelengths before and after context extension",
        "dashed: before; blue: after; shaded: pairs that do not rotate",
    )
    lines = []
    grid = figure.subplots(down, across, squeeze=False)
    for axes, (name, options) in zip(grid.flat, families.items()):
        columns = frequencies(engine, options)
        pairs, before, after = (columns["pair"], columns["unscaled_wavelength"], columns["wavelength"])
        axes.semilogy(pairs, before, color=SERIES[7], linestyle="--")
        moves = np.isfinite(after)
        axes.semilogy(pairs[moves], after[moves], color=SERIES[0])
        if not moves.all():
            axes.axvspan(pairs[moves].max() + 0.5, pairs.max(), color="#eeeeee")
        axes.set(
            title=name.replace(", 4096", ",\n4096").replace(": phi", ":\nphi"),
            xlabel="pair",
            ylabel="positions per full turn",
            xlim=(0, pairs.max()),
        )
        axes.grid(True)
        slower = np.divide(
            columns["unscaled_radians"],
            columns["radians"],
            out=np.full_like(before, np.inf),
            where=columns["radians"] > 0,
        )
        rotating = slower[np.isfinite(slower)]
        lines.append(
            f"{name}: {len(rotating)} of {len(pairs)} pairs rotate, {rotating.min():.4g} to {rotating.max():.4g} "
            f"times as slowly, attention factor {columns['attention_factor'][0]:.6g}"
        )
    return Picture(figure, "\n".join(lines))


# ---- mrope ----

BEFORE = 5  # tokens of text before the image


def _mrope_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--layout",
        choices=("chunked", "interleaved", "restarted", "dealt", "alternating"),
        default="chunked",
        help="order of the axes among the pairs (default: chunked, Qwen2-VL)",
    )
    integer(parser, "--width", (2, 16), 6, "columns of the image", "W")
    integer(parser, "--height", (2, 16), 4, "rows of the image", "H")


@kind("mrope", "positions with three axes: an image in a text, and the pair that each axis rotates", _mrope_options)
def draw_mrope(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws multimodal RoPE (Wang et al. 2409.12191, section 2.1) on a small image."""
    height, width = args.height, args.width
    layout = ["--mrope-section", "4,6,6", "--mrope-layout", args.layout, "--dim", "32"]
    rows = engine.rows(
        "rope_table", "--grid", str(width), "--tokens", str(height * width), "--first", str(BEFORE), *layout
    )
    places = np.array(rows.places)
    degrees = np.degrees(np.arctan2(np.array(rows.arrays["sin"]), np.array(rows.arrays["cos"]))) % 360
    axis = frequencies(engine, layout)["axis"].astype(int)
    names = ("time", "row", "column")
    caption = (
        f"{args.layout}, sections 4, 6, 6 of 16 pairs; an image of {height} × {width} tokens after {BEFORE} of text, "
        f"whose positions are 0 to {BEFORE - 1} on all axes"
    )
    figure = new_figure(13, 8.5, "M-RoPE: each pair rotates with one axis of the position", caption)
    mosaic = [list(names), [f"angle {name}" for name in names], ["pairs"] * 3]
    panels = figure.subplot_mosaic(mosaic, gridspec_kw={"height_ratios": [3, 3, 1]})
    for k, name in enumerate(names):
        _image(panels[name], places[:, k].reshape(height, width), f"position: {name}", "{:.0f}")
        pair = int(np.flatnonzero(axis == k)[0])
        _image(
            panels[f"angle {name}"],
            degrees[:, pair].reshape(height, width),
            f"angle of pair {pair} ({name}), in degrees",
            "{:.1f}",
        )
    strip = panels["pairs"]
    for pair, k in enumerate(axis):
        strip.bar(pair, 1, width=0.94, color=SERIES[k])
        strip.text(pair, 0.5, names[k][0], ha="center", va="center", color="white")
    strip.set(
        title="axis of each pair: t time, r row, c column",
        xlabel="pair",
        yticks=(),
        xlim=(-0.5, 15.5),
        xticks=range(16),
    )
    lines = [caption] + [
        f"{name}: pairs {' '.join(str(p) for p in np.flatnonzero(axis == k))}" for k, name in enumerate(names)
    ]
    return Picture(figure, "\n".join(lines))


def _image(axes: Axes, cells: Array, title: str, number: str) -> None:
    image = draw_map(axes, cells, "", scale=False)
    write_numbers(axes, image, cells, number, 9)
    axes.set(title=title, xticks=range(cells.shape[1]), yticks=range(cells.shape[0]), aspect="equal")
