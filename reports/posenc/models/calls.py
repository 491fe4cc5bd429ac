"""Lists the calls of a model: prefill, decoding of one token at the last position, and one picture.

model.py calls calls_of() with the parts of a model, and gets cases to check and time. The problem of a case is a line
in the notation of problems:

    id       rope_half/f32/given/llama-3.1-8b-decode
    problem  rope_half tokens=1 heads=40 head_dim=128 rotary_dim=128 rows=1 in_place=true

Further problems are only checked: the same shapes with few tokens, at the first and at the last positions. Functions
called *_lines make the problems of one encoding: `n` tokens are a prompt, `few` are those of a problem that is only
checked. `length` is the number of positions that the model takes.
"""

import math
import struct
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from .part import Part

PROMPT, FEW, TABLE = 512, 8, 4096  # tokens of a prompt, of a problem that is only checked, rows of a table
# Rules of scaling that have tables in these numerics modes.
HF_F32 = ("none", "linear", "llama3", "yarn", "dynamic", "ntk", "longrope", "proportional")
GGML_F32 = HF_F32[:-1]
WITH_FREQUENCIES = ("sinusoidal", "sinusoidal_add", "rope_table")  # kernels whose problems have frequencies
# Defaults of the fields of a problem, which its line leaves out.
DEFAULTS: Dict[str, Any] = {
    "position_offset": 0, "query_offset": 0, "x_scale": 1.0, "batch": 1, "causal": False, "in_place": False,
    "bidirectional": False, "alibi_bias_max": 8.0, "layout": "interleaved", "numerics": "exact", "seq_len": 0,
    "position_kind": "none", "window_class": False, "without_c2p": False, "with_p2c": False, "position_buckets": 0,
    "weight_offset": 0.0, "across_heads": False, "epsilon": 1e-6, "relative": "deberta", "scale": 1.0, "mrope_grid": 0,
    "max_distance": 0,
}  # fmt: skip


@dataclass
class Case:
    """A call of a model."""

    id: str
    label: str
    step: str  # step of the model that makes this call, such as "prefill"; "" if no step does
    times: int  # calls per step; 0 if the configuration does not state it
    layers: str  # layers that make it: "full_attention", "vision", "encoder"; "" for all
    problem: str
    column_first: bool = False  # positions of a patch: its column, then its row


class Problem(Dict[str, Any]):
    """Fields of a problem by name; "kernel" is its kernel."""

    def __str__(self) -> str:
        stated = ((name, value) for name, value in self.items() if name != "kernel" and value != DEFAULTS.get(name))
        return " ".join([self["kernel"], *(f"{name}={word(value)}" for name, value in stated)])


def word(value: Any) -> str:
    """Returns a value as the notation of problems has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.9g}" if float(f"{value:.9g}") == value else f"{value:.17g}"
    if isinstance(value, tuple):
        return ",".join(map(word, value))
    return str(value)


def single(value: float) -> float:
    """Returns the nearest f32, in its shortest decimal digits."""
    near: float = struct.unpack("f", struct.pack("f", value))[0]
    for digits in range(1, 10):
        short = float(f"{near:.{digits}g}")
        if struct.unpack("f", struct.pack("f", short))[0] == near:
            return short
    return near


@dataclass
class Line:
    """A problem of a part, and its case if it is timed as well."""

    problem: Problem
    name: str = ""  # end of the id of its case, such as "prefill"; "" if it is only checked
    label: str = ""
    times: Optional[int] = None  # calls per step, which `name` names; 0: not known; None: no step makes it


class Calls:
    """Collects the calls of a model."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cases: List[Case] = []
        self.verify: List[str] = []

    def add(self, part: Part, lines: Iterator[Line]) -> None:
        """Adds the calls of a part."""
        for line in lines:
            text = str(line.problem)
            if not line.name:
                self.verify.append(text)
                continue
            kernel = line.problem["kernel"]
            numerics = line.problem.get("numerics", "exact") if kernel in WITH_FREQUENCIES else "given"
            inner = f"-{part.name}" if part.name else ""
            layers = part.name + ("_attention" if part.name in ("full", "sliding", "chunked") else "")
            self.cases.append(Case(
                id=f"{kernel}/f32/{numerics}/{self.name}{inner}-{line.name}",
                label=(f"{part.name}: " if part.name else "") + line.label,
                step="" if line.times is None else (f"{part.stack}-" if part.stack else "") + line.name,
                times=line.times or 0, layers=layers, problem=text, column_first=part.column_first,
            ))  # fmt: skip


