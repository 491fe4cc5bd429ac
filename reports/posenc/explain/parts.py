"""Describes a part of a model: its encoding, and the facts that follow from its numbers.

Frequencies have wavelengths, the effect of a scaling, and the positions from which f32 angles are inexact. A fact is a
topic and a sentence: ("Slopes", "of 16 heads, from 0.707107, the steepest, to 0.00390625, the gentlest").
"""

import math
import struct
from itertools import groupby
from typing import Any, Iterator, List, NamedTuple, Tuple

from ..engine import Engine
from ..models.calls import GGML_F32, HF_F32, frequencies_of
from ..models.part import Part
from ..units import count

Facts = Iterator[Tuple[str, str]]  # pairs of a topic and a sentence
MUCH = 10  # a bias of -10 leaves almost nothing of a weight
TITLES = {
    "sinusoidal": "Sinusoids added to embeddings", "learned": "A learned table",
    "rope_half": "Rotation of queries and keys", "rope_interleaved": "Rotation of queries and keys",
    "alibi": "ALiBi: a bias that grows with the distance", "t5": "Biases by buckets of distances",
    "deberta": "Terms by relative position", "transformer_xl": "Terms by relative position",
    "shaw": "Terms by relative position", "decomposed": "Terms by rows and by columns",
    "window": "Biases in windows of a picture",
}  # fmt: skip
NEAR = 1e-9  # ratios of frequencies that count as equal
LAYOUTS = {
    "qwen2_vl": "one section after the other", "qwen3_vl": "by turns",
    "qwen2_vl_vision": "each from the shortest wavelength on", "pixtral": "among which the wavelengths are dealt out",
    "kimi": "by turns, each from the shortest wavelength on",
}  # fmt: skip


def title(part: Part) -> str:
    """Returns the title of a part: "full: Rotation of queries and keys, 5 layers"."""
    layers = f", {part.layers} layer{'s' if part.layers > 1 else ''}" if part.layers else ""
    return f"{part.name}{': ' if part.name else ''}{TITLES[part.encoding]}{layers}"


def _learned_facts(part: Part) -> Facts:
    first, last = part.first, part.length - 1
    yield "Table", f"{part.rows} learned rows of {part.width} numbers, added to the embeddings"
    yield "Rows", f"position 0 is row {first}, the last one, {last}, row {first + last}; past it there is none"


# ---- added to scores ----


def _alibi_slopes(part: Part) -> Iterator[float]:
    """Yields the slopes of ALiBi. If the heads are no power of two, some are slopes of twice the next lower power."""
    power = 2 ** int(math.log2(part.heads))
    for head in range(part.heads):
        step, steps = (head + 1, power) if head < power else (2 * (head - power) + 1, 2 * power)
        yield struct.unpack("f", struct.pack("f", 2 ** (-part.alibi_bias_max * step / steps)))[0]  # as f32


def _alibi_facts(part: Part) -> Facts:
    slopes = list(_alibi_slopes(part))
    steep, gentle = max(slopes), min(slopes)
    yield "Bias", "minus the distance of query and key, times the slope of the head, is added to the scores"
    yield "Slopes", f"of {part.heads} heads, from {steep:.6g}, the steepest, to {gentle:.6g}, the gentlest"
    yield "Reach", (
        f"the bias is below -{MUCH}, a weight of e^-{MUCH} = 1/{math.exp(MUCH):.0f} of what it were, from distance "
        f"{math.floor(MUCH / steep) + 1} on in the steepest head, from {math.floor(MUCH / gentle) + 1} on in the "
        "gentlest"
    )


def _find_last_bucket(buckets: int, max_distance: int) -> int:
    """Returns the distance from which on all keys of one direction share the last of T5's buckets."""
    single = buckets // 2  # buckets of one distance; the others grow with the logarithm
    shared = buckets - single
    for distance in range(single, max_distance):
        if int(math.log(distance / single) / math.log(max_distance / single) * shared) >= shared - 1:
            return distance
    return max_distance


