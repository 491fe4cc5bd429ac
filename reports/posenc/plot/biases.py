"""Pictures of biases, and of the rows and columns of learned tables that a query and a key take."""

import argparse
import math
from typing import List

from matplotlib.axes import Axes
import matplotlib
import numpy as np

from ..command import CommandError, within
from ..engine import Engine
from .kinds import integer, kind, number
from .rotations import rotate
from .style import DASHES, SERIES, Array, Picture, draw_map, legend_below, new_figure, write_numbers


def one_query(engine: Engine, kernel: str, distances: int, fields: str, heads: int = 1) -> Array:
    """Returns the bias of one query by head and distance: keys 0, 1, ... `distances` - 1 tokens before it."""
    line = f"{kernel} heads={heads} queries=1 keys={distances} query_offset={distances - 1} {fields}"
    return np.asarray(np.array(engine.problem(line))[:, ::-1])


def _spread(engine: Engine, kernel: str, reach: int, fields: str) -> Array:
    """Returns what a query in the middle takes of its keys, from `reach` before it to `reach` after it."""
    line = f"{kernel} heads=1 queries=1 keys={2 * reach + 1} query_offset={reach} recipe=index {fields}"
    return np.array(engine.problem(line)[0])


def _t5(buckets: int, distance: int, bidirectional: bool) -> str:
    return f"num_buckets={buckets} max_distance={distance} bidirectional={str(bidirectional).lower()}"


# ---- alibi ----


def _alibi_options(parser: argparse.ArgumentParser) -> None:
    integer(parser, "--heads", (1, 256), 8, "attention heads", "H")
    number(parser, "--alibi-bias-max", 8.0, "the last slope of a power of two of heads is 2^-B")
    integer(parser, "--tokens", (2, 65536), 128, "distances")