def frequencies_of(part: Part, length: int, numerics: str = "exact") -> Problem:
    """Returns the problem of the last position of a sequence, from which the program computes its frequencies."""
    kernel, dim = ("sinusoidal", "dim") if part.encoding == "sinusoidal" else ("rope_table", "rotary_dim")
    width = part.width if part.encoding == "sinusoidal" else part.dim
    return Problem({"kernel": kernel, dim: width, **part.changed_frequencies(), "numerics": numerics, "seq_len": length,
                    "tokens": 1, "position_offset": length - 1})  # fmt: skip


# ---- positions added to embeddings ----


def _added_lines(part: Part, call: Callable[..., Problem], place: str, width: str) -> Iterator[Line]:
    """Yields additions of rows: to a prompt, to few tokens at both ends, to many tokens, and to the last one."""
    length, first = part.length, part.first
    n, few = min(length, PROMPT), min(length, FEW)
    start = f" from {place} {first}" if first else ""
    yield Line(call(n, first), "prefill", f"prefill, {n} tokens{start}, {width}", 1)
    yield Line(call(few, first, first + few))
    yield Line(call(few, first + length - few, first + length))
    yield Line(call(min(length, TABLE), first, first + length))
    if part.decodes:
        last = first + length - 1
        yield Line(call(1, last), "decode", f"decode, {place} {last}, {width}", 1)


def sinusoidal_lines(part: Part) -> Iterator[Line]:
    """Yields sinusoids as they are added, and as a table in both numerics modes."""
    length, first = part.length, part.first
    n, few = min(length, PROMPT), min(length, FEW)
    shape = {"dim": part.width, **part.changed_frequencies()}
    layout = {"layout": "sin_cos"} if part.sin_cos else {}
    scale = {"scale": single(1 / math.sqrt(part.width))} if part.shrunk else {}

    def added(tokens: int, offset: int, seq_len: int = 0) -> Problem:
        return Problem(kernel="sinusoidal_add", **shape, seq_len=seq_len, **layout, **scale,
                       x_scale=_embedding_scale(part), tokens=tokens, position_offset=offset,
                       in_place=True)  # fmt: skip

    def table(numerics: str, tokens: int, offset: int, seq_len: int = 0) -> Problem:
        return Problem(kernel="sinusoidal", numerics=numerics, **shape, seq_len=seq_len, **layout, **scale,
                       tokens=tokens, position_offset=offset)  # fmt: skip

    width = f"d_model {part.width}"
    yield from _added_lines(part, added, "position", width)
    for numerics in ("exact", "hf_f32"):
        yield Line(table(numerics, n, first), "table", f"table, {n} tokens, {width}")
    for numerics in ("exact", "hf_f32"):
        yield Line(table(numerics, few, first, first + few))
        yield Line(table(numerics, few, first + length - few, first + length))
    yield Line(table("exact", min(length, TABLE), first, first + length))


