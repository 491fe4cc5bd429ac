"""Expected outputs of every kernel from a problem and its inputs, by MPFR and integers.

A function for each signature yields the rows of its outputs: rope_table() yields a list of cosines and one of sines for
each token. outputs() collects them, and adds x if the kernel does.

References: Vaswani et al. 1706.03762; Su et al. 2104.09864; Press et al. 2108.12409; Raffel et al. 1910.10683; Liu et
al. 2103.14030; Bao et al. 2106.08254; He et al. 2006.03654; Shaw et al. 1803.02155; Dai et al. 1901.02860.
"""

import math
from array import array
from functools import lru_cache
from typing import Callable, Dict, Iterator, List, Tuple

import gmpy2
from gmpy2 import mpfr

from rounding import add_f32, nearest_f32, round_to_odd, sum_of_products
from freqs import Freqs
from problem import FreqsSpec, Problem, pairs_of, section

Rows = Iterator[Tuple[List[float], ...]]


@lru_cache(maxsize=4)
def freqs_of(spec: FreqsSpec) -> Freqs:
    """Returns the frequencies of a spec. Problems in a row often have the same."""
    return Freqs(spec)


def sincos_of_rows(p: Problem, m: float) -> Iterator[List[Tuple[float, float]]]:
    """Yields m sin and m cos of every pair, token by token."""
    freqs = freqs_of(FreqsSpec.from_fields(p.fields))
    times = [p.times[min(pair.axis, len(p.times) - 1)] for pair in pairs_of(freqs.spec)]
    for r in range(p.batch * p.tokens):
        yield [freqs.sincos(i, times[i][r], m) for i in range(freqs.spec.n_pairs)]


