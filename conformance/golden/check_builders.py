"""Checks the library's builders of indices, slopes and tables (posenc_swin_index() and the like) by their definitions.

A row of builders.txt stands for one call or several. A call is rejected without a write, or each element is right: an
integer, or the f32 nearest to a formula by MPFR.
"""

import ctypes
import itertools
import math
from ctypes import c_double, c_int64, c_uint64
from functools import lru_cache
from multiprocessing.pool import Pool
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

import gmpy2
from gmpy2 import mpfr

from rounding import mix64, nearest_f32, two_pi
from problem import Disagreement, library
from check_published import number, read_rows
from reference import bucket, deberta_column, slope, window_row

LIST, ROOM = 1000, 1 << 19  # elements of an argument that is a list, and of a result at most
BEYOND, CANARY = 64, 0x7F  # elements after the result that must keep the bytes of the canary
STATUS = {0: "", 1: "ARGUMENT", 2: "SHAPE", 8: "PARAMETER", 9: "POSITION"}  # enum posenc_status

Element = Callable[[List[Any], int, int], Any]
# The kinds of results.
INDICES = "indices"  # int32 [rows, columns]
BY_DIFFERENCE = "by difference"  # int32, one for each query - key: element query - key + keys - 1
VALUES = "values"  # f32 [rows, columns]


class Builder(NamedTuple):
    """A function of the library and the definition of its result."""

    function: str  # posenc_NAME without posenc_
    arguments: List[str]  # their types: i64, u64, f64, bool, or a list of bytes or floats
    shape: Callable[[List[Any]], Tuple[int, int]]  # rows and columns of the result, from the arguments
    makes: str  # INDICES, BY_DIFFERENCE or VALUES
    element: Element  # the right element, from the arguments, row and column


BUILDERS: Dict[str, Builder] = {}  # by their name in builders.txt, such as swin


def builder(
    function: str, arguments: str, shape: Callable[[List[Any]], Tuple[int, int]], makes: str
) -> Callable[[Element], Element]:
    """Returns a decorator that registers a function as the definition of a builder's elements."""

    def register(element: Element) -> Element:
        BUILDERS[element.__name__] = Builder(function, arguments.split(), shape, makes, element)
        return element

    return register


# ---- Elements by their definitions ----


@builder("padding_positions", "i64 i64 bytes i64", lambda a: (a[0], a[1]), INDICES)
def padding(a: List[Any], row: int, column: int) -> int:
    """Returns padding_idx for padding, else padding_idx plus the number of tokens so far."""
    _, tokens, mask, padding_idx = a
    own = [mask[row * tokens + t] != 0 for t in range(column + 1)]
    return int(padding_idx + sum(own) if own[-1] else padding_idx)


@builder("swin_index", "i64 i64", lambda a: (a[0] * a[1], a[0] * a[1]), INDICES)
def swin(a: List[Any], query: int, key: int) -> int:
    """Returns the row of a window's table."""
    height, width = a
    return window_row(height, width, False, query, key)


@builder("beit_index", "i64 i64", lambda a: (1 + a[0] * a[1], 1 + a[0] * a[1]), INDICES)
def beit(a: List[Any], query: int, key: int) -> int:
    """Returns the row of a window's table with a class token."""
    height, width = a
    return window_row(height, width, True, query, key)


@builder("shaw_index", "i64 i64 i64 i64", lambda a: (a[0], a[1]), BY_DIFFERENCE)
def shaw(a: List[Any], query: int, key: int) -> int:
    """Returns the distance, clipped to max_distance on both sides, counted from 0."""
    _, _, query_offset, most = a
    return int(max(-most, min(key - query - query_offset, most)) + most)


@builder("transformer_xl_index", "i64 i64", lambda a: (a[0], a[1]), BY_DIFFERENCE)
def transformer_xl(a: List[Any], query: int, key: int) -> int:
    """Returns the column that Transformer-XL's relative shift moves to this place; the last for later keys.

    The shift puts a column of zeros before the others, reads the rows as keys + 1 rows of queries, and drops the first.
    """
    queries, keys = a
    padded = queries + query * keys + key
    return int(padded % (keys + 1) - 1 if key <= query + keys - queries else keys - 1)