def cosines_first_lines(part: Part) -> Iterator[Line]:
    """Yields a table of cosines and sines, whose rows are added."""
    length, first = part.length, part.first
    n, few = min(length, PROMPT), min(length, FEW)
    for numerics in ("exact", "hf_f32"):
        for tokens, offset, seq_len, name in (
            (length, first, first + length, "table"), (few, first, first + few, ""),
            (few, first + length - few, first + length, ""),
        ):  # fmt: skip
            label = f"table, {length} rows of {part.width // 2} cosines and as many sines" if name else ""
            problem = Problem(kernel="rope_table", numerics=numerics, rotary_dim=part.width,
                              **part.changed_frequencies(), seq_len=seq_len, tokens=tokens,
                              position_offset=offset)  # fmt: skip
            yield Line(problem, name, label)
    shape = {"dim": part.width, "rows": length, "x_scale": _embedding_scale(part), "in_place": True}
    label = f"prefill, {n} tokens, width {part.width}"
    yield Line(Problem(kernel="learned_add", tokens=n, **shape), "prefill", label, 1)
    yield Line(Problem(kernel="learned_add", tokens=few, position_offset=length - few, **shape))
    if part.decodes:
        yield Line(Problem(kernel="learned_add", tokens=1, position_offset=length - 1, **shape), "decode",
                   f"decode, row {length - 1}, width {part.width}", 1)  # fmt: skip


def learned_lines(part: Part) -> Iterator[Line]:
    """Yields the addition of rows of a learned table."""
    shape = {"dim": part.width, "rows": part.rows, "x_scale": _embedding_scale(part), "in_place": True}

    def rows(tokens: int, offset: int, _seq_len: int = 0) -> Problem:
        return Problem(kernel="learned_add", tokens=tokens, position_offset=offset, **shape)

    return _added_lines(part, rows, "row", f"width {part.width}")


def _embedding_scale(part: Part) -> float:
    """Returns the factor of embeddings before rows are added."""
    return single(math.sqrt(part.width)) if part.scaled else 1.0


# ---- rotations ----


def rotation_lines(part: Part) -> Iterator[Line]:
    """Yields the rotation of a prompt and of one token, or of a picture; and with a norm before it."""
    n, few, side = min(part.length, PROMPT), min(part.length, FEW), min(part.picture, part.length)
    shape = {"heads": part.heads + part.key_heads, "head_dim": part.head_dim, "rotary_dim": part.rotary_dim}
    turned = f", {part.rotary_dim} rotated" if part.rotary_dim < part.head_dim else ""
    heads = f"{part.heads} + {part.key_heads} heads of {part.head_dim}{turned}"

    def rotated(tokens: int) -> Problem:
        return Problem(kernel=part.encoding, tokens=tokens, **shape, rows=tokens, in_place=True)

    def normalised(heads: int, tokens: int) -> Problem:
        weight: Dict[str, Any] = {"across_heads": True} if part.across_heads else {"weight.stride": 0}
        unit = {"weight_offset": 1.0} if part.unit else {}
        return Problem(kernel="rope_qk_norm", tokens=tokens, heads=heads, head_dim=part.head_dim,
                       rotary_dim=part.rotary_dim, rows=tokens, in_place=True, **unit, epsilon=single(part.epsilon),
                       **weight)  # fmt: skip

    if part.tower:
        half = " at a time" if part.halves else ""
        yield Line(rotated(side * side), "image", f"image, {side * side} patches, {heads}{half}",
                   part.layers * (1 + part.halves))  # fmt: skip
    else:
        yield Line(rotated(n), "prefill", f"prefill, {n} tokens, {heads}", part.layers)
    if part.decodes:
        yield Line(rotated(1), "decode", f"decode, 1 token, {heads}", part.layers)
    yield Line(rotated(few))
    if not part.norms:
        return
    each = (("queries", part.heads), ("keys", part.key_heads))
    for step, tokens, words in (("prefill", n, f"{n} tokens"), ("decode", 1, "1 token"))[: 1 + part.decodes]:
        for whose, count in each:
            label = f"{step}, {words}, {count} heads of {part.head_dim}{turned}, normalised"
            yield Line(normalised(count, tokens), f"{step}-{whose}", label)
    for _, count in each:
        yield Line(normalised(count, few))