def _t5_facts(part: Part) -> Facts:
    yield "Bias", "a learned number for each head and bucket of distances is added to the scores"
    half = part.num_buckets // 2
    directions = [("Encoder", half, "each way"), ("Decoder", part.num_buckets, "for keys behind")]
    for about, buckets, way in directions[: 1 + part.decodes]:
        last = _find_last_bucket(buckets, part.max_distance)
        single = f"{buckets} buckets {way}: distances 0 to {buckets // 2 - 1} have one each"
        yield about, f"{single}, from {last} on all keys share the last"


def _find_last_column(part: Part) -> int:
    """Returns the distance from which on all keys share DeBERTa's last column."""
    columns, most = part.num_buckets, part.max_distance
    if not columns:
        return most - 1
    single = columns // 2  # distances with a column each
    for distance in range(single + 1, most):
        part_of_rest = math.log(distance / single) / math.log((most - 1) / single)
        if single + math.ceil(part_of_rest * (single - 1)) >= columns - 1:
            return distance
    return most


def _deberta_facts(part: Part) -> Facts:
    terms = ["queries by positions (c2p)"][: not part.without_c2p] + ["keys by positions (p2c)"][: part.with_p2c]
    yield "Terms", f"by the distance of query and key: {', '.join(terms)}"
    last = _find_last_column(part)
    if part.num_buckets:
        single = f"distances up to {part.num_buckets // 2} have one each, beyond they grow with the distance"
        yield "Buckets", f"{single}; from {last} on all share the last"
    else:
        yield "Distances", f"each has a column of its own; from {last} on all share the last"


def _transformer_xl_facts(part: Part) -> Facts:
    yield "Terms", (
        f"by the distance of query and key, from 0 to {part.length - 1}: each has a row of its own, of which queries, "
        "with a learned bias, take the product"
    )


def _shaw_facts(part: Part) -> Facts:
    by, learned = "by the distance of query and key,", "each has a learned embedding, of which queries take the product"
    if part.both_ways:
        table = "each has a row of a sinusoidal table, of which queries, with a learned bias, take the product"
        yield "Terms", f"{by} to earlier keys and to later ones: {table}"
    elif part.bare:
        behind = f"by the distance of a key behind the query, below {part.max_distance}"
        yield "Terms", f"{behind}: {learned}; farther keys have no term"
    elif part.of_values:
        values = "and one that is added to values by the weights; farther keys have none"
        yield "Terms", f"{by} below {part.max_distance} on either side: {learned}, {values}"
    elif part.left:
        yield "Terms", f"{by} up to {part.left} on one side and {part.right} on the other: {learned}"
    else:
        yield "Terms", f"{by} up to {part.max_distance} on either side: {learned}"


# ---- pictures ----


def _decomposed_facts(part: Part) -> Facts:
    yield "Terms", (
        f"by the difference of rows, and by that of columns: each has a learned embedding, {2 * part.window - 1} of "
        "either, of which queries take the product"
    )
    yield "Patches", f"{part.windows} of {part.window} x {part.window} each"


def _window_facts(part: Part) -> Facts:
    side = 2 * part.window - 1
    token = " and a class token" if part.window_class else ""
    more = ", and three for the class token as query, as key and with itself" if part.window_class else ""
    differences = "each difference of rows and columns in a window"
    yield "Bias", f"a learned number for each head and {differences} is added to the scores"
    yield "Windows", (
        f"{part.windows} of {part.window} x {part.window} patches{token} in a picture of {part.image} x {part.image} "
        "pixels; patches in different windows do not meet"
    )
    yield "Table", f"{side * side + 3 * part.window_class} rows: {side} x {side} differences{more}"


# ---- frequencies ----


class Pair(NamedTuple):
    """A pair of channels: radians per position, and the factor by which the scaling slows it."""

    radians: float
    slowed: float


class PairTable(NamedTuple):
    """Frequencies of all pairs, for sequences of a given length."""

    pairs: List[Pair]
    magnitude: float  # attention factor