def sinusoidal(p: Problem) -> Rows:
    """Yields sines and cosines, alternating or in halves of each section.

    In halves, the last of an odd number of columns is 0.
    """
    spec, width = FreqsSpec.from_fields(p.fields), p.outputs[0].width
    for pairs in sincos_of_rows(p, p.scale):
        row = [0.0] * width
        for k in range(width):
            first, n = section(spec, k // 2)
            channel = k - 2 * first
            if p.layout == "interleaved":
                row[k] = pairs[k // 2][k % 2]
            elif channel < 2 * n:
                # a section has its sines first, or its cosines; there are n of each
                is_sine = (channel < n) == (p.layout == "sin_cos")
                row[k] = pairs[first + channel % n][0 if is_sine else 1]
        yield (row,)


def rope_table(p: Problem) -> Rows:
    """Yields cosines and sines, multiplied by the attention factor."""
    for pairs in sincos_of_rows(p, freqs_of(FreqsSpec.from_fields(p.fields)).attention_factor):
        yield [cosine for _, cosine in pairs], [sine for sine, _ in pairs]


def partner_of(p: Problem, channel: int) -> Tuple[int, int, int]:
    """Returns the pair of a rotated channel, the other channel of the pair, and the sign of the sine."""
    half = p.rotary_dim // 2
    rotated = channel - p.rotary_offset
    if p.kernel == "rope_interleaved":
        return rotated // 2, p.rotary_offset + (rotated ^ 1), 1 if rotated % 2 else -1
    return rotated % half, p.rotary_offset + (rotated + half) % (2 * half), 1 if rotated >= half else -1


def is_rotated(p: Problem, channel: int) -> bool:
    """Returns true if a channel of a head rotates."""
    return bool(0 <= channel - p.rotary_offset < p.rotary_dim)


def rope(p: Problem) -> Rows:
    """Yields heads whose pairs of channels are rotated by the inputs cos and sin; other channels are copies."""
    x, cosines, sines, half = p.inputs["x"], p.inputs["cos"], p.inputs["sin"], p.rotary_dim // 2
    dim, direction = p.head_dim, -1 if p.transpose else 1
    for r in range(p.outputs[0].rows):
        head, first_angle = x[r * dim : (r + 1) * dim], int(p.times[0][r // p.heads]) * half
        row = list(head)
        for k in range(dim):
            if is_rotated(p, k):
                pair, partner, sign = partner_of(p, k)
                angle = first_angle + pair
                row[k] = sum_of_products(head[k], cosines[angle], sign * head[partner], direction * sines[angle])
        yield (row,)


def inverse_root(squares: "array[float]", epsilon: float) -> Tuple[mpfr, bool]:
    """Returns 1 / sqrt(mean square + epsilon) of a row, and false if it was rounded.

    A sum of 2^128 or more, beyond f32, gives 0.
    """
    total = sum((mpfr(x) * x for x in squares), mpfr(0))
    if gmpy2.is_nan(total):
        return total, True
    if total >= 2.0**128:
        return mpfr(0), True
    return 1 / gmpy2.sqrt(total / len(squares) + epsilon), False


def rope_qk_norm(p: Problem) -> Rows:
    """Yields heads divided by their root mean square, or by that of a token, times a weight, then rotated."""
    x, cosines, sines, half = p.inputs["x"], p.inputs["cos"], p.inputs["sin"], p.rotary_dim // 2
    dim, heads = p.head_dim, p.heads if p.across_heads else 1
    weights = [mpfr(weight) + p.weight_offset for weight in p.inputs["weight"]]
    for r in range(p.outputs[0].rows):
        first, first_angle = r // heads * heads * dim, int(p.times[0][r // p.heads]) * half
        root, exact = inverse_root(x[first : first + heads * dim], p.epsilon)
        weighted = [weights[r % p.heads * dim + k] * x[r * dim + k] for k in range(dim)]
        row = []
        for k in range(dim):
            if is_rotated(p, k):
                pair, partner, sign = partner_of(p, k)
                angle = first_angle + pair
                value = weighted[k] * cosines[angle] * root + weighted[partner] * (sign * sines[angle]) * root
            else:
                value = weighted[k] * root
            row.append(round_to_odd(value, exact))
        yield (row,)


def learned(p: Problem) -> Rows:
    """Yields rows of the table at the tokens' positions."""
    for position in p.times[0]:
        yield (list(p.inputs["table"][int(position) * p.dim : (int(position) + 1) * p.dim]),)


def learned_grad(p: Problem) -> Rows:
    """Yields the sums of the gradients of a row's tokens, in their order; `accumulate` adds them to out."""
    x, dim = p.inputs["x"], p.dim
    table = [
        list(p.inputs["out"][r * dim : (r + 1) * dim]) if p.accumulate else [0.0] * dim
        for r in range(p.outputs[0].rows)
    ]
    for t, position in enumerate(p.times[0]):
        row = table[int(position)]
        row[:] = [add_f32(row[k], x[t * dim + k]) for k in range(dim)]
    for row in table:
        yield (row,)


def slope(heads: int, bias_max: float, h: int) -> float:
    """Returns the ALiBi slope of head h. The first heads are a power of two; the rest have slopes between theirs."""
    power = 1 << (heads.bit_length() - 1)
    share = mpfr(h + 1) / power if h < power else mpfr(2 * (h - power) + 1) / (2 * power)
    return nearest_f32(mpfr(2) ** (-bias_max * share))


def queries(p: Problem) -> Iterator[Tuple[int, int]]:
    """Yields head and query of each row; heads count through all batches."""
    for r in range(p.outputs[0].rows):
        yield divmod(r, p.outputs[0].rows // (p.batch * p.heads))


def alibi(p: Problem) -> Rows:
    """Yields the slope of a head times the negative distance of a query and a key."""
    heads = p.heads * (p.batch if p.slopes_by_batch else 1)
    slopes = [slope(heads, p.alibi_bias_max, h) for h in range(heads)]
    for head, query in queries(p):
        slope_of_head, position = slopes[head % heads], query + p.query_offset
        yield ([-math.inf if p.causal and j > position else slope_of_head * -abs(position - j) for j in range(p.keys)],)


@lru_cache(maxsize=None)
def bucket(query_minus_key: int, num_buckets: int, max_distance: int, bidirectional: bool) -> int:
    """Returns T5's bucket of a distance by its definition in integers.

    With n the distance, of N buckets e exact, and M the most distance: e + k for the greatest k < N - e with
    n^(N-e) >= M^k e^(N-e-k).
    """
    buckets = num_buckets // 2 if bidirectional else num_buckets
    n_exact, n, base = buckets // 2, query_minus_key, 0
    if n < 0:
        n, base = (-n, buckets) if bidirectional else (0, 0)
    if n < n_exact:
        return base + n
    rest = buckets - n_exact
    k = rest - 1
    while k > 0 and n**rest < max_distance**k * n_exact ** (rest - k):
        k -= 1
    return base + n_exact + k


def t5(p: Problem) -> Rows:
    """Yields table[bucket][head]."""
    table = p.inputs["table"]
    for head, query in queries(p):
        distances = (query + p.query_offset - j for j in range(p.keys))
        buckets = (bucket(d, p.num_buckets, p.max_distance, p.bidirectional) for d in distances)
        yield ([table[b * p.heads + head % p.heads] for b in buckets],)


def distance(p: Problem) -> Rows:
    """Yields values[head][distance]; the first column is for query 0 and the last key."""
    values = p.inputs["values"]
    columns = len(values) // p.heads
    for head, query in queries(p):
        first = head % p.heads * columns + query + p.keys - 1
        yield ([values[first - j] for j in range(p.keys)],)


def window_row(height: int, width: int, with_class: bool, query: int, key: int) -> int:
    """Returns the row of a query and a key in a window's table, which has a row for each dy and dx in row order.

    A class token is token 0. Its three rows follow: as query, as key, as both.
    """
    n_dx = 2 * width - 1
    if with_class and (query == 0 or key == 0):
        return (2 * height - 1) * n_dx + (1 if query else 0 if key else 2)
    q, k = query - with_class, key - with_class
    return (q // width - k // width + height - 1) * n_dx + q % width - k % width + width - 1


def window(p: Problem) -> Rows:
    """Yields table[window_row()][head]."""
    keys = p.outputs[0].width
    for head, query in queries(p):
        rows = (window_row(p.window_height, p.window_width, p.window_class, query, j) for j in range(keys))
        yield ([p.inputs["table"][row * p.heads + head % p.heads] for row in rows],)


@lru_cache(maxsize=None)
def deberta_column(query_minus_key: int, buckets: int, max_distance: int) -> int:
    """Returns DeBERTa's column of a distance.

    There are twice as many columns as buckets, or as max_distance if buckets is 0.
    Beyond m = buckets/2 the bucket is ceil(ln(n/m) / ln(most/m) (m-1)) + m: m + k for the least k with
    n^(m-1) <= most^k m^(m-1-k). k stops at m, as the column is clamped anyway.
    """
    n, m, most = abs(query_minus_key), buckets // 2, max_distance - 1
    span = buckets or max_distance
    if buckets and n > m:
        k = 0
        while k < m and n ** (m - 1) > most**k * m ** max(m - 1 - k, 0):
            k += 1
        n = m + k
    return max(0, min(span - n if query_minus_key < 0 else span + n, 2 * span - 1))


def column_of(p: Problem, query: int, key: int) -> int:
    """Returns the column of terms of a query and a key."""
    query_minus_key = query + p.query_offset - key
    if p.relative == "deberta":
        return deberta_column(query_minus_key, p.position_buckets, p.max_distance)
    if p.relative == "shaw":
        return int(max(0, min(p.max_distance - query_minus_key, 2 * p.max_distance)))
    return int(p.keys - 1 - max(query_minus_key, 0))  # Transformer-XL; for later keys any column is right


def relative(p: Problem) -> Rows:
    """Yields scale times one term, exact in f64; a second term is added by a fused multiply-add."""
    scale, c2p, p2c = nearest_f32(p.scale), p.inputs.get("c2p"), p.inputs.get("p2c")
    for r, (head, query) in enumerate(queries(p)):
        row = []
        for j in range(p.keys):
            column = column_of(p, query, j)
            value = 0.0
            if c2p:
                columns = len(c2p) // p.outputs[0].rows
                value = scale * c2p[r * columns + column]
            if p2c:
                columns = len(p2c) // (p.batch * p.heads * p.keys)
                term = p2c[(head * p.keys + j) * columns + column]
                value = sum_of_products(scale, term, nearest_f32(value), 1) if c2p else scale * term
            row.append(value)
        yield (row,)


def relative_sum(p: Problem) -> Rows:
    """Yields the sums of a query's weights in each column, added in the order of the keys."""
    for r, (_, query) in enumerate(queries(p)):
        row = [0.0] * p.outputs[0].width
        for j in range(p.keys):
            column = column_of(p, query, j)
            row[column] = add_f32(row[column], p.inputs["x"][r * p.keys + j])
        yield (row,)


ROWS: Dict[str, Callable[[Problem], Rows]] = {
    "sinusoidal": sinusoidal,
    "learned": learned,
    "learned_grad": learned_grad,
    "rope_table": rope_table,
    "rope_half": rope,
    "rope_interleaved": rope,
    "rope_qk_norm": rope_qk_norm,
    "alibi": alibi,
    "t5_bias": t5,
    "distance_bias": distance,
    "window_bias": window,
    "relative_bias": relative,
    "relative_sum": relative_sum,
}


def outputs(p: Problem) -> List["array[float]"]:
    """Returns all outputs of a problem, in their order, rounded to odd."""
    expected: List["array[float]"] = [array("d") for _ in p.outputs]
    adds = p.kernel.endswith("_add")
    for r, row_of_each in enumerate(ROWS[p.kernel.removesuffix("_add")](p)):
        for output, row in zip(expected, row_of_each):
            if adds:
                x = p.inputs["x"][r * len(row) : (r + 1) * len(row)]
                assert len(x) == len(row)
                row = [sum_of_products(a, p.x_scale, nearest_f32(b), 1) for a, b in zip(x, row)]
            output.extend(row)
    return expected