@builder("deberta_index", "i64 i64 i64 i64 i64", lambda a: (a[0], a[1]), BY_DIFFERENCE)
def deberta(a: List[Any], query: int, key: int) -> int:
    """Returns DeBERTa's column of a distance."""
    _, _, query_offset, position_buckets, max_distance = a
    return deberta_column(query + query_offset - key, position_buckets, max_distance)


@builder("t5_buckets_compute", "i64 i64 bool", lambda a: (1, a[0] // 2 if a[2] else a[0]), INDICES)
def t5(a: List[Any], _: int, wanted: int) -> int:
    """Returns the least distance whose bucket is this one or later, by bisection: max_distance has the last."""
    num_buckets, max_distance, bidirectional = a
    below, least = -1, max_distance
    while least - below > 1:
        middle = (least + below) // 2
        if bucket(middle, num_buckets, max_distance, bidirectional) < wanted:
            below = middle
        else:
            least = middle
    return int(least)


@builder("alibi_slopes", "i64 f64", lambda a: (1, a[0]), VALUES)
def alibi(a: List[Any], _: int, head: int) -> float:
    """Returns the slope of a head."""
    heads, bias_max = a
    return slope(heads, bias_max, head)


@builder("kerple_log", "i64 floats floats i64 i64", lambda a: (a[0], a[4]), VALUES)
def kerple_log(a: List[Any], head: int, column: int) -> mpfr:
    """Returns -p log(1 + a |distance|)."""
    _, p, slopes, first, _ = a
    return -gmpy2.log1p(mpfr(abs(first + column)) * slopes[head]) * p[head]


@builder("kerple_power", "i64 floats floats i64 i64", lambda a: (a[0], a[4]), VALUES)
def kerple_power(a: List[Any], head: int, column: int) -> mpfr:
    """Returns -a |distance|^p."""
    _, p, slopes, first, _ = a
    return -(mpfr(abs(first + column)) ** mpfr(p[head])) * slopes[head]


@lru_cache(maxsize=None)
def cosines(dim: int, distance: int) -> mpfr:
    """Returns the sum over all pairs of cos(omega distance) - 1."""
    omegas = (mpfr(10000) ** (mpfr(-2 * i) / dim) for i in range(dim // 2))
    return sum((gmpy2.cos(omega * distance) for omega in omegas), mpfr(-dim // 2))


@builder("sandwich", "i64 i64 floats i64 i64", lambda a: (a[1], a[4]), VALUES)
def sandwich(a: List[Any], head: int, column: int) -> mpfr:
    """Returns cosines() of a distance times the scale of a head."""
    dim, _, scales, first, _ = a
    return cosines(dim, first + column) * scales[head]


@builder("learned_fill_normal", "u64 i64 i64 i64 f64", lambda a: (a[2], a[3]), VALUES)
def normal(a: List[Any], row: int, column: int) -> mpfr:
    """Returns a normal value by the Box-Muller recipe of normal.c of the library; one that rounds to 0 is +0."""
    seed, first_row, _, _, sigma = a
    start = mix64(mix64(seed, 0) + first_row + row, 0)
    uniform, turn = mix64(start, 2 * (column // 2)), mix64(start, 2 * (column // 2) + 1)
    radius = gmpy2.sqrt(-2 * gmpy2.log(mpfr((uniform >> 11) + 1) / (1 << 53)))
    angle = two_pi() * turn / (1 << 64)
    value = radius * (gmpy2.sin(angle) if column % 2 else gmpy2.cos(angle)) * sigma
    return value if nearest_f32(value) else mpfr(0)


# ---- Calls ----


def read_argument(kind: str, text: str) -> Tuple[Any, Any]:
    """Returns an argument for C and for element functions; a short list is repeated."""
    if kind in ("bytes", "floats") and text == "NULL":
        return None, None
    if kind == "bytes":
        values = (ctypes.c_uint8 * LIST)(*repeated(map(int, text.split(","))))
        return values, list(values)
    if kind == "floats":
        reals = (ctypes.c_float * LIST)(*repeated(map(number, text.split(","))))
        return reals, list(reals)
    if kind == "f64":
        return c_double(number(text)), number(text)
    value = int(text, 0)
    if kind == "bool":
        return ctypes.c_bool(bool(value)), value
    return (c_int64 if kind == "i64" else c_uint64)(value), value


def repeated(items: Iterable[Any]) -> Iterable[Any]:
    """Repeats items to LIST elements."""
    return itertools.islice(itertools.cycle(items), LIST)


def elements(builder: Builder, arguments: List[Any]) -> Iterator[Tuple[int, float]]:
    """Yields the index and the right value of each element; for BY_DIFFERENCE many times the same."""
    rows, columns = builder.shape(arguments)
    for column in range(columns):
        for row in range(rows):
            at = row - column + columns - 1 if builder.makes == BY_DIFFERENCE else row * columns + column
            exact = builder.element(arguments, row, column)
            yield at, (nearest_f32(exact) if exact else 0.0) if builder.makes == VALUES else exact


def call_error(builder: Builder, words: Sequence[str], rejection: str, published: str) -> str:
    """Makes a call and returns its error or "": a wrong status, a wrong element, or a write past the result."""
    read = [read_argument(kind, word) for kind, word in zip(builder.arguments, words)]
    room = (ctypes.c_uint8 * (4 * ROOM))()
    ctypes.memset(room, CANARY, 4 * ROOM)
    out = room if words[-1] != "NULL" else None
    filled = [(ctypes.c_uint8 * 64)()] if builder.function == "t5_buckets_compute" else []  # struct posenc_t5_buckets
    status = library()[f"posenc_{builder.function}"](*(argument for argument, _ in read), out, *filled, None)
    if STATUS.get(status) != rejection:
        return f"status {status}, not '{rejection}'"
    got = memoryview(room).cast("B").cast("f" if builder.makes == VALUES else "i")
    written = 0
    for at, want in elements(builder, [element for _, element in read]) if not rejection else ():
        written = max(written, at + 1)
        if got[at] != want or math.copysign(1, got[at]) != math.copysign(1, want):
            return f"element {at} is {got[at]!r}, not {want!r}"
    if bytes(room[4 * written : 4 * (written + BEYOND)]) != bytes([CANARY]) * 4 * BEYOND:
        return f"more than {written} elements are written"
    if any(got[k] != int(figure) for k, figure in enumerate(published.split())):
        return f"published as {published}"
    return ""


def check_row(row: List[str]) -> int:
    """Checks the calls of a row and returns their number; a/b stands for one call with a and one with b."""
    name, arguments, rejection, published, _ = row
    calls = list(itertools.product(*(word.split("/") for word in arguments.split())))
    for words in calls:
        error = call_error(BUILDERS[name], words, rejection, published)
        if error:
            raise Disagreement(f"{name}({' '.join(words)[:200]}): {error}")
    return len(calls)


# ---- Initial values as a whole ----


def has_normal_moments(values: Sequence[float], lag: int) -> bool:
    """Returns true if values look like independent normal ones of variance 1.

    Mean, variance, fourth moment and the correlation with the value `lag` later are within 5 standard deviations.
    """
    n = len(values)
    unit = 5 / math.sqrt(n)
    return (
        abs(sum(values) / n) < unit
        and abs(sum(x * x for x in values) / n - 1) < unit * math.sqrt(2)
        and abs(sum(x**4 for x in values) / n - 3) < unit * math.sqrt(96)
        and abs(sum(x * y for x, y in zip(values, values[lag:])) / n) < unit
    )


def check_normal() -> None:
    """Checks the statistics of the recipe of normal(), which the library and MPFR share."""
    rows, dim = 256, 128
    table = [float(normal([7, 0, rows, dim, 1], r, c)) for r in range(rows) for c in range(dim)]
    for lag in (1, 2, dim):
        if not has_normal_moments(table, lag):
            raise Disagreement(f"normal: values {lag} apart are not as independent normal ones")


def check(pool: Pool) -> str:
    """Checks all builders, and returns a sentence with the number of calls."""
    check_normal()
    calls = list(pool.imap(check_row, read_rows("builders.txt")))
    return f"builders = MPFR: {sum(calls)} calls"
