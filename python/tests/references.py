"""Functions of NumPy that implement the kernels, as docs/check.md describes their arguments."""

import inspect
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

Array = Any


def rotate(x: Array, cos: Array, sin: Array, rotary_dim: int, module: Any = np) -> Array:
    """Rotates the pairs (a, b) by halves, with arrays of a module such as torch."""
    half = rotary_dim // 2
    a, b, rest = x[..., :half], x[..., half:rotary_dim], x[..., rotary_dim:]
    cos, sin = cos[:, None], sin[:, None]
    return module.concatenate([a * cos - b * sin, a * sin + b * cos, rest], -1)


def rotate_f64(x: Array, cos: Array, sin: Array, rotary_dim: int) -> Array:
    return rotate(x.astype("f8"), cos.astype("f8"), sin.astype("f8"), rotary_dim).astype(x.dtype)


def rotate_interleaved(x: Array, cos: Array, sin: Array, rotary_dim: int) -> Array:
    out = x.copy()
    a, b = x[..., 0:rotary_dim:2], x[..., 1:rotary_dim:2]
    out[..., 0:rotary_dim:2] = a * cos[:, None] - b * sin[:, None]
    out[..., 1:rotary_dim:2] = a * sin[:, None] + b * cos[:, None]
    return out


def norm_and_rotate(
    x: Array, cos: Array, sin: Array, weight: Array, rotary_dim: int, rotary_offset: int, epsilon: float,
    weight_offset: float, across_heads: bool,
) -> Array:  # fmt: skip
    wide = x.astype("f8")
    mean = (wide * wide).mean(axis=(1, 2) if across_heads else 2, keepdims=True)
    normal = wide / np.sqrt(mean + epsilon) * (weight.astype("f8") + weight_offset)
    before, after = normal[..., :rotary_offset], normal[..., rotary_offset:]
    rotated = rotate(after, cos.astype("f8"), sin.astype("f8"), rotary_dim)
    return np.concatenate([before, rotated], -1).astype(x.dtype)


def table(
    positions: Array, inv_freq: Array, attention_factor: float, axis: Optional[Array] = None
) -> Tuple[Array, ...]:
    """Forms angles in the type of inv_freq. Cosines are those of f64, as NumPy's in f32 are off by more than 1 ulp."""
    positions_by_pair = positions[:, None] if axis is None else positions[axis].T
    angles = (positions_by_pair.astype(inv_freq.dtype) * inv_freq).astype("f8")
    tables = np.cos(angles), np.sin(angles)
    if inv_freq.dtype == np.float32:
        return tuple(table.astype("f4") * np.float32(attention_factor) for table in tables)
    return tuple((table * attention_factor).astype("f4") for table in tables)


def sinusoidal(positions: Array, inv_freq: Array, dim: int, layout: str, scale: float) -> Array:
    cos, sin = table(positions, inv_freq, scale)
    if layout == "interleaved":
        return np.stack([sin, cos], -1).reshape(len(positions), 2 * len(inv_freq))[:, :dim]
    first, second = (sin, cos) if layout == "sin_cos" else (cos, sin)
    odd_column = np.zeros((len(positions), dim % 2), "f4")
    return np.concatenate([first[:, : dim // 2], second[:, : dim // 2], odd_column], -1)


def learned_grad(x: Array, positions: Array, shape: Tuple[int, ...], init: Optional[Array] = None) -> Array:
    out = np.zeros(shape, "f4") if init is None else init.copy()
    np.add.at(out, positions, x)
    return out


def _distance(queries: int, keys: int, query_offset: int) -> Array:
    return np.arange(queries)[:, None] + query_offset - np.arange(keys)


def alibi(slopes: Array, batch: int, queries: int, keys: int, query_offset: int, causal: bool) -> Array:
    distance = _distance(queries, keys, query_offset)
    bias = slopes[..., None, None] * -np.abs(distance).astype("f4") + np.float32(0)
    bias = np.where(causal & (distance < 0), np.float32(-np.inf), bias)
    return np.broadcast_to(bias, (batch, *bias.shape[-3:]))


def t5_bias(
    table: Array, queries: int, keys: int, query_offset: int, num_buckets: int, max_distance: int, bidirectional: bool
) -> Array:
    distance, buckets = _distance(queries, keys, query_offset), num_buckets // 2 if bidirectional else num_buckets
    base = np.where(distance < 0, buckets, 0) if bidirectional else 0
    distance = np.abs(distance) if bidirectional else np.maximum(distance, 0)
    exact = buckets // 2
    with np.errstate(divide="ignore"):
        ratio = np.log(np.float32(distance) / np.float32(exact)) / np.float32(np.log(max_distance / exact))
    far = exact + (ratio * np.float32(buckets - exact)).clip(0).astype(int)
    bucket = base + np.where(distance < exact, distance, np.minimum(far, buckets - 1))
    return table.T[:, bucket][None]


def distance_bias(values: Array, queries: int, keys: int, query_offset: int, first: int) -> Array:
    return values[:, _distance(queries, keys, query_offset) - first][None]


def window_bias(table: Array, index: Array) -> Array:
    return table.T[:, index][None]


def relative_bias(
    index: Array, queries: int, keys: int, scale: float, c2p: Optional[Array] = None, p2c: Optional[Array] = None
) -> Array:
    columns = index[_distance(queries, keys, 0) + keys - 1]
    terms = [] if c2p is None else [np.take_along_axis(c2p, columns[None, None], -1)]
    if p2c is not None:
        terms.append(np.take_along_axis(p2c, columns.T[None, None], -1).swapaxes(2, 3))
    total = np.zeros(1)
    for term in terms:  # the product and the sum are rounded once
        total = (term.astype("f8") * np.float32(scale) + total).astype("f4")
    return total


def relative_sum(x: Array, index: Array, shape: Tuple[int, ...]) -> Array:
    queries, keys = x.shape[2:]
    out, columns = np.zeros(shape, "f4"), index[_distance(queries, keys, 0) + keys - 1]
    for query in range(queries):
        for key in range(keys):
            out[:, :, query, columns[query, key]] += x[:, :, query, key]
    return out


def _added(function: Callable[..., Array]) -> Callable[..., Array]:
    """Returns the function that adds the result of another one to scaled scores x."""

    def adds(x: Array, *arrays: Array, x_scale: float, shape: Tuple[int, ...], **parameters: Any) -> Array:
        parameters.update(batch=shape[0], queries=shape[-2], keys=shape[-1])
        names = inspect.signature(function).parameters
        bias = function(*arrays, **{name: value for name, value in parameters.items() if name in names})
        return (x.astype("f8") * np.float32(x_scale) + bias).astype("f4")

    return adds


FUNCTIONS: Dict[str, Callable[..., Any]] = {
    "rope_half": rotate, "rope_interleaved": rotate_interleaved, "rope_qk_norm": norm_and_rotate, "rope_table": table,
    "sinusoidal": sinusoidal, "sinusoidal_add": _added(sinusoidal),
    "learned_add": lambda x, positions, table, x_scale: (x.astype("f8") * x_scale + table[positions]).astype("f4"),
    "learned_grad": learned_grad, "alibi": alibi, "t5_bias": t5_bias, "distance_bias": distance_bias,
    "window_bias": window_bias, "relative_bias": relative_bias, "relative_sum": relative_sum,
    "alibi_add": _added(alibi), "t5_bias_add": _added(t5_bias), "distance_bias_add": _added(distance_bias),
    "window_bias_add": _added(window_bias), "relative_bias_add": _added(relative_bias),
}  # fmt: skip
