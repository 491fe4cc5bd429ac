"""Slopes, buckets, indices and values that kernels take: posenc.alibi_slopes(8) returns [0.5, 0.25, ...].

Each result is a new NumPy array, which a function of the library of the same name fills.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Sequence, Tuple

from . import _core
from .arrays import Error, empty_numpy

if TYPE_CHECKING:
    import numpy


class T5Buckets(NamedTuple):
    """Buckets of T5, from t5_buckets(). thresholds: int32, the least distance of each bucket."""

    num_buckets: int
    bidirectional: bool
    thresholds: "numpy.ndarray[Any, Any]"


def _build(
    builder: str, shape: Sequence[int], dtype: str, *integers: int, number: float = 0.0, inputs: Tuple[Any, ...] = ()
) -> "numpy.ndarray[Any, Any]":
    """Returns a new array that posenc_BUILDER() fills. The arguments are in the order of the C function."""
    array = empty_numpy(shape, dtype)
    _core.build(builder, integers, number, inputs, array)
    return array


def alibi_slopes(n_heads: int, alibi_bias_max: float = 8.0) -> "numpy.ndarray[Any, Any]":
    """Returns the slopes of ALiBi, float32 [n_heads]. Source: Press et al. 2108.12409."""
    return _build("alibi_slopes", [n_heads], "float32", n_heads, number=alibi_bias_max)


def t5_buckets(num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True) -> T5Buckets:
    """Returns the buckets of T5: bidirectional for an encoder. Source: Raffel et al. 1910.10683."""
    n = num_buckets // 2 if bidirectional else num_buckets
    thresholds = _build("t5_buckets_compute", [n], "int32", num_buckets, max_distance, bool(bidirectional))
    return T5Buckets(num_buckets, bidirectional, thresholds)


def kerple_log(p: Any, a: Any, first: int, n: int) -> "numpy.ndarray[Any, Any]":
    """Returns -p ln(1 + a |distance|), float32 [heads, n], for the distances first, first + 1, ...

    p and a are float32 [heads], above 0. Source: Chi et al. 2205.09921.
    """
    return _build("kerple_log", [len(p), n], "float32", len(p), first, n, inputs=_by_head(p, a))


def kerple_power(p: Any, a: Any, first: int, n: int) -> "numpy.ndarray[Any, Any]":
    """Returns -a |distance|^p, as kerple_log() does. p is at most 2."""
    return _build("kerple_power", [len(p), n], "float32", len(p), first, n, inputs=_by_head(p, a))


def sandwich(dim: int, scale: Any, first: int, n: int) -> "numpy.ndarray[Any, Any]":
    """Returns the biases of Sandwich, float32 [heads, n], for the distances first, first + 1, ...

    scale is float32 [heads]: heads / (8 h) with h = 1, 2, ... in the paper. Source: Chi et al. 2212.10356.
    """
    return _build("sandwich", [len(scale), n], "float32", dim, len(scale), first, n, inputs=_by_head(scale))


def _by_head(*numbers: Any) -> "Tuple[numpy.ndarray[Any, Any], ...]":
    """Returns dense float32 arrays of one length: a number for each head."""
    import numpy

    arrays = tuple(numpy.ascontiguousarray(values, "float32") for values in numbers)
    for array in arrays:
        if array.shape != (len(arrays[0]),):
            raise Error(f"shape of numbers by head is {array.shape}, expected ({len(arrays[0])},)", "shape")
    return arrays


def swin_index(height: int, width: int) -> "numpy.ndarray[Any, Any]":
    """Returns the row of a table for each query and key of a window, int32 [n, n] with n = height width.

    The table has (2 height - 1)(2 width - 1) rows. Source: Liu et al. 2103.14030.
    """
    return _build("swin_index", [height * width] * 2, "int32", height, width)


def beit_index(height: int, width: int) -> "numpy.ndarray[Any, Any]":
    """Returns what swin_index() does, with a class token first, and three more rows. Source: Bao et al. 2106.08254."""
    return _build("beit_index", [1 + height * width] * 2, "int32", height, width)


def shaw_index(queries: int, keys: int, max_distance: int, query_offset: int = 0) -> "numpy.ndarray[Any, Any]":
    """Returns the column of each relative position, int32 [queries + keys - 1]: 2 max_distance + 1 columns.

    Source: Shaw et al. 1803.02155.
    """
    return _build("shaw_index", [queries + keys - 1], "int32", queries, keys, query_offset, max_distance)


def transformer_xl_index(queries: int, keys: int) -> "numpy.ndarray[Any, Any]":
    """Returns the column of each relative position, int32 [queries + keys - 1]: `keys` columns, distance 0 last.

    Source: Dai et al. 1901.02860.
    """
    return _build("transformer_xl_index", [queries + keys - 1], "int32", queries, keys)


def deberta_index(
    queries: int, keys: int, max_distance: int, position_buckets: int = 0, query_offset: int = 0
) -> "numpy.ndarray[Any, Any]":
    """Returns the column of each relative position, int32 [queries + keys - 1]: 2 span columns.

    span is position_buckets, or max_distance if that is 0. Source: He et al. 2006.03654.
    """
    integers = queries, keys, query_offset, position_buckets, max_distance
    return _build("deberta_index", [queries + keys - 1], "int32", *integers)


def padding_positions(mask: Any, padding_idx: int) -> "numpy.ndarray[Any, Any]":
    """Returns the positions of tokens beside padding, int32 like `mask` [batch, tokens], which is 0 at padding.

    A token has padding_idx plus the number of tokens so far, itself included. Padding has padding_idx.
    """
    import numpy

    marks = numpy.ascontiguousarray(numpy.asarray(mask) != 0).view("uint8")
    batch, tokens = marks.shape
    return _build("padding_positions", [batch, tokens], "int32", batch, tokens, padding_idx, inputs=(marks,))


def learned_fill_normal(
    seed: int, rows: int, dim: int, sigma: float = 0.02, first_row: int = 0
) -> "numpy.ndarray[Any, Any]":
    """Returns initial values of a learned table, float32 [rows, dim], from N(0, sigma). The seed determines the bits."""
    return _build("learned_fill_normal", [rows, dim], "float32", seed, first_row, rows, dim, number=sigma)
