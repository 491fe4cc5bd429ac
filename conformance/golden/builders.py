"""Checks the library's builders of indices, slopes and tables against their definitions, evaluated another way.

A row of builders.txt stands for one call or many. A call is rejected without a write, or each element is right: a whole
number, or the f32 nearest to a formula by MPFR.
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

from exact import mix64, nearest_f32, two_pi
from problem import Disagreement, library
from published import number, read_rows
from reference import bucket, deberta_column, slope, window_row

LIST, ROOM, BEYOND, CANARY = 1000, 1 << 19, 64, 0x7F
STATUS = {0: "", 1: "ARGUMENT", 2: "SHAPE", 8: "PARAMETER", 9: "POSITION"}  # enum posenc_status

Element = Callable[[List[Any], int, int], Any]
INDICES = "indices"  # int32
BY_DIFFERENCE = "by difference"  # int32, element row - column + columns - 1 alone, of columns as keys
VALUES = "values"  # f32


class Builder(NamedTuple):
    """A function of the library, the types of its arguments, the shape and the elements of its result."""

    function: str
    arguments: List[str]  # i64, u64, f64, bool, or a list: bytes or floats
    shape: Callable[[List[Any]], Tuple[int, int]]
    makes: str
    element: Element


BUILDERS: Dict[str, Builder] = {}


def builder(
    function: str, arguments: str, shape: Callable[[List[Any]], Tuple[int, int]], makes: str
) -> Callable[[Element], Element]:
    """Registers a function that makes an element from the arguments, row and column, for a builder."""

    def register(element: Element) -> Element:
        BUILDERS[element.__name__] = Builder(function, arguments.split(), shape, makes, element)
        return element

    return register


# ---- Elements by their definitions ----


@builder("padding_positions", "i64 i64 bytes i64", lambda a: (a[0], a[1]), INDICES)
def padding(a: List[Any], row: int, column: int) -> int:
    """padding_idx for padding, else the tokens so far after it."""
    tokens, mask, first = a[1], a[2], a[3]
    own = [mask[row * tokens + t] != 0 for t in range(column + 1)]
    return int(first + sum(own) if own[-1] else first)


@builder("swin_index", "i64 i64", lambda a: (a[0] * a[1], a[0] * a[1]), INDICES)
def swin(a: List[Any], query: int, key: int) -> int:
    """The row of a window's table."""
    return window_row(a[0], a[1], False, query, key)


@builder("beit_index", "i64 i64", lambda a: (1 + a[0] * a[1], 1 + a[0] * a[1]), INDICES)
def beit(a: List[Any], query: int, key: int) -> int:
    """The same with a class token."""
    return window_row(a[0], a[1], True, query, key)


@builder("shaw_index", "i64 i64 i64 i64", lambda a: (a[0], a[1]), BY_DIFFERENCE)
def shaw(a: List[Any], query: int, key: int) -> int:
    """Distances up to the farthest on both sides."""
    return int(max(-a[3], min(key - query - a[2], a[3])) + a[3])


@builder("transformer_xl_index", "i64 i64", lambda a: (a[0], a[1]), BY_DIFFERENCE)
def transformer_xl(a: List[Any], query: int, key: int) -> int:
    """The shift itself, of a column of zeros before the others: the rows are read as keys + 1 rows of queries.

    The first of these is dropped. Which column comes to lie there; of later keys the last.
    """
    queries, keys = a[:2]
    padded = queries + query * keys + key
    return int(padded % (keys + 1) - 1 if key <= query + keys - queries else keys - 1)


@builder("deberta_index", "i64 i64 i64 i64 i64", lambda a: (a[0], a[1]), BY_DIFFERENCE)
def deberta(a: List[Any], query: int, key: int) -> int:
    """The column of terms of a distance."""
    return deberta_column(query + a[2] - key, a[3], a[4])


