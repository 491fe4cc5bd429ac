"""Describes a part of a model: its encoding, and the facts that follow from its numbers."""

import math
import struct
from typing import Iterator

from ..engine import Engine
from ..models.part import Part
from .frequencies import Facts, frequency_facts

MUCH = 10  # a bias of -10 leaves almost nothing of a weight
TITLES = {
    "sinusoidal": "Sinusoids added to embeddings", "learned": "A learned table",
    "rope_half": "Rotation of queries and keys", "rope_interleaved": "Rotation of queries and keys",
    "alibi": "ALiBi: a bias that grows with the distance", "t5": "Biases by buckets of distances",
    "deberta": "Terms by relative position", "transformer_xl": "Terms by relative position",
    "shaw": "Terms by relative position", "decomposed": "Terms by rows and by columns",
    "window": "Biases in windows of a picture",
}  # fmt: skip


def title(part: Part) -> str:
    """Returns the title of a part: "full: Rotation of queries and keys, 5 layers"."""
    layers = f", {part.layers} layer{'s' if part.layers > 1 else ''}" if part.layers else ""
    return f"{part.name}{': ' if part.name else ''}{TITLES[part.encoding]}{layers}"


def _learned_facts(part: Part) -> Facts:
    last = part.length - 1
    yield "Table", f"{part.rows} learned rows of {part.width} numbers, added to the embeddings"
    yield "Rows", (
        f"position 0 is row {part.first}, the last one, {last}, row {part.first + last}; past it there is none"
    )


# ---- added to scores ----


def _alibi_slopes(part: Part) -> Iterator[float]:
    """Yields the slopes of ALiBi. If the heads are no power of two, some are slopes of twice the next lower power."""
    whole = 2 ** int(math.log2(part.heads))
    for head in range(part.heads):
        step, of = (head + 1, whole) if head < whole else (2 * (head - whole) + 1, 2 * whole)
        yield struct.unpack("f", struct.pack("f", 2 ** (-part.alibi_bias_max * step / of)))[0]


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
    alone = buckets // 2
    more = buckets - alone
    for distance in range(alone, max_distance):
        if int(math.log(distance / alone) / math.log(max_distance / alone) * more) >= more - 1:
            return distance
    return max_distance


def _t5_facts(part: Part) -> Facts:
    yield "Bias", "a learned number for each head and bucket of distances is added to the scores"
    half = part.num_buckets // 2
    directions = [("Encoder", half, "each way"), ("Decoder", part.num_buckets, "for keys behind")]
    for about, buckets, way in directions[: 1 + part.decodes]:
        last = _find_last_bucket(buckets, part.max_distance)
        yield about, (
            f"{buckets} buckets {way}: distances 0 to {buckets // 2 - 1} have one each, from {last} on all keys share "
            "the last"
        )


def _find_last_column(part: Part) -> int:
    """Returns the distance from which on all keys share DeBERTa's last column."""
    columns, most = part.num_buckets, part.max_distance
    if not columns:
        return most - 1
    alone = columns // 2
    for distance in range(alone + 1, most):
        if alone + math.ceil(math.log(distance / alone) / math.log((most - 1) / alone) * (alone - 1)) >= columns - 1:
            return distance
    return most


def _deberta_facts(part: Part) -> Facts:
    terms = ["queries by positions (c2p)"][: not part.without_c2p] + ["keys by positions (p2c)"][: part.with_p2c]
    yield "Terms", f"by the distance of query and key: {', '.join(terms)}"
    last = _find_last_column(part)
    if part.num_buckets:
        yield "Buckets", (
            f"distances up to {part.num_buckets // 2} have one each, beyond they grow with the distance; from {last} "
            "on all share the last"
        )
    else:
        yield "Distances", f"each has a column of its own; from {last} on all share the last"


def _transformer_xl_facts(part: Part) -> Facts:
    yield "Terms", (
        f"by the distance of query and key, from 0 to {part.length - 1}: each has a row of its own, of which queries, "
        "with a learned bias, take the product"
    )


def _shaw_facts(part: Part) -> Facts:
    learned = "each has a learned embedding, of which queries take the product"
    by = "by the distance of query and key,"
    if part.both_ways:
        words = (
            f"{by} to earlier keys and to later ones: each has a row of a sinusoidal table, of which queries, with a "
            "learned bias, take the product"
        )
    elif part.bare:
        words = (
            f"by the distance of a key behind the query, below {part.max_distance}: {learned}; farther keys have no "
            "term"
        )
    elif part.of_values:
        words = (
            f"{by} below {part.max_distance} on either side: {learned}, and one that is added to values by the "
            "weights; farther keys have none"
        )
    elif part.left:
        words = f"{by} up to {part.left} on one side and {part.right} on the other: {learned}"
    else:
        words = f"{by} up to {part.max_distance} on either side: {learned}"
    yield "Terms", words


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
    yield "Bias", (
        "a learned number for each head and each difference of rows and columns in a window is added to the scores"
    )
    yield "Windows", (
        f"{part.windows} of {part.window} x {part.window} patches{token} in a picture of {part.image} x {part.image} "
        "pixels; patches in different windows do not meet"
    )
    yield "Table", f"{side * side + 3 * part.window_class} rows: {side} x {side} differences{more}"


FACTS_BY_ENCODING = {
    "learned": _learned_facts, "alibi": _alibi_facts, "t5": _t5_facts, "deberta": _deberta_facts,
    "transformer_xl": _transformer_xl_facts, "shaw": _shaw_facts, "decomposed": _decomposed_facts,
    "window": _window_facts,
}  # fmt: skip


def part_facts(engine: Engine, part: Part) -> Facts:
    """Yields the facts of a part, each with its topic."""
    own = FACTS_BY_ENCODING.get(part.encoding)
    return own(part) if own else frequency_facts(engine, part)
