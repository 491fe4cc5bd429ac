"""Pictures of biases, and of the rows and columns of learned tables that a query and a key take."""

import argparse
import math
from typing import Dict

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.patches import Rectangle
import numpy as np

from ..command import CommandError
from .picture import SERIES, Array, Picture, angles, draw_lines, draw_map, kind, ordered_colors, problem, table
from .rotations import rotate

BIAS = "bias, added before the softmax"
DISTANCE = "distance, in tokens"
RELATIVE = "relative position: key − query"


def _one_query(kernel: str, before: int, after: int, fields: str) -> Array:
    """Returns biases or buckets of one query, [head][relative position], from `before` tokens before it to `after`."""
    return problem(f"{kernel} queries=1 keys={before + 1 + after} query_offset={before} {fields}")


def _t5_fields(buckets: int, distance: int, bidirectional: bool) -> str:
    """Returns the parameters of T5's buckets as fields of a problem whose output is the bucket."""
    both = str(bidirectional).lower()
    return f"heads=1 num_buckets={buckets} max_distance={distance} bidirectional={both} recipe=index"


def _deberta_fields(buckets: int, distance: int) -> str:
    """Returns the parameters of DeBERTa's buckets, in the same way."""
    return f"heads=1 relative=deberta position_buckets={buckets} max_distance={distance} recipe=index"