@builder("t5_thresholds", "i64 i64 bool", lambda a: (1, a[0] // 2 if a[2] else a[0]), INDICES)
def t5(a: List[Any], _: int, wanted: int) -> int:
    """The least distance whose bucket is that, or a later one: max_distance has the last."""
    below, at = -1, a[1]
    while at - below > 1:
        middle = (at + below) // 2
        if bucket(middle, a[0], a[1], a[2]) < wanted:
            below = middle
        else:
            at = middle
    return int(at)


@builder("alibi_slopes", "i64 f64", lambda a: (1, a[0]), VALUES)
def alibi(a: List[Any], _: int, head: int) -> float:
    """The slope of a head."""
    return slope(a[0], a[1], head)


@builder("kerple_log", "i64 floats floats i64 i64", lambda a: (a[0], a[4]), VALUES)
def kerple_log(a: List[Any], head: int, column: int) -> mpfr:
    """-p log(1 + a |distance|)"""
    return -gmpy2.log1p(mpfr(abs(a[3] + column)) * a[2][head]) * a[1][head]


@builder("kerple_power", "i64 floats floats i64 i64", lambda a: (a[0], a[4]), VALUES)
def kerple_power(a: List[Any], head: int, column: int) -> mpfr:
    """-a |distance|^p"""
    return -(mpfr(abs(a[3] + column)) ** mpfr(a[1][head])) * a[2][head]


@lru_cache(maxsize=None)
def cosines(dim: int, distance: int) -> mpfr:
    """The phase of a distance for each pair, as such: the sum of cosines less dim/2."""
    omegas = (mpfr(10000) ** (mpfr(-2 * i) / dim) for i in range(dim // 2))
    return sum((gmpy2.cos(omega * distance) for omega in omegas), mpfr(-dim // 2))


@builder("sandwich", "i64 i64 floats i64 i64", lambda a: (a[1], a[4]), VALUES)
def sandwich(a: List[Any], head: int, column: int) -> mpfr:
    """The cosines of a distance times a head's scale."""
    return cosines(a[0], a[3] + column) * a[2][head]


@builder("normal", "u64 i64 i64 i64 f64", lambda a: (a[2], a[3]), VALUES)
def normal(a: List[Any], row: int, column: int) -> mpfr:
    """The recipe of normal.c of the library; a value that rounds to 0 is 0 without a sign."""
    start = mix64(mix64(a[0], 0) + a[1] + row, 0)
    uniform, turn = mix64(start, 2 * (column // 2)), mix64(start, 2 * (column // 2) + 1)
    radius = gmpy2.sqrt(-2 * gmpy2.log(mpfr((uniform >> 11) + 1) / (1 << 53)))
    angle = two_pi() * turn / (1 << 64)
    value = radius * (gmpy2.sin(angle) if column % 2 else gmpy2.cos(angle)) * a[4]
    return value if nearest_f32(value) else mpfr(0)


# ---- Calls ----


def read(kind: str, text: str) -> Tuple[Any, Any]:
    """Returns an argument for C and the same for element functions; a list begins again where it ends."""
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
    """Returns items as often as a list of arguments is long."""
    return itertools.islice(itertools.cycle(items), LIST)


def elements(builder: Builder, arguments: List[Any]) -> Iterator[Tuple[int, float]]:
    """Yields the place and the right value of each element; by difference, rows repeat each other."""
    rows, columns = builder.shape(arguments)
    for column in range(columns):
        for row in range(rows):
            at = row - column + columns - 1 if builder.makes == BY_DIFFERENCE else row * columns + column
            exact = builder.element(arguments, row, column)
            yield at, (nearest_f32(exact) if exact else 0.0) if builder.makes == VALUES else exact


def wrong_call(builder: Builder, words: Sequence[str], rejection: str, published: str) -> str:
    """Makes a call and returns its error, or "": a wrong status, a wrong element, or a write beyond them."""
    taken = [read(kind, word) for kind, word in zip(builder.arguments, words)]
    room = (ctypes.c_uint8 * (4 * ROOM))()
    ctypes.memset(room, CANARY, 4 * ROOM)
    out = room if words[-1] != "NULL" else None
    status = library()[f"posenc_{builder.function}"](*(argument for argument, _ in taken), out)
    if STATUS.get(status) != rejection:
        return f"status {status}, not '{rejection}'"
    got = memoryview(room).cast("B").cast("f" if builder.makes == VALUES else "i")
    written = 0
    for at, want in elements(builder, [element for _, element in taken]) if not rejection else ():
        written = max(written, at + 1)
        if got[at] != want or math.copysign(1, got[at]) != math.copysign(1, want):
            return f"element {at} is {got[at]!r}, not {want!r}"
    if bytes(room[4 * written : 4 * (written + BEYOND)]) != bytes([CANARY]) * 4 * BEYOND:
        return f"more than {written} elements are written"
    if any(got[k] != int(figure) for k, figure in enumerate(published.split())):
        return f"published as {published}"
    return ""


def check_row(row: List[str]) -> int:
    """Makes the calls of a row and returns their number: a/b stands for a call with a and one with b."""
    name, arguments, rejection, published, _ = row
    calls = list(itertools.product(*(word.split("/") for word in arguments.split())))
    for words in calls:
        wrong = wrong_call(BUILDERS[name], words, rejection, published)
        if wrong:
            raise Disagreement(f"{name}({' '.join(words)[:200]}): {wrong}")
    return len(calls)


# ---- Initial values as a whole ----


def normal_table(first: int, rows: int, dim: int) -> "ctypes.Array[ctypes.c_float]":
    """Returns rows of initial values of variance 1."""
    table = (ctypes.c_float * (rows * dim))()
    status = library().posenc_normal(c_uint64(7), c_int64(first), c_int64(rows), c_int64(dim), c_double(1), table)
    return table if status == 0 else (ctypes.c_float * 0)()


def has_normal_moments(values: Sequence[float], lag: int) -> bool:
    """Returns true if values have the moments of independent normal ones.

    Mean, variance, fourth moment and the correlation with the value `lag` on are within 5 standard deviations.
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
    """Checks a table of the size that models have, and calls for parts of it."""
    rows, dim, part = 1024, 768, 3
    table = list(normal_table(0, rows, dim))
    for lag in (1, 2, dim):
        if not has_normal_moments(table, lag):
            raise Disagreement(f"normal: values {lag} apart are not as independent normal ones")
    for first in range(0, rows - part + 1, 7):
        for columns in (39, 40):
            own = [table[(first + r) * dim + c] for r in range(part) for c in range(columns)]
            if list(normal_table(first, part, columns)) != own:
                raise Disagreement(f"normal: rows from {first} on are not those of the whole")


def check(pool: Pool) -> str:
    """Checks the builders, and returns the number of calls in words."""
    check_normal()
    calls = list(pool.imap(check_row, read_rows("builders.txt")))
    return f"builders = MPFR: {sum(calls)} calls"