@kind("alibi", "bias by distance for each head, and the slopes", _alibi_options)
def draw_alibi(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws the biases of Press et al. 2108.12409."""
    heads, n = args.heads, args.tokens
    bias = one_query(engine, "alibi", n, f"causal=true alibi_bias_max={args.alibi_bias_max!r}", heads)
    slopes = -bias[:, 1]
    caption = f"alibi, {heads} heads, alibi_bias_max {args.alibi_bias_max:g}"
    figure = new_figure(12, 5.8, "ALiBi: the bias that each head adds to a score", caption)
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.5, 1]})
    colors = matplotlib.colormaps["viridis"](np.linspace(0, 0.85, heads))
    for head in range(heads):
        left.plot(np.arange(n), bias[head], color=colors[head], linewidth=1.8 if heads <= 16 else 1)
    scale = matplotlib.cm.ScalarMappable(
        matplotlib.colors.Normalize(0.5, heads + 0.5), matplotlib.colors.ListedColormap(colors)
    )
    bar = figure.colorbar(scale, ax=left, label="head", pad=0.02)
    bar.set_ticks(range(1, heads + 1, -(-heads // 8)))
    left.set(
        title="Bias by distance", xlabel="distance, in tokens", ylabel="bias, added before the softmax", xlim=(0, n - 1)
    )
    right.scatter(np.arange(1, heads + 1), slopes, color=colors, s=40 if heads <= 16 else 12, zorder=3)
    right.set_yscale("log", base=2)
    right.set(title="Slope of each head", xlabel="head", ylabel="slope (logarithmic)")
    for axes in (left, right):
        axes.grid(True)
    facts = [
        caption,
        "slopes " + " ".join(f"{slope:.6g}" for slope in slopes),
        f"bias at distance {n - 1}: head 1 {bias[0, -1]:.6g}, head {heads} {bias[-1, -1]:.6g}",
    ]
    return Picture(figure, "\n".join(facts))


# ---- t5 ----


def _t5_options(parser: argparse.ArgumentParser) -> None:
    integer(parser, "--num-buckets", (4, 4096), 32, "buckets in all")
    integer(parser, "--max-distance", (2, 65536), 128, "the last bucket begins below this distance")


def _starts(buckets: Array, reach: int) -> List[int]:
    before = buckets[reach::-1]
    return [0] + [d for d in range(1, reach + 1) if before[d] != before[d - 1]]


@kind("t5", "the bucket of each relative position, in both directions", _t5_options)
def draw_t5(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws the buckets of Raffel et al. 1910.10683."""
    reach = args.max_distance + args.max_distance // 4
    names = {"bidirectional": True, "causal": False}
    by_name = {
        name: _spread(engine, "t5_bias", reach, _t5(args.num_buckets, args.max_distance, both))
        for name, both in names.items()
    }
    caption = f"t5_bias, num_buckets {args.num_buckets}, max_distance {args.max_distance}"
    figure = new_figure(12, 6.2, "T5: the bucket of each relative position; a bucket has one bias per head", caption)
    axes = figure.subplots()
    relative = np.arange(-reach, reach + 1)
    for color, dash, (name, who) in zip(SERIES, DASHES, {"bidirectional": "encoder", "causal": "decoder"}.items()):
        axes.step(relative, by_name[name], where="mid", color=color, linestyle=dash, label=f"{name} ({who})")
    _mark_reach(axes, args.max_distance)
    axes.set(
        xlabel="relative position: key − query",
        ylabel="bucket",
        xlim=(-reach, reach),
        ylim=(-1, 1.12 * args.num_buckets),
    )
    legend_below(axes, 2)
    facts = [caption]
    for name, buckets in by_name.items():
        starts = " ".join(str(d) for d in _starts(buckets, reach))
        facts.append(f"{name}: buckets of keys before the query begin at distance {starts}")
    return Picture(figure, "\n".join(facts))


def _mark_reach(axes: Axes, distance: int) -> None:
    axes.grid(True)
    for side in (-distance, distance):
        axes.axvline(side, color="#888888", linestyle=":", linewidth=1.2)
    axes.annotate(
        "max_distance",
        (-distance, 1),
        xycoords=("data", "axes fraction"),
        xytext=(4, -12),
        textcoords="offset points",
        color="#555555",
    )


# ---- bias ----

SANDWICH = (128, 0.25)  # dimensions, scale


def _bias_options(parser: argparse.ArgumentParser) -> None:
    integer(parser, "--tokens", (2, 65536), 512, "distances")


@kind("bias", "ALiBi, KERPLE, Sandwich and T5 by distance, in one picture", _bias_options)
def draw_bias(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws biases that depend on the distance alone: KERPLE (2205.09921), Sandwich (2212.10356) and others."""
    n = args.tokens
    distance = np.arange(n)
    kerple = -2 * np.log1p(distance)
    dim, scale = SANDWICH
    turns = 10000.0 ** (-np.arange(0, dim, 2) / dim)
    bucket = one_query(engine, "t5_bias", n, _t5(32, 128, False) + " recipe=index")[0].astype(int)
    first = np.flatnonzero(np.diff(bucket, prepend=-1))  # the least distance of each bucket
    curves = {
        "ALiBi, slope 1/16": one_query(engine, "alibi", n, "causal=true alibi_bias_max=4")[0],  # 2^-4
        "KERPLE, −2 ln(1 + d)": kerple,
        "KERPLE, −d^0.5": -np.sqrt(distance),
        "Sandwich, dim 128, scale 1/4": scale * (np.cos(np.outer(distance, turns)).sum(axis=1) - dim / 2),
        "T5, 32 buckets, like KERPLE's ln": kerple[first][bucket],
    }
    caption = "one head each, magnitudes chosen to share an axis"
    figure = new_figure(13, 6.2, "Biases that depend on the distance alone", caption)
    left, right = figure.subplots(1, 2)
    for axes in (left, right):
        for color, dash, (name, bias) in zip(SERIES, DASHES, curves.items()):
            style = "steps-post" if name.startswith("T5") else "default"
            axes.plot(distance, bias, color=color, linestyle=dash, drawstyle=style, label=name)
        axes.grid(True)
        axes.set(xlabel="distance, in tokens", ylabel="bias, added before the softmax")
    left.set(title="By distance: ALiBi is a straight line", xlim=(0, n - 1))
    right.set_xscale("log", base=2)
    right.set(title="On a logarithmic axis: KERPLE's logarithm is one", xlim=(1, max(n - 1, 2)))
    legend_below(left, 2)
    shown = [d for d in (8**k for k in range(6)) if d < n]
    facts = [caption, f"{'bias at distance':<34}" + "".join(f" {d:8}" for d in shown)]
    facts += [f"{name:<34}" + "".join(f" {bias[d]:8.3f}" for d in shown) for name, bias in curves.items()]
    return Picture(figure, "\n".join(facts))


# ---- deberta ----


def _deberta_options(parser: argparse.ArgumentParser) -> None:
    integer(parser, "--position-buckets", (0, 4096), 256, "half of the columns; 0: one for each distance")
    integer(parser, "--max-distance", (2, 65536), 512, "the last bucket ends below this distance")


@kind("deberta", "the column of each relative position, in buckets that grow with the distance", _deberta_options)
def draw_deberta(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws the columns of He et al. 2006.03654, as the published code chooses them."""
    buckets, most = args.position_buckets, args.max_distance
    if buckets and (buckets % 2 or buckets < 4):
        raise CommandError(f"--position-buckets takes 0 or an even number from 4 on (got '{buckets}').")
    if buckets and most <= buckets:
        raise CommandError(f"--max-distance has to be above --position-buckets, {buckets} (got '{most}').")
    reach, columns = most + most // 4, 2 * (buckets or most)
    fields = f"relative=deberta position_buckets={buckets} max_distance={most}"
    by_relative = _spread(engine, "relative_bias", reach, fields)
    middle = columns // 2
    caption = f"relative_bias, position_buckets {buckets}, max_distance {most}"
    figure = new_figure(13, 6.2, "DeBERTa: which column of its terms a query and a key take, by distance", caption)
    left, right = figure.subplots(1, 2)
    relative = np.arange(-reach, reach + 1)
    left.step(relative, by_relative, where="mid", color=SERIES[0])
    _mark_reach(left, most)
    left.set(
        title="Column by relative position",
        xlabel="relative position: key − query",
        ylabel="column",
        xlim=(-reach, reach),
        ylim=(-0.03 * columns, 1.1 * columns),
    )
    before = by_relative[reach::-1]
    right.plot(
        np.arange(1, reach + 1),
        np.arange(1, reach + 1),
        color="#999999",
        linestyle="--",
        label="a column for each distance",
    )
    right.step(np.arange(1, reach + 1), before[1:] - middle, where="post", color=SERIES[0], label="bucket")
    right.set_xscale("log", base=2)
    right.set(
        title="Keys before the query: the distance on a logarithmic axis",
        xlabel="distance, in tokens",
        ylabel="column − middle",
        xlim=(1, reach),
        ylim=(0, 1.15 * middle),
    )
    right.grid(True)
    legend_below(right, 2)
    return Picture(figure, _deberta_facts(caption, by_relative, reach))


def _deberta_facts(caption: str, by_relative: Array, reach: int) -> str:
    before = by_relative[reach::-1]
    shared = next((d for d in range(1, reach + 1) if before[d] != before[d - 1] + 1), reach + 1)
    last = int(np.flatnonzero(before == before[-1])[0])
    pairs = " ".join(f"{before[d]:g}/{by_relative[reach + d]:g}" for d in (128, 256, 512) if d <= reach)
    return "\n".join(
        [
            caption,
            f"column of distance 0: {before[0]:g}",
            f"a column for each distance up to {shared - 1}, the last one ({before[-1]:g}) from {last} on",
            f"columns of distances 128 256 512 and their opposites: {pairs}",
        ]
    )


# ---- swin ----


def _swin_options(parser: argparse.ArgumentParser) -> None:
    integer(parser, "--window-height", (1, 16), 7, "rows of the window")
    parser.add_argument(
        "--window-width", metavar="N", type=within(1, 16), help="columns of the window (default: as many)"
    )


@kind("swin", "the row of the bias table for each query and key of a window", _swin_options)
def draw_swin(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws the index of Liu et al. 2103.14030."""
    height, width = args.window_height, args.window_width or args.window_height
    n, rows = height * width, (2 * height - 1) * (2 * width - 1)
    index = np.array(engine.problem(f"window_bias heads=1 window_height={height} window_width={width} recipe=index"))
    caption = f"window_bias, {height} x {width} tokens, a table of {rows} rows"
    figure = new_figure(13, 7, "Swin: the row of the bias table for each query and key of a window", caption)
    panels = figure.subplot_mosaic([["all", "corner"], ["all", "middle"]], gridspec_kw={"width_ratios": [2, 1]})
    draw_map(panels["all"], index, "row of the table").set_clim(0, rows - 1)
    panels["all"].set(
        title="All queries and keys, row by row of the window",
        xlabel="key",
        ylabel="query",
        aspect="equal",
        xticks=range(0, n, width),
        yticks=range(0, n, width),
    )
    middle = height // 2 * width + width // 2
    for name, query, where in (("corner", 0, "at the top left"), ("middle", middle, "in the middle")):
        seen = index[query].reshape(height, width)
        axes = panels[name]
        image = draw_map(axes, seen, "", scale=False)
        image.set_clim(0, rows - 1)
        write_numbers(axes, image, seen, "{:.0f}", 9 if width <= 10 else 6)
        axes.plot(
            query % width,
            query // width,
            marker="s",
            markersize=22 if width <= 10 else 14,
            fillstyle="none",
            color=SERIES[1],
            markeredgewidth=2,
        )
        axes.set(title=f"Seen from the query {where}", xticks=range(width), yticks=range(height), aspect="equal")
    facts = [caption] + [" ".join(f"{value:4.0f}" for value in row) for row in index]
    return Picture(figure, "\n".join(facts))


# ---- buckets ----


def _bucket_options(parser: argparse.ArgumentParser) -> None:
    integer(parser, "--tokens", (4, 256), 24, "queries and keys")


@kind("buckets", "buckets by query and key: T5 and DeBERTa shift by one column a row", _bucket_options)
def draw_buckets(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws buckets as maps: each row is the one above it, shifted by one key."""
    n = args.tokens
    half = max(4, n // 6 * 2)
    maps = {
        "T5, bidirectional": ("t5_bias", _t5(8, half + 4, True)),
        "T5, causal": ("t5_bias", _t5(8, half + 4, False)),
        "DeBERTa": ("relative_bias", f"relative=deberta position_buckets={half} max_distance={2 * half}"),
    }
    caption = f"{n} queries and keys; small tables, so that the buckets are seen"
    figure = new_figure(
        14, 5.2, "Relative positions shift: each row of a map is the one above, a key further right", caption
    )
    facts = [caption]
    for axes, (name, (kernel, fields)) in zip(figure.subplots(1, 3), maps.items()):
        # One query further each line: DeBERTa's learned terms have a row for each query, T5's table has none.
        cells = np.array(
            [
                engine.problem(f"{kernel} heads=1 queries=1 keys={n} query_offset={q} recipe=index {fields}")[0]
                for q in range(n)
            ]
        )
        draw_map(axes, cells, "column" if name == "DeBERTa" else "bucket")
        axes.set(title=f"{name}: {int(cells.max()) + 1} numbers", xlabel="key", ylabel="query", aspect="equal")
        facts.append(f"{name}: the first query takes {' '.join(f'{value:g}' for value in cells[0][:12])} ...")
    return Picture(figure, "\n".join(facts))


def softmax(scores: Array) -> Array:
    """Returns the weights of each row."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


# ---- attention ----

SENTENCE = "the cat sat on the mat"


def _attention_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sentence", metavar="WORDS", default=SENTENCE, help=f"words (default: {SENTENCE})")
    parser.add_argument(
        "--dim",
        metavar="D",
        type=int,
        choices=(16, 32, 64, 128),
        default=64,
        help="dimensions: 16, 32, 64 or 128 (default: 64)",
    )
    integer(parser, "--seed", (0, 2**63 - 1), 1, "seed of the words' vectors")


@kind("attention", "attention over one sentence without and with each encoding", _attention_options)
def draw_attention(args: argparse.Namespace, engine: Engine) -> Picture:
    """Draws the weights of one head. Words and projections are drawn at random, as before training."""
    words = args.sentence.split()
    n, dim = len(words), args.dim
    if not 2 <= n <= 12:
        raise CommandError(f"--sentence takes 2 to 12 words (got '{args.sentence}').")
    draw = np.random.default_rng(args.seed)
    vocabulary = list(dict.fromkeys(words))
    vectors = draw.normal(size=(len(vocabulary), dim))
    to_query, to_key = draw.normal(scale=1 / math.sqrt(dim), size=(2, dim, dim))
    learned, buckets = draw.normal(scale=0.5, size=(n, dim)), draw.normal(size=8)
    x = np.array([vectors[vocabulary.index(word)] for word in words])
    sinusoidal = np.array(engine.rows("sinusoidal", "--tokens", str(n), "--dim", str(dim)).arrays["sinusoidal"])
    tables = engine.rows("rope_table", "--tokens", str(n), "--dim", str(dim)).arrays
    cos, sin = np.array(tables["cos"]), np.array(tables["sin"])

    def scores(embedded: Array, rotated: bool = False) -> Array:
        query, key = embedded @ to_query, embedded @ to_key
        if rotated:
            query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        return np.asarray(query @ key.T / math.sqrt(dim))

    alibi = np.array(engine.problem(f"alibi heads=1 queries={n} keys={n} alibi_bias_max=1"))
    bucket = np.array(engine.problem(f"t5_bias heads=1 queries={n} keys={n} recipe=index {_t5(8, 16, True)}"))
    by_name = {
        "Without": scores(x),
        "Sinusoidal, added": scores(x + sinusoidal),
        "Learned, added": scores(x + learned),
        "RoPE": scores(x, rotated=True),
        "ALiBi, slope 1/2": scores(x) + alibi,
        "T5, one number per bucket": scores(x) + buckets[bucket.astype(int)],
    }
    weights = {name: softmax(score) for name, score in by_name.items()}
    caption = (
        f"one head; words, projections and learned numbers drawn at random ({dim} dimensions, seed {args.seed}); "
        "equal words have equal vectors"
    )
    figure = new_figure(13, 8.8, f"Attention over “{args.sentence}”", caption)
    grid = figure.subplots(2, 3)
    most = max(float(cells.max()) for cells in weights.values())
    for axes, (name, cells) in zip(grid.flat, weights.items()):
        image = draw_map(axes, cells, "", scale=False)
        image.set_clim(0, most)
        write_numbers(axes, image, cells, "{:.2f}", 9 if n < 9 else 6)
        axes.set(title=name, xticks=range(n), yticks=range(n), aspect="equal", xlabel="key", ylabel="query")
        axes.set_xticklabels(words, rotation=45)
        axes.set_yticklabels(words)
    figure.colorbar(image, ax=grid, label="weight: a row adds up to 1", pad=0.02)
    return Picture(figure, _attention_facts(caption, words, weights))


def _attention_facts(caption: str, words: List[str], weights: "dict[str, Array]") -> str:
    lines = [caption]
    twice = next((word for word in words if words.count(word) > 1), None)
    if twice:
        first, second = words.index(twice), len(words) - 1 - words[::-1].index(twice)
        lines.append(f"weights of “{twice}” at {first} and at {second}, as “{words[-1]}” sees them")
        lines += [f"  {name:<20} {cells[-1, first]:.4f} {cells[-1, second]:.4f}" for name, cells in weights.items()]
    return "\n".join(lines)
