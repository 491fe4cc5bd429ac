"""Compares figures published elsewhere (published.txt) with the same figures by MPFR.

Each quantity of published.txt is a method of PublishedFigure. For example, the row "bucket | t5_bias ... | 7 = 7" calls
PublishedFigure("t5_bias ...", (7.0,)).bucket(), which has to return 7.
"""

import hashlib
import math
from array import array
from ctypes import c_double, c_float
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

from gmpy2 import mpfr

import reference
from check_arithmetic import call
from rounding import clamp
from freqs import Freqs
from problem import Disagreement, FreqsSpec, GoldenCase, Problem, little_endian, read_problem


@lru_cache(maxsize=1)
def fields_of(line: str) -> Dict[str, Any]:
    """Returns the fields of a problem. Figures in a row have the same."""
    return read_problem(line).fields


# Quantities of each pair. Their figure is the largest one.
OF_PAIRS = ("off_ramp", "off_truncated", "off_radians", "off_angle", "off_product")


class PublishedFigure:
    """A figure of a problem for arguments `at`, such as a position."""

    def __init__(self, line: str, at: Tuple[float, ...]) -> None:
        self.line = line
        self.at = at

    @property
    def fields(self) -> Dict[str, Any]:
        """The fields of the problem."""
        return fields_of(self.line)

    @property
    def spec(self) -> FreqsSpec:
        """The fields that determine its frequencies."""
        return FreqsSpec.from_fields(self.fields)

    def freqs(self, **changes: Any) -> Freqs:
        """Returns the frequencies of the problem, or those with changed fields."""
        return reference.freqs_of(replace(self.spec, **changes))

    def compute(self, name: str) -> float:
        """Returns a quantity by its name."""
        quantity = getattr(self, name)
        if name in OF_PAIRS:
            return max(float(quantity(i)) for i in range(self.spec.n_pairs))
        return float(quantity())

    # ---- Quantities of a pair, by their names in published.txt ----

    def off_ramp(self, i: int) -> float:
        """Returns the distance of YaRN's ramp from a linear one between the pairs `at`."""
        ratio = float(self.freqs().omega[i] / self.freqs(scaling="none").omega[i])
        ramp = clamp((i - self.at[0]) / (self.at[1] - self.at[0]), 0, 1)
        return float(abs((1 - ratio) / (1 - 1 / self.spec.factor) - ramp))

    def off_truncated(self, i: int) -> float:
        """Returns the relative change of a frequency if YaRN's ramp ends at whole pairs."""
        return abs(float(self.freqs(truncate=True).omega[i]) / float(self.freqs().omega[i]) - 1)

    def off_radians(self, i: int) -> float:
        """Returns the same change of the angle in radians at a position."""
        return self.at[0] * abs(float(self.freqs(truncate=True).omega[i]) - float(self.freqs().omega[i]))

    def off_angle(self, i: int) -> float:
        """Returns the error of an f32 angle at a position."""
        return float(abs(self.freqs().omega[i] * self.at[0] - self.freqs().angle(i, self.at[0])))

    def off_product(self, i: int) -> float:
        """Returns the error of the product of a query and a key, rotated with xPos at two positions.

        The product is zeta^(distance / scale_base) times the sine and cosine of distance omega.
        """
        d, distance = self.spec.dim, self.at[0] - self.at[1]
        scale = ((2 * i + 0.4 * d) / (1.4 * d)) ** (distance / self.spec.xpos_scale_base)
        angle = distance * float(self.freqs().omega[i])
        key_freqs = self.freqs(xpos_inverse=not self.spec.xpos_inverse)
        (qs, qc), (ks, kc) = self.freqs().sincos(i, self.at[0]), key_freqs.sincos(i, self.at[1])
        cosine, sine = (qc * kc + qs * ks) / scale, (qs * kc - qc * ks) / scale
        return float(max(abs(cosine - math.cos(angle)), abs(sine - math.sin(angle))))

    # ---- Quantities of the problem ----

    def divided(self) -> float:
        """Returns the number of pairs whose frequency is the unscaled one divided by the argument."""
        ratios = (unscaled / own for unscaled, own in zip(self.freqs(scaling="none").omega, self.freqs().omega))
        return sum(float(ratio) == self.at[0] for ratio in ratios)

    def attention(self) -> float:
        """Returns the attention factor."""
        return self.freqs().attention_factor

    def off_pair(self) -> float:
        """Returns the pair with the largest off_truncated()."""
        return max(range(self.spec.n_pairs), key=self.off_truncated)

    def base(self) -> float:
        """Returns the base theta by the last frequency."""
        dim = self.spec.dim
        return float(self.freqs().omega[-1] ** (mpfr(-dim) / (dim - 2)))

    def least(self) -> float:
        """Returns the lesser magnitude of the sine and the cosine of a pair at a position."""
        return min(abs(value) for value in self.freqs().sincos(int(self.at[0]), self.at[1]))

    def log2_slope(self) -> float:
        """Returns the base-2 logarithm of a head's ALiBi slope."""
        return math.log2(reference.slope(self.fields["heads"], self.fields["alibi_bias_max"], int(self.at[0])))

    def bucket(self) -> float:
        """Returns T5's bucket of a distance."""
        fields = self.fields
        return reference.bucket(int(self.at[0]), fields["num_buckets"], fields["max_distance"], fields["bidirectional"])

    def window_row(self) -> float:
        """Returns the row of a window's table for a query and a key."""
        fields = self.fields
        return reference.window_row(
            fields["window_height"], fields["window_width"], fields["window_class"], *map(int, self.at)
        )

    def column(self) -> float:
        """Returns DeBERTa's column of a query and a key."""
        fields, (query, key) = self.fields, map(int, self.at)
        return reference.deberta_column(query - key, fields["position_buckets"], fields["max_distance"])

    def ulp(self) -> float:
        """Returns the suites' error of an f32 in ulp."""
        return float(call("exact_ulp_error", c_float(self.at[0]), c_double(self.at[1])))

    def pair_ulp(self) -> float:
        """Returns the suites' error of an f32 in ulp of a given magnitude."""
        return float(call("exact_pair_ulp_error", c_float(self.at[0]), c_double(self.at[1]), c_double(self.at[2])))