def table_lines(part: Part, numerics: str) -> Iterator[Line]:
    """Yields cosines and sines of the angles. Frequencies that change at a length are checked on both sides of it."""
    length = part.length
    n, few = min(length, PROMPT), min(length, FEW)
    shape = {"numerics": numerics, "rotary_dim": part.dim, **part.changed_frequencies()}
    pairs, text = part.rotary_dim // 2, not part.tower

    def table(tokens: int, offset: int = 0, seq_len: int = 0, **more: Any) -> Problem:
        return Problem(kernel="rope_table", **shape, seq_len=seq_len, tokens=tokens, position_offset=offset, **more)

    if part.picture:
        yield from _picture_lines(part, table)
    if text:
        yield Line(table(n, 0, n), "prefill", f"prefill, {n} tokens, {pairs} pairs", 1)
    if part.decodes:
        yield Line(table(1, length - 1, length), "decode", f"decode, position {length - 1}, {pairs} pairs", 1)
    if text:
        yield Line(table(few, 0, few))
        yield Line(table(few, length - few, length))
    original = int(part.original_max_position_embeddings)
    if part.scaling == "longrope" and length > original:
        yield Line(table(1, original - 1, original), "original", f"original, position {original - 1}, {pairs} pairs")
        yield Line(table(min(original, FEW), max(original - FEW, 0), original))
        yield Line(table(min(original + 1, FEW), max(original - FEW + 1, 0), original + 1))
    if part.scaling == "dynamic":
        yield Line(table(1, 2 * length - 1, 2 * length), "beyond", f"beyond, position {2 * length - 1}, {pairs} pairs")
        yield Line(table(min(length + 1, FEW), max(length - FEW + 1, 0), length + 1))
        yield Line(table(min(2 * length, FEW), max(2 * length - FEW, 0), 2 * length))


def _picture_lines(part: Part, table: Callable[..., Problem]) -> Iterator[Line]:
    """Yields a picture after the prompt, or from position 0 on where there is no text."""
    length, pairs = part.length, part.rotary_dim // 2
    side = min(part.picture, length)
    before, narrow = min(length - side, PROMPT), min(length, 3)
    whole = {"position_kind": "i64"}
    label = f"image, {side} x {side}" + (f" after {before} of text" if not part.tower else "") + f", {pairs} pairs"
    if not part.fractions and not part.halves:
        problem = table(side * side, before, before + side, mrope_grid=side, **whole)
        yield Line(problem, "image", label, 1 if part.tower else None)
        yield Line(table(min(side + FEW, side * side), before, before + side, mrope_grid=side, **whole))
        yield Line(table(narrow * narrow, length - narrow, length, mrope_grid=narrow, **whole))
    if part.halves:
        yield Line(table(side, **whole), "axis", f"rows, or columns, of {side} x {side} patches, {pairs} pairs", 2)
        yield Line(table(side, **whole))
    if part.fractions:
        kind = {"position_kind": "f32", "time_step": 2.0}
        axis = f"rows, or columns, of {side} x {side} patches, {pairs // 2} pairs"
        yield Line(table(side, 1 - side, **kind), "axis", axis, 2)
        yield Line(table(side, 1 - side, **kind))


# ---- added to scores ----


