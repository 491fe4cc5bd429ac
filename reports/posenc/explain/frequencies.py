"""Describes frequencies: wavelengths, the effect of a scaling, and the positions from which f32 angles are inexact."""

import math
from itertools import groupby
from typing import Any, Iterator, List, NamedTuple, Tuple

from ..engine import Engine
from ..models.calls import GGML_F32, HF_F32, frequencies_of
from ..models.part import Part
from ..units import count

Facts = Iterator[Tuple[str, str]]  # pairs of a topic and a sentence
NEAR = 1e-9  # ratios of frequencies that count as equal
LAYOUTS = {
    "qwen2_vl": "one section after the other", "qwen3_vl": "by turns",
    "qwen2_vl_vision": "each from the shortest wavelength on", "pixtral": "among which the wavelengths are dealt out",
    "kimi": "by turns, each from the shortest wavelength on",
}  # fmt: skip


class Pair(NamedTuple):
    """A pair of channels: radians per position, and the factor by which the scaling slows it."""

    radians: float
    slowed: float


class PairTable(NamedTuple):
    """Frequencies of all pairs, for sequences of a given length."""

    pairs: List[Pair]
    magnitude: float  # attention factor


def _read_table(engine: Engine, part: Part, length: int) -> PairTable:
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
    still = (
        f", the other {rest} {'likewise by another position' if part.halves else 'stay as they are'}" if rest else ""
    )
    yield "Channels", f"{'' if rest else 'all '}{part.rotary_dim} of a head turn, in {half} pairs {pairs}{still}"
    if part.norms:
        whose = "over all heads of a token" if part.across_heads else "each head by itself"
        yield "Before", f"queries and keys are normalised by their root mean square, {whose}"


def _axis_facts(part: Part) -> Facts:
    names = ["time", "height", "width"]
    if part.tower:
        names = ["time", "row", "column"] if part.axes == 3 else ["row", "column"]
        if part.axes != 3 and part.column_first:
            names = ["column", "row"]
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
    by = table.magnitude
    if abs(by - 1) > 1e-12:
        yield "Magnitude", (
            f"cosines and sines are multiplied by {by:.6g} (attention factor), and so scores by its square, "
            f"{by * by:.6g}"
        )


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