@kind("alibi", heads=8, tokens=128)
def draw_alibi(args: argparse.Namespace) -> Picture:  # Press et al. 2108.12409
    """bias by distance for each head, and the slopes

    Left: one line for each head; the steepest head sees the nearest tokens alone. Right: the slopes,
    which halve from head to head.
    """
    heads, n = args.heads, args.tokens
    bias = _one_query("alibi", n - 1, 0, f"heads={heads} causal=true alibi_bias_max=8")[:, ::-1]
    slopes = -bias[:, 1]
    colors = ordered_colors(heads)
    parameters = f"alibi, {heads} heads, alibi_bias_max 8"
    title = "ALiBi: the bias that each head adds to a score"
    picture = Picture((12, 5.8), title, parameters, [["biases", "slopes"]], width_ratios=[1.5, 1])
    left = picture.panel("biases", "Bias by distance", DISTANCE, BIAS)
    left.set_prop_cycle(color=colors)
    left.plot(bias.T, linewidth=1.8 if heads <= 16 else 1)
    left.set_xlim(0, n - 1)
    scale = ScalarMappable(Normalize(0.5, heads + 0.5), ListedColormap(colors))
    picture.figure.colorbar(scale, ax=left, label="head", pad=0.02, ticks=range(1, heads + 1, -(-heads // 8)))
    right = picture.panel("slopes", "Slope of each head", "head", "slope (logarithmic)")
    right.scatter(np.arange(1, heads + 1), slopes, color=colors, s=40 if heads <= 16 else 12, zorder=3)
    right.set_yscale("log", base=2)
    ends = f"head 1 {bias[0, -1]:.6g}, head {heads} {bias[-1, -1]:.6g}"
    picture.facts += ["slopes " + " ".join(f"{slope:.6g}" for slope in slopes), f"bias at distance {n - 1}: {ends}"]
    return picture


def _draw_steps(axes: Axes, distance: int, curves: Dict[str, Array]) -> None:
    """Draws the bucket or column of each relative position as steps, and marks --max-distance."""
    reach = (len(next(iter(curves.values()))) - 1) // 2
    draw_lines(axes, np.arange(-reach, reach + 1), curves, drawstyle="steps-mid")
    for side in (-distance, distance):
        axes.axvline(side, color="#888888", linestyle=":", linewidth=1.2)
    top = max(float(curve.max()) for curve in curves.values())
    axes.set_ylim(-0.03 * top, 1.14 * top)
    axes.annotate("max_distance", (-distance, 1.08 * top), (4, 0), textcoords="offset points", color="#555555")


@kind("t5")
def draw_t5(_: argparse.Namespace) -> Picture:  # Raffel et al. 1910.10683
    """the bucket of each relative position, in both directions

    A step is a bucket: all relative positions on it share one number per head. Steps grow with the
    distance, and end at the dotted lines.
    """
    count, most = 32, 128
    reach = most + most // 4
    parameters = f"t5_bias, num_buckets {count}, max_distance {most}"
    title = "T5: the bucket of each relative position; a bucket has one bias per head"
    picture = Picture((12, 6.2), title, parameters, [["buckets"]])
    curves = {}
    for name, who, both in (("bidirectional", "encoder", True), ("causal", "decoder", False)):
        buckets = curves[f"{name} ({who})"] = _one_query("t5_bias", reach, reach, _t5_fields(count, most, both))[0]
        starts = [0, *(np.flatnonzero(np.diff(buckets[reach::-1])) + 1)]
        before = " ".join(map(str, starts))
        picture.facts.append(f"{name}: buckets of keys before the query begin at distance {before}")
    _draw_steps(picture.panel("buckets", "", RELATIVE, "bucket"), most, curves)
    return picture


@kind("bias", tokens=512)
def draw_bias(args: argparse.Namespace) -> Picture:  # KERPLE 2205.09921, Sandwich 2212.10356
    """ALiBi, KERPLE, Sandwich and T5 by distance, in one picture

    The same five biases twice, with distances on a linear and on a logarithmic axis. A curve that is
    straight on the left is linear, on the right logarithmic.
    """
    n = args.tokens
    distance = np.arange(n)
    alibi = _one_query("alibi", n - 1, 0, "heads=1 causal=true alibi_bias_max=4")  # a slope of 2^-4
    kerple = -2 * np.log1p(distance)
    turns = np.outer(distance, 10000.0 ** (-np.arange(0, 128, 2) / 128))
    bucket = _one_query("t5_bias", n - 1, 0, _t5_fields(32, 128, False))[0, ::-1].astype(int)
    nearest = np.flatnonzero(np.diff(bucket, prepend=-1))  # the least distance of each bucket
    curves = {
        "ALiBi, slope 1/16": alibi[0, ::-1],
        "KERPLE, −2 ln(1 + d)": kerple,
        "KERPLE, −d^0.5": -np.sqrt(distance),
        "Sandwich, dim 128, scale 1/4": (np.cos(turns).sum(axis=1) - 64) / 4,
        "T5, 32 buckets, like KERPLE's ln": kerple[nearest][bucket],
    }
    parameters = "one head each, magnitudes chosen to share an axis"
    picture = Picture((13, 6.2), "Biases that depend on the distance alone", parameters, [["linear", "logarithmic"]])
    left = picture.panel("linear", "By distance: ALiBi is a straight line", DISTANCE, BIAS)
    right = picture.panel("logarithmic", "On a logarithmic axis: KERPLE's logarithm is one", DISTANCE, BIAS)
    for axes in (left, right):
        draw_lines(axes, distance, curves)
        axes.lines[-1].set_drawstyle("steps-post")
    right.get_legend().remove()
    right.set_xscale("log", base=2)
    right.set_xlim(1, max(n - 1, 2))
    shown = [8**k for k in range(6) if 8**k < n]
    picture.facts.append(f"{'bias at distance':<34}" + "".join(f" {d:8}" for d in shown))
    picture.facts += [f"{name:<34}" + "".join(f" {bias[d]:8.3f}" for d in shown) for name, bias in curves.items()]
    return picture


@kind("deberta")
def draw_deberta(_: argparse.Namespace) -> Picture:  # He et al. 2006.03654
    """the column of each relative position, in buckets that grow with the distance

    Left: near keys have a column each, a straight line; far ones share columns, and the curve flattens.
    Right: the flat part is a straight line on a logarithmic axis.
    """
    buckets, most = 256, 512
    reach = most + most // 4
    columns = _one_query("relative_bias", reach, reach, _deberta_fields(buckets, most))[0]
    before, after = columns[reach::-1], columns[reach:]

    parameters = f"relative_bias, position_buckets {buckets}, max_distance {most}"
    title = "DeBERTa: which column of its terms a query and a key take, by distance"
    picture = Picture((13, 6.2), title, parameters, [["relative", "logarithmic"]])
    left = picture.panel("relative", "Column by relative position", RELATIVE, "column")
    _draw_steps(left, most, {"column": columns})
    title = "Keys before the query: the distance on a logarithmic axis"
    right = picture.panel("logarithmic", title, DISTANCE, "column − middle")
    distance = np.arange(1, reach + 1)
    curves = {"bucket": before[1:] - buckets, "a column for each distance": distance}
    draw_lines(right, distance, curves, drawstyle="steps-post")
    right.set_xscale("log", base=2)
    right.set_ylim(0, 1.15 * buckets)

    unshared_up_to = np.flatnonzero(np.append(np.diff(before), 0) != 1)[0]
    last = np.flatnonzero(before == before[-1])[0]
    pairs = " ".join(f"{before[d]:g}/{after[d]:g}" for d in (128, 256, 512))
    picture.facts += [
        f"column of distance 0: {before[0]:g}",
        f"a column for each distance up to {unshared_up_to}, the last one ({before[-1]:g}) from {last} on",
        f"columns of distances 128 256 512 and their opposites: {pairs}",
    ]
    return picture


@kind("swin")
def draw_swin(_: argparse.Namespace) -> Picture:  # Liu et al. 2103.14030
    """the row of the bias table for each query and key of a window

    Left: the row of the bias table for each pair of tokens; blocks repeat, as only the displacement
    counts. Right: the same rows, laid out on the window, for two queries (in the frame).
    """
    height = width = 7
    n, rows = height * width, (2 * height - 1) * (2 * width - 1)
    limits = (0, rows - 1)
    index = problem(f"window_bias heads=1 window_height={height} window_width={width} recipe=index")
    parameters = f"window_bias, {height} x {width} tokens, a table of {rows} rows"
    title = "Swin: the row of the bias table for each query and key of a window"
    picture = Picture((11, 6.6), title, parameters, [["all", "corner"], ["all", "middle"]], width_ratios=[2, 1])
    axes = picture.panel("all", "All queries and keys, row by row of the window", "key", "query")
    draw_map(axes, index, limits=limits, bar="row of the table")
    axes.set(xticks=range(0, n, width), yticks=range(0, n, width))
    middle = height // 2 * width + width // 2
    for name, query, where in (("corner", 0, "at the top left"), ("middle", middle, "in the middle")):
        axes = picture.panel(name, f"Seen from the query {where}", "column of the window", "row of the window")
        draw_map(axes, index[query].reshape(height, width), limits=limits, numbers="{:.0f}")
        row, column = divmod(query, width)
        axes.add_patch(Rectangle((column - 0.45, row - 0.45), 0.9, 0.9, fill=False, color=SERIES[1], linewidth=2))
    picture.facts += [" ".join(f"{value:4.0f}" for value in row) for row in index]
    return picture


@kind("buckets")
def draw_buckets(_: argparse.Namespace) -> Picture:
    """buckets by query and key: T5 and DeBERTa shift by one column a row

    The numbers of the pictures of T5 and DeBERTa, for small tables, as maps: a row is a query. Each row is
    the one above it, shifted by one key. Equal colours share one learned number.
    """
    n, half = 24, 8
    maps = {
        "T5, bidirectional": ("t5_bias", _t5_fields(8, half + 4, True), 8, "bucket"),
        "T5, causal": ("t5_bias", _t5_fields(8, half + 4, False), 8, "bucket"),
        "DeBERTa": ("relative_bias", _deberta_fields(half, 2 * half), 2 * half, "column"),
    }
    parameters = f"{n} queries and keys; small tables, so that the buckets are seen"
    title = "Relative positions shift: each row of a map is the one above, a key further right"
    picture = Picture((14, 4.6), title, parameters, [list(maps)])
    for name, (kernel, fields, count, what) in maps.items():
        # DeBERTa's terms have `count` columns for each query, T5's table has one row.
        cells = problem(f"{kernel} queries={n} keys={n} {fields}") % count
        axes = picture.panel(name, f"{name}: {int(cells.max()) + 1} numbers", "key", "query")
        draw_map(axes, cells, bar=what)
        picture.facts.append(f"{name}: the first query takes {' '.join(f'{value:g}' for value in cells[0][:12])} ...")
    return picture


@kind("attention", sentence="the cat sat on the mat", seed=1)
def draw_attention(args: argparse.Namespace) -> Picture:
    """attention over one sentence without and with each encoding

    A row is a query, its weights add up to 1; words and projections are drawn at random, as before training. Without an
    encoding the two columns of "the" are equal, and so are its two rows. Every encoding tells them apart.
    """
    words = args.sentence.split()
    n, dim = len(words), 64
    if not 2 <= n <= 12:
        raise CommandError(f"--sentence takes 2 to 12 words (got '{args.sentence}').")
    rng = np.random.default_rng(args.seed)
    vocabulary = list(dict.fromkeys(words))
    vectors = rng.normal(size=(len(vocabulary), dim))
    to_query, to_key = rng.normal(scale=1 / math.sqrt(dim), size=(2, dim, dim))
    learned, per_bucket = rng.normal(scale=0.5, size=(n, dim)), rng.normal(size=8)
    x = vectors[[vocabulary.index(word) for word in words]]
    sinusoidal = table(f"sinusoidal tokens={n} dim={dim}")["sinusoidal"]
    cos, sin = angles(f"rope_table tokens={n} rotary_dim={dim}")
    alibi = problem(f"alibi heads=1 queries={n} keys={n} alibi_bias_max=1")
    bucket = problem(f"t5_bias queries={n} keys={n} {_t5_fields(8, 16, True)}").astype(int)

    def scores(embedded: Array, rotated: bool = False) -> Array:
        query, key = embedded @ to_query, embedded @ to_key
        if rotated:
            query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        return np.asarray(query @ key.T / math.sqrt(dim))

    scored = {
        "Without": scores(x), "Sinusoidal, added": scores(x + sinusoidal), "Learned, added": scores(x + learned),
        "RoPE": scores(x, rotated=True), "ALiBi, slope 1/2": scores(x) + alibi,
        "T5, one number per bucket": scores(x) + per_bucket[bucket],
    }  # fmt: skip
    exponentials = {name: np.exp(cells - cells.max(axis=1, keepdims=True)) for name, cells in scored.items()}
    weights = {name: cells / cells.sum(axis=1, keepdims=True) for name, cells in exponentials.items()}
    drawn = f"words, projections and learned numbers drawn at random ({dim} dimensions, seed {args.seed})"
    parameters = f"one head; {drawn}; equal words have equal vectors"
    names = list(weights)
    picture = Picture((13, 8.8), f"Attention over “{args.sentence}”", parameters, [names[:3], names[3:]])
    limits = (0, max(float(cells.max()) for cells in weights.values()))
    for name in names:
        axes = picture.panel(name, name, "key", "query")
        image = draw_map(axes, weights[name], limits=limits, numbers="{:.2f}")
        axes.set_yticklabels(words)
        axes.set_xticklabels(words, rotation=45)
    picture.figure.colorbar(image, ax=list(picture.panels.values()), label="weight: a row adds up to 1", pad=0.02)

    twice = next((word for word in words if words.count(word) > 1), None)
    if twice:
        first, second = words.index(twice), n - 1 - words[::-1].index(twice)
        picture.facts.append(f"weights of “{twice}” at {first} and at {second}, as “{words[-1]}” sees them")
        for name, cells in weights.items():
            picture.facts.append(f"  {name:<20} {cells[-1, first]:.4f} {cells[-1, second]:.4f}")
    return picture
