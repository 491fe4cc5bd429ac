#!/usr/bin/env python3
"""Claims of docs/encodings.md, docs/misconceptions.md and the course that are numbers of attention or of whole tables.

    docs/claims.py [NAME...]     prints "NAME pass" or "NAME fail: why"; all without a name

Each function without an underscore is one claim, its name with dashes.  Tables come from the program: $POSENC, or
build/posenc.  Claims about one kernel are properties: posenc verify --case '*/properties/NAME'.
"""
import csv
import math
import os
import subprocess
import sys
from typing import Callable, Dict, List, Tuple

Matrix = List[List[float]]
POSENC = os.environ.get("POSENC", "build/posenc")
CLOSE = 2.0**-22  # how far an entry of a table may be from real mathematics
DOG: List[Matrix] = [[[1, 0], [1, 1], [0, 1]], [[0, 1], [1, 1], [1, 0]]]  # "dog bites man", "man bites dog"
DOG_AT = (0, 2)


def _table(problem: str, *words: str) -> Matrix:
    """Returns the rows that a kernel makes of a problem, without the names and the positions."""
    command = [POSENC, "table", "--problem", problem, *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    return [[float(value) for value in row[1:]] for row in list(csv.reader(done.stdout.splitlines()))[1:]]


def _pairs(fields: str, *words: str) -> List[List[complex]]:
    """Returns cos + i sin of each pair of each row of rope_table."""
    rows = _table(f"rope_table {fields}", *words)
    return [[complex(row[i], row[i + len(row) // 2]) for i in range(len(row) // 2)] for row in rows]


def _product(a: List[complex], b: List[complex]) -> float:
    return sum((x * y.conjugate()).real for x, y in zip(a, b))


def _attend(scores: Matrix, values: Matrix) -> Matrix:
    """Returns the outputs of attention: averages of the values, weighted by the softmax of each row of scores."""
    weights = [[math.exp(score) for score in row] for row in scores]
    return [[sum(w * v[c] for w, v in zip(row, values)) / sum(row) for c in range(len(values[0]))] for row in weights]


def _scores(x: Matrix) -> Matrix:
    return [[sum(a * b for a, b in zip(q, k)) / math.sqrt(len(q)) for k in x] for q in x]


def _rotate(x: Matrix) -> Matrix:
    pairs = _pairs(f"rotary_dim={len(x[0])} tokens={len(x)}")
    turned = [[complex(row[2 * i], row[2 * i + 1]) * z for i, z in enumerate(angles)] for row, angles in zip(x, pairs)]
    return [[part for z in row for part in (z.real, z.imag)] for row in turned]


def _add(x: Matrix, y: Matrix) -> Matrix:
    return [[a + b for a, b in zip(row, other)] for row, other in zip(x, y)]


def _sinusoids(x: Matrix) -> Matrix:
    return _add(x, _table(f"sinusoidal dim={len(x[0])} tokens={len(x)}"))


def _alibi(n: int, causal: bool = False) -> Matrix:
    """Returns the biases of the first of 8 heads, whose slope is 1/2."""
    return _table(f"alibi heads=8 queries={n} keys={n} causal={str(causal).lower()}")[:n]


def _near(got: float, want: float, within: float, what: str) -> None:
    assert abs(got - want) <= within, f"{what} is {got:.6g}, not {want:.6g}"


def breaks_permutation_equivariance() -> None:
    """Attention alone is equivariant; rotations, sums and biases break that."""
    x = [[math.sin(1.0 + 7.0 * i * i + 3.0 * c) for c in range(8)] for i in range(6)]
    ways: List[Tuple[Callable[[Matrix], Matrix], bool]] = [
        (lambda x: _attend(_scores(x), x), False),
        (lambda x: _attend(_scores(_rotate(x)), x), True),
        (lambda x: _attend(_scores(_sinusoids(x)), _sinusoids(x)), True),
        (lambda x: _attend(_add(_scores(x), _alibi(len(x))), x), True)]
    for attend, seen in ways:
        turned, same = attend(x[1:] + x[:1]), attend(x)
        most = max(abs(a - b) for row, other in zip(turned, same[1:] + same[:1]) for a, b in zip(row, other))
        assert (most > 1e-3) if seen else (most < 1e-12), f"outputs differ by {most:.3g}"


def dog_bites_man() -> None:
    """The dog receives the same without an encoding, and with symmetric ALiBi."""
    ways: List[Tuple[Callable[[Matrix], Matrix], Matrix]] = [
        (lambda x: _attend(_scores(x), x), [[0.802, 0.599], [0.802, 0.599]]),
        (lambda x: _attend(_scores(_sinusoids(x)), _sinusoids(x)), [[1.499, 1.263], [1.841, 0.289]]),
        (lambda x: _attend(_scores(_rotate(x)), x), [[0.844, 0.397], [0.711, 0.692]]),
        (lambda x: _attend(_add(_scores(x), _alibi(3)), x), [[0.899, 0.441], [0.899, 0.441]]),
        (lambda x: _attend(_add(_scores(x), _alibi(3, True)), x), [[1.0, 0.0], [0.899, 0.441]])]
    for attend, dogs in ways:
        for x, at, dog in zip(DOG, DOG_AT, dogs):
            for got, want in zip(attend(x)[at], dog):
                _near(got, want, 0.5e-3, "the dog")


def cat_at_1_and_4() -> None:
    """One word at two positions becomes two vectors."""
    cat, table = [1.0, 0.5, -0.5, 0.2], _table("sinusoidal dim=4 tokens=5")
    for at, wanted in ((1, [1.8415, 1.0403, -0.49, 1.2]), (4, [0.2432, -0.1536, -0.46, 1.1992])):
        for word, sine, want in zip(cat, table[at], wanted):
            _near(word + sine, want, 0.5e-4 + CLOSE, f"cat at {at}")


def sat_the_cat() -> None:
    """A permutation keeps two of six biases in "The cat sat", and a shift keeps all."""
    bias = _alibi(8)
    signed = _table("t5_bias heads=1 queries=8 keys=8 num_buckets=32 max_distance=128 bidirectional=true")
    for table in (bias, signed):
        for at, kept in (((1, 2, 0), 2), ((5, 6, 7), 6)):
            same = sum(table[at[a]][at[b]] == table[a][b] for a in range(3) for b in range(3) if a != b)
            assert same == kept, f"{same} of 6 biases are kept, not {kept}"


def reversal_is_unseen() -> None:
    """Biases by |i - j| are those of the reversed sentence; with a causal mask they are not."""
    for causal, want in ((False, 0), (True, 56)):
        bias = _alibi(8, causal)
        changed = sum(bias[i][j] != bias[7 - i][7 - j] for i in range(8) for j in range(8))
        assert changed == want, f"causal {causal}: {changed} of 64 biases changed"


def one_product_is_not_enough() -> None:
    """sin p sin (p + 1) depends on p; the sum over the pair does not."""
    pairs = [row[0] for row in _pairs("rotary_dim=128 tokens=3")]
    _near(pairs[0].imag * pairs[1].imag, 0.0, 0.0, "sin 0 sin 1")
    _near(pairs[1].imag * pairs[2].imag, 0.7651474012342926, 2 * CLOSE, "sin 1 sin 2")
    for a, b in zip(pairs, pairs[1:]):
        _near((a * b.conjugate()).real, math.cos(1.0), 3 * CLOSE, "the sum over the pair")


def product_depends_on_distance() -> None:
    """PE(p) . PE(p + k) is the same for each p, and |PE|^2 is the number of pairs."""
    rows = _pairs("rotary_dim=64 tokens=40")
    for k in range(12):
        for p in range(len(rows) - k):
            _near(_product(rows[p], rows[p + k]), _product(rows[0], rows[k]), 6 * 32 * CLOSE, f"offset {k}")
    _near(_product(rows[7], rows[7]), 32.0, 3 * 32 * CLOSE, "the square of a norm")


def nearer_is_not_always_alike() -> None:
    """In 128 dimensions offset 12 is more similar than offset 11."""
    rows = _pairs("rotary_dim=128 tokens=13")
    _near(_product(rows[0], rows[11]) / 64, 0.6616, 0.5e-4, "offset 11")
    _near(_product(rows[0], rows[12]) / 64, 0.6622, 0.5e-4, "offset 12")


def low_pairs_are_fast() -> None:
    """Each pair is slower than the one before; pair 63 of 64 turns once in 54 410.14 positions."""
    rows = _pairs("rotary_dim=128", "--positions", "1,27205,27206,54410,54411,62832")
    sines = [z.imag for z in rows[0]]
    assert all(a > b for a, b in zip(sines, sines[1:])), "a pair is no slower than the one before"
    assert [row[63].imag > 0 for row in rows] == [True, True, False, False, True, True], "pair 63 turns otherwise"
    assert rows[5][63].imag > 0.8, "2 pi 10000 is a turn of pair 63"


def rows_unique() -> None:
    """4096 positions have 4096 rows."""
    rows = _table("sinusoidal dim=64 tokens=4096")
    assert len({tuple(row) for row in rows}) == 4096, "two positions have the same row"


def d_model_4() -> None:
    """The rows of the paper's formula in four dimensions."""
    for p, row in enumerate(_table("sinusoidal dim=4 tokens=4")):
        for got, want in zip(row, (math.sin(p), math.cos(p), math.sin(p / 100), math.cos(p / 100))):
            _near(got, want, CLOSE * abs(want), f"row {p}")


def loudness() -> None:
    """The mean square of a table is 1/2, which is not its variance: the mean is not 0."""
    values = [value for row in _table("sinusoidal dim=64 tokens=32") for value in row]
    mean, square = sum(values) / len(values), sum(value * value for value in values) / len(values)
    _near(square, 0.5, 2 * CLOSE, "mean square")
    _near(mean, 0.411, 0.5e-3, "mean")
    _near(math.sqrt(square - mean * mean), 0.576, 0.5e-3, "standard deviation")


def axes_of_text() -> None:
    """The same position on all axes gives the bits of a table without axes."""
    plain = _table("rope_table rotary_dim=128 tokens=37")
    for layout in ("qwen2_vl", "qwen3_vl"):
        text = _table(f"rope_table rotary_dim=128 tokens=37 mrope_section=24,20,20 mrope_layout={layout}")
        assert text == plain, f"{layout}: text is rotated otherwise"


def distances_left() -> None:
    """bf16 leaves 641 of 2048 biases, and some are off by 2."""
    row = _table("alibi dtype=bf16 heads=8 queries=1 keys=2048 query_offset=2047")[0]
    assert len(set(row)) == 641, f"{len(set(row))} values are left"
    most = max(abs(value + 0.5 * (2047 - j)) for j, value in enumerate(row))
    _near(most, 2.0, 0.0, "the largest error")


def cosines_left() -> None:
    """In bf16 pair 63 of 64 stands still at 3315 of 4095 steps."""
    rows = _pairs("rotary_dim=128 tokens=4096 dtype=bf16")
    _near(sum(a[63] == b[63] for a, b in zip(rows, rows[1:])), 3315, 2, "steps at which pair 63 stands still")
    _near(min(abs(z) for row in rows for z in row), 0.9973, 0.5e-4, "the least norm of a pair")
    _near(max(abs(z) for row in rows for z in row), 1.0028, 0.5e-4, "the greatest norm of a pair")


def _claims() -> Dict[str, Callable[[], None]]:
    own = {name: value for name, value in globals().items() if getattr(value, "__module__", "") == __name__}
    return {name.replace("_", "-"): value for name, value in own.items() if name[0] != "_" and name != "main"}


def main(names: List[str]) -> int:
    """Prints a line for each claim; returns 1 if one is false."""
    claims, wrong = _claims(), 0
    for name in names or claims:
        if name not in claims:
            sys.exit(f"claims.py: error: no claim of this name (got '{name}'). Use one of {', '.join(claims)}.")
        try:
            claims[name]()
            print(name, "pass")
        except AssertionError as error:
            wrong += 1
            print(f"{name} fail: {error}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