def _read_table(engine: Engine, part: Part, length: int) -> PairTable:
    """Asks the program for the frequencies of a part."""
    rows = engine.columns("frequencies", "--problem", str(frequencies_of(part, length)))
    pairs = []
    for row in rows:
        radians, unscaled = float(row["radians"]), float(row["unscaled_radians"])
        pairs.append(Pair(radians, unscaled / radians if radians > 0 else math.inf))
    return PairTable(pairs, float(rows[0]["attention_factor"]))


# ---- channels and axes ----


def _channel_facts(part: Part) -> Facts:
    half, rest = part.rotary_dim // 2, part.head_dim - part.rotary_dim
    pairs = "of neighbours: channel 2 i with channel 2 i + 1"
    if part.encoding == "rope_half":
        pairs = f"half of them apart: channel i with channel i + {half}"
    others = "likewise by another position" if part.halves else "stay as they are"
    still = f", the other {rest} {others}" if rest else ""
    yield "Channels", f"{'' if rest else 'all '}{part.rotary_dim} of a head turn, in {half} pairs {pairs}{still}"
    if part.norms:
        whose = "over all heads of a token" if part.across_heads else "each head by itself"
        yield "Before", f"queries and keys are normalised by their root mean square, {whose}"


def _axis_facts(part: Part) -> Facts:
    names = ["time", "height", "width"]
    if part.tower and part.axes == 3:
        names = ["time", "row", "column"]
    elif part.tower:
        names = ["column", "row"] if part.column_first else ["row", "column"]
    if part.mrope_section:
        turned = ", ".join(f"{n} with its {name}" for n, name in zip(part.mrope_section, names) if n)
        text = "" if part.tower else "; of text all three are the position"
        yield "Axes", f"of the pairs of a patch of a picture turn {turned}, {LAYOUTS[part.mrope_layout]}{text}"


# ---- wavelengths ----


def _format_tokens(number: float) -> str:
    """Returns positions to four digits: 6.283, 9 973, 2 563 000."""
    if number < 1e3:
        return f"{number:.4g}"
    unit = 10.0 ** (math.floor(math.log10(number)) - 3)
    return count(round(number / unit) * unit)


def _wavelength_facts(table: PairTable, length: int) -> Facts:
    turning = [(2 * math.pi / pair.radians, i) for i, pair in enumerate(table.pairs) if pair.radians > 0]
    if not turning:
        return
    shortest, longest = min(turning), max(turning, key=lambda one: (one[0], -one[1]))
    slow = sum(tokens > length for tokens, _ in turning)
    still = len(table.pairs) - len(turning)
    rest = ""
    if slow:
        do = "do" if slow > 1 else "does"
        rest = f"; {slow} of {len(table.pairs)} pairs {do} not come round within {count(length)} positions"
    if still:
        rest += f"; {still} do not turn at all"
    yield "Wavelengths", (
        f"a full turn takes from {_format_tokens(shortest[0])} tokens (pair {shortest[1]}) to "
        f"{_format_tokens(longest[0])} (pair {longest[1]}){rest}"
    )


# ---- scaling ----


def _name_change(slowed: float, factor: float) -> str:
    """Returns the effect of the scaling on a pair, by which adjacent pairs are grouped."""
    if math.isinf(slowed):
        return "stopped"
    if abs(slowed - 1) < NEAR:
        return "unchanged"
    return "by the factor" if abs(slowed / factor - 1) < NEAR else "between"


def _scaling_facts(part: Part, table: PairTable, about: str) -> Facts:
    """Yields what the scaling does to the pairs: adjacent ones with the same change are named together."""
    runs = []
    for change, group in groupby(enumerate(table.pairs), key=lambda one: _name_change(one[1].slowed, part.factor)):
        run = list(group)
        first, last = run[0][0], run[-1][0]
        slowed = [pair.slowed for _, pair in run]
        words = change
        if change == "by the factor" or (change == "between" and max(slowed) / min(slowed) < 1 + NEAR):
            words = f"slowed {max(slowed):.4g} times"
        elif change == "between":
            words = f"slowed {min(slowed):.4g} to {max(slowed):.4g} times"
        runs.append(f"{f'pairs {first}-{last}' if first < last else f'pair {first}'} {words}")
    yield about, f"{part.scaling}: {', '.join(runs)}"