def _score_lines(
    part: Part, kernel: str, shape: Dict[str, Any], prefill: Dict[str, Any], decode: Dict[str, Any],
    decode_calls: Optional[int],
) -> Iterator[Line]:  # fmt: skip
    """Yields the addition to scores at prefill and decoding, and the same as a tensor.

    `shape` has the fields of all problems, `prefill` and `decode` those of one step, `decode_calls` its calls.
    """
    length, heads = part.length, f"{part.heads} heads"
    n, few = min(length, PROMPT), min(length, FEW)
    middle = n - few if part.encoding == "transformer_xl" else n // 2
    scale = {} if kernel == "t5_bias" else {"x_scale": _score_scale(part)}

    def added(queries: int, keys: int, offset: int, more: Dict[str, Any]) -> Problem:
        return Problem(kernel=f"{kernel}_add", **shape, **scale, queries=queries, keys=keys, query_offset=offset,
                       **more, in_place=True)  # fmt: skip

    def tensor(queries: int, offset: int) -> Problem:
        return Problem(kernel=kernel, **shape, queries=queries, keys=n, query_offset=offset, **prefill)

    yield Line(added(n, n, 0, prefill), "prefill", f"prefill, {heads}, {n} x {n} scores", part.layers)
    if part.decodes:
        label = f"decode, {heads}, 1 x {length} scores"
        yield Line(added(1, length, length - 1, decode), "decode", label, decode_calls)
        yield Line(added(1, length, length - 1, decode))
    yield Line(tensor(n, 0), "tensor", f"as a tensor, {heads}, {n} x {n}")
    yield Line(added(few, n, middle, prefill))
    yield Line(tensor(few, middle))


def _score_scale(part: Part) -> float:
    """Returns the factor of scores: one over the square root of head_dim, times the terms of DeBERTa."""
    terms = 2 - part.without_c2p + part.with_p2c if part.encoding == "deberta" else 1
    return single(1 / (part.head_dim if part.bare else math.sqrt(part.head_dim * terms)))


def alibi_lines(part: Part) -> Iterator[Line]:
    """Yields ALiBi. A decoder sees no later keys."""
    shape = {"heads": part.heads, "causal": part.decodes, "alibi_bias_max": single(part.alibi_bias_max)}
    return _score_lines(part, "alibi", shape, {}, {}, part.layers)


def t5_lines(part: Part) -> Iterator[Line]:
    """Yields buckets of T5: of both directions in an encoder, of earlier keys in a decoder."""
    shape = {"heads": part.heads, "num_buckets": part.num_buckets, "max_distance": part.max_distance}
    both, earlier = {"bidirectional": True}, {"bidirectional": False}
    return _score_lines(part, "t5_bias", shape, both, earlier, part.decoder_layers)