# ---- The table ----


def number(text: str) -> float:
    """Returns a number, decimal or hexadecimal."""
    return float.fromhex(text) if "0x" in text else float(text)


def check_row(row: Sequence[str]) -> None:
    """Checks a row of quantity, problem, figures, error bound and source."""
    name, line, figures, within, source = row
    for figure in figures.split(","):
        arguments, _, text = figure.rpartition("=")
        want = number(text)
        allowed = float(within[:-1]) * want / 100 if within.endswith("%") else number(within)
        got = PublishedFigure(line, tuple(map(number, arguments.split()))).compute(name)
        if not (got == want or abs(got - want) <= allowed) or not source:
            raise Disagreement(f"{name} of {line},{figure} (source: {source}): {got!r}")


def hash_of_rotation(p: Problem) -> str:
    """Returns the SHA-256 of a rotation's unfused results in the layout of ONNX's X, f32 little-endian."""
    rows, out = p.inputs["unfused"], array("f")
    heads_first = p.recipe != "onnx_3d"
    for b in range(p.batch):
        for k in range(p.heads * p.tokens):
            head, token = divmod(k, p.tokens) if heads_first else divmod(k, p.heads)[::-1]
            r = (b * p.tokens + token) * p.heads + head
            out.extend(rows[r * p.head_dim : (r + 1) * p.head_dim])
    return hashlib.sha256(little_endian(out)).hexdigest()


def check_hashes(published: Dict[str, str], cases: Sequence[GoldenCase]) -> None:
    """Checks the published hashes: exactly the cases whose inputs have a published recipe must have one."""
    lines = {case.id: case.line for case in cases if " recipe=" in case.line}
    hashes = {name: hash_of_rotation(read_problem(line)) for name, line in lines.items()}
    if not lines or hashes != published:
        raise Disagreement(f"hashes of cases {hashes}, published {published}")


def read_rows(name: str) -> List[List[str]]:
    """Returns the rows of a table of five columns beside this file; omitted columns are empty."""
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    rows = [[word.strip() for word in line.split("|")] for line in lines if line.strip() and line[0] != "#"]
    return [row + [""] * (5 - len(row)) for row in rows]


def check(cases: Sequence[GoldenCase]) -> None:
    """Checks published figures by MPFR, and published hashes by the oracle."""
    rows = read_rows("published.txt")
    check_hashes({row[1]: row[2] for row in rows if row[0] == "sha256"}, cases)
    for row in rows:
        if row[0] != "sha256":
            check_row(row)