def _magnitude_facts(table: PairTable) -> Facts:
    factor = table.magnitude
    if abs(factor - 1) > 1e-12:
        scores = f"scores by its square, {factor * factor:.6g}"
        yield "Magnitude", f"cosines and sines are multiplied by {factor:.6g} (attention factor), and so {scores}"


# ---- precision ----


def _precision_facts(engine: Engine, part: Part, length: int) -> Facts:
    whose, numerics, known = ("ggml", "ggml_f32", GGML_F32) if part.ggml else ("Hugging Face's code", "hf_f32", HF_F32)
    if part.scaling not in known:
        yield "Precision", f"of this scaling there is no numerics mode {numerics}"
        return
    problem: Any = frequencies_of(part, length, numerics)
    off = []
    for row in engine.columns("drift", "--problem", str(problem)):
        if row["position"]:
            off.append(f"by more than {row['limit']} first at position {row['position']}")
        else:
            off.append(f"by more than {row['limit']} nowhere up to position {length - 1}")
            break
    yield "Precision", (
        f"{whose} forms its angles in f32 (numerics mode {numerics}): a cosine or sine is off {', '.join(off)} (found "
        "by computing them position by position)"
    )


# ---- lengths ----


def _length_facts(engine: Engine, part: Part) -> Facts:
    """Yields facts on both sides of the length at which the frequencies change."""
    longrope = part.scaling == "longrope"
    border = int(part.original_max_position_embeddings) if longrope else part.length
    below, beyond = min(border, part.length), part.length if longrope else 2 * part.length
    table = _read_table(engine, part, below)
    yield from _scaling_facts(part, table, f"Up to {border}")
    yield from _wavelength_facts(table, below)
    yield from _magnitude_facts(table)
    yield from _precision_facts(engine, part, below)
    if beyond <= border:
        return
    table = _read_table(engine, part, beyond)
    if longrope:
        how = f"sequences of more than {border} tokens have other factors, for all of their positions; at {beyond}:"
    else:
        how = f"beyond {border} tokens the base grows with the sequence; at {beyond}:"
    yield "Longer", how
    yield from _scaling_facts(part, table, "")
    yield from _wavelength_facts(table, beyond)
    if longrope:
        yield from _precision_facts(engine, part, beyond)


def frequency_facts(engine: Engine, part: Part) -> Facts:
    """Yields the facts of a rotation, or of sinusoids."""
    if part.encoding == "sinusoidal":
        order = "sine and cosine by turns"
        if part.cos_first or part.sin_cos:
            order = "all cosines, then all sines" if part.cos_first else "all sines, then all cosines"
        end = ", wavelengths to the endpoint" if part.freq_spacing == "endpoint" else ""
        yield "Channels", f"{part.width}: {order}{end}"
    else:
        yield from _channel_facts(part)
        yield from _axis_facts(part)
    if part.scaling in ("dynamic", "longrope"):
        yield from _length_facts(engine, part)
        return
    table = _read_table(engine, part, part.length)
    yield from _wavelength_facts(table, part.length)
    if part.scaling != "none":
        yield from _scaling_facts(part, table, "Scaling")
    yield from _magnitude_facts(table)
    yield from _precision_facts(engine, part, part.length)


# ---- all encodings ----

FACTS_BY_ENCODING = {
    "learned": _learned_facts, "alibi": _alibi_facts, "t5": _t5_facts, "deberta": _deberta_facts,
    "transformer_xl": _transformer_xl_facts, "shaw": _shaw_facts, "decomposed": _decomposed_facts,
    "window": _window_facts,
}  # fmt: skip


def part_facts(engine: Engine, part: Part) -> Facts:
    """Yields the facts of a part, each with its topic."""
    own = FACTS_BY_ENCODING.get(part.encoding)
    return own(part) if own else frequency_facts(engine, part)