def relative_lines(part: Part) -> Iterator[Line]:
    """Yields terms by relative position."""
    n, few = min(part.length, PROMPT), min(part.length, FEW)
    span = part.max_distance
    if part.encoding == "shaw":
        span = max(min(n - 1 + part.backward, part.max_distance), 1)
    shape = {
        "heads": part.heads, "relative": "deberta" if part.backward else part.encoding,
        "position_buckets": part.num_buckets, "max_distance": span, "without_c2p": part.without_c2p,
        "with_p2c": part.with_p2c, "scale": 1.0 if part.bare else _score_scale(part),
    }  # fmt: skip
    yield from _score_lines(part, "relative_bias", shape, {}, {}, part.layers)
    if part.of_values:
        values = {"heads": part.heads, "keys": n, "relative": "shaw", "max_distance": span}
        label = f"weights summed by distance, {part.heads} heads, {n} x {n}"
        yield Line(Problem(kernel="relative_sum", queries=n, **values), "values", label, part.layers)
        yield Line(Problem(kernel="relative_sum", queries=few, query_offset=n // 2, **values))


def distance_lines(part: Part) -> Iterator[Line]:
    """Yields the sinusoids of distances, from the last to the first."""
    n, few = min(part.length, PROMPT), min(part.length, FEW)
    layout = {"layout": "sin_cos"} if part.sin_cos else {}
    shape: Dict[str, Any] = {"dim": part.width, **part.changed_frequencies(), **layout}
    label = f"table of {2 * n - 1} distances, width {part.width}"
    yield Line(Problem(kernel="sinusoidal", **shape, tokens=2 * n - 1, position_offset=1 - n), "distances", label, 1)
    yield Line(Problem(kernel="sinusoidal", **shape, seq_len=n, tokens=few, position_offset=1 - n))


def decomposed_lines(part: Part) -> Iterator[Line]:
    """Yields terms by rows and by columns of a picture. Where one kind is gathered the other counts as heads."""
    side, windows = part.window, part.windows
    shape = {"heads": part.heads * side, "queries": side, "keys": side, "relative": "shaw", "max_distance": side - 1,
             "scale": 1.0}  # fmt: skip
    whole = "the whole, " if windows == 1 else f"{windows} windows of "
    label = f"image, rows or columns of {whole}{side} x {side} patches, {part.heads} heads"
    yield Line(Problem(kernel="relative_bias", batch=windows, **shape), "image", label, part.layers * 2)
    yield Line(Problem(kernel="relative_bias", batch=min(windows, 2), **shape))


def window_lines(part: Part) -> Iterator[Line]:
    """Yields biases in windows of a picture."""
    side, more = part.window, " + 1" if part.window_class else ""
    shape = {"heads": part.heads, "window_height": side, "window_width": side, "window_class": part.window_class}
    added = {**shape, "x_scale": _score_scale(part), "in_place": True}
    of = f"{side} x {side}{more}, {part.heads} heads"
    yield Line(Problem(kernel="window_bias_add", batch=part.windows, **added), "image",
               f"image, {part.windows} windows of {of}", part.layers)  # fmt: skip
    yield Line(Problem(kernel="window_bias", **shape), "tensor", f"as a tensor, a window of {of}")
    yield Line(Problem(kernel="window_bias", **shape))
    yield Line(Problem(kernel="window_bias_add", batch=min(part.windows, 2), **added))


LINES = {
    "sinusoidal": sinusoidal_lines, "learned": learned_lines, "alibi": alibi_lines, "t5": t5_lines,
    "deberta": relative_lines, "transformer_xl": relative_lines, "shaw": relative_lines,
    "decomposed": decomposed_lines, "window": window_lines,
}  # fmt: skip


# ---- all of a model ----


def _rotates_alike(a: Part, b: Part) -> bool:
    """Returns whether two parts rotate the same channels of the same heads."""
    sizes = ("tower", "heads", "key_heads", "head_dim", "rotary_dim")
    return all(getattr(a, name) == getattr(b, name) for name in sizes)


def _add_rotation(calls: Calls, parts: Sequence[Part], at: int) -> None:
    """Adds the rotation of parts[at] and its tables. Types of layers that rotate alike make one call."""
    part = parts[at]
    same = [other for other in parts if _rotates_alike(part, other)]
    known = all(other.layers > 0 for other in same)
    whole = replace(part, layers=sum(other.layers for other in same) if known else 0)
    if not part.tower and all(_rotates_alike(part, other) or other.tower for other in parts):
        whole.name = ""
    if not any(_rotates_alike(part, other) for other in parts[:at]):
        calls.add(whole, rotation_lines(whole))
    calls.add(part, table_lines(part, "exact"))
    if part.ggml and part.scaling in GGML_F32:
        calls.add(part, table_lines(part, "ggml_f32"))
    elif not (part.ggml or part.in_f64 or part.fractions) and part.scaling in HF_F32:
        calls.add(part, table_lines(part, "hf_f32"))


def calls_of(parts: Sequence[Part], name: str) -> Tuple[List[Case], List[str]]:
    """Returns the cases of a model, and the problems that are only checked."""
    calls = Calls(name)
    for at, part in enumerate(parts):
        if part.rotates:
            _add_rotation(calls, parts, at)
        elif part.encoding == "sinusoidal" and part.cos_first:
            calls.add(part, cosines_first_lines(part))
        else:
            calls.add(part, LINES[part.encoding](part))
        if part.both_ways:
            calls.add(part, distance_lines(part))
    return calls.cases, calls.verify
