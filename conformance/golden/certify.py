"""Compares the oracle with MPFR to the bit, and the library's frequencies within their error bound.

Frequencies and tables are compared for the specs of certified.txt and of golden cases, in each numerics mode that
supports them. Outputs of the oracle are compared for every golden case and for random problems of every kernel.
"""

import math
from array import array
from ctypes import byref, c_double, c_int64, c_uint64
from dataclasses import replace
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import gmpy2
from gmpy2 import mpfr

import check_arithmetic
import check_flags
import check_published
import problem
import reference
from rounding import mix64, nearest_f32, same, two_pi
from freqs_spec import FreqsSpec, axis_of
from freqs import COSINE, SINE, Freqs, convergents
from problem import Disagreement, GoldenCase, Output, Problem, floats, library, read_problem
from scalings import SCALINGS

NUMERICS = ("exact", "hf_f32", "ggml_f32", "torch_exp_f32")
TABLE_ROWS = 12  # rows of each table
PAIR_POSITIONS = 12  # random positions of each pair
N_RANDOM = 40  # random problems of each kernel


class Counts(NamedTuple):
    """Numbers of comparisons: values of outputs, and sines and cosines of a pair at a position."""

    values: int
    points: int


# ---- Outputs ----


def compare(who: str, got: "array[float]", want: "array[float]", output: Output) -> None:
    """Compares the values of an output."""
    if len(got) != output.rows * output.width or len(want) != len(got):
        raise Disagreement(f"{who}: {output.name} has {len(got)} elements, MPFR {len(want)}")
    for i, (a, b) in enumerate(zip(got, want)):
        if not same(a, b):
            row, column = divmod(i, output.width)
            raise Disagreement(f"{who}: {output.name} row {row} column {column}: {a.hex()}, MPFR {b.hex()}")


def compare_problem(name: str, p: Problem, expected: Sequence["array[float]"]) -> int:
    """Compares the outputs of a problem by the oracle and, if present, by the library."""
    values = 0
    for output, want in zip(p.outputs, expected):
        compare(f"oracle, {name}", output.oracle, want, output)
        values += len(want) + len(output.library)
        if output.library:
            compare(f"library, {name}", output.library, array("f", map(nearest_f32, want)), output)
    return values


# ---- Specs ----


def random_position(seed: int, index: int) -> int:
    """Returns a position below 2^31 whose number of bits is uniform."""
    z = mix64(seed, index)
    position = z & ((1 << 1 + (z >> 32) % 31) - 1)
    return -position if z >> 63 else position


def table_lines(spec: FreqsSpec, seed: int) -> Iterator[str]:
    """Yields tables of a spec at integer positions, at times in f32 and, if positions have axes, of a picture."""
    names = ("positions", "times", "picture")
    for index, name in enumerate(names if spec.mrope_section else names[:2]):
        positions = [random_position(seed + index, k) for k in range(TABLE_ROWS)]
        kind = "i64"
        if name == "times":
            positions = [int(position / 256) for position in positions]
            kind = f"f32 time_step={math.ldexp(1 / 3, -(seed % 40))!r}"
        if name == "picture":
            kind += f" mrope_grid=5 position_offset={int(positions[0] / 2)}"
        listed = ",".join(map(str, positions))
        yield f"{kernel_of(spec)} {name} {spec.notation()} positions={listed} position_kind={kind}"


def kernel_of(spec: FreqsSpec) -> str:
    """Returns the kernel that makes a table of a spec."""
    return "sinusoidal" if spec.dim % 2 else "rope_table"


def turn_error(freqs: Freqs, pair: int, turn: int, bits: int) -> mpfr:
    """Returns the distance of turn / 2^bits from omega / (2 pi), modulo whole turns."""
    difference = mpfr(turn) / (1 << bits) - freqs.omega[pair] / two_pi()
    return abs(difference - gmpy2.rint(difference))


def compare_axes(freqs: Freqs, who: str, got: Dict[str, Any]) -> None:
    """Compares the axes of pairs and the attention factor of the oracle or the library."""
    axes = [axis_of(freqs.spec, i) for i in range(freqs.spec.n_pairs)]
    if got["axis"] != axes or not same(got["attention"], freqs.attention_factor):
        raise Disagreement(
            f"{who}: axes {got['axis']}, attention factor {got['attention']!r}, MPFR {axes}, {freqs.attention_factor!r}"
        )


def compare_frequency(who: str, error: mpfr, allowed: mpfr, single: float, as_f32: float) -> None:
    """Compares the error of a frequency in turns with a bound, and its f32 value with MPFR's."""
    if error > allowed or not same(single, as_f32):
        raise Disagreement(f"{who}: turn off by {float(error)}, f32 {single!r}, MPFR {as_f32!r}")


def compare_oracle_freqs(freqs: Freqs, who: str, got: Dict[str, Any], seed: int) -> int:
    """Compares the oracle's frequencies, and sines and cosines at random positions and next to zeros.

    Returns the number of positions. The mode ggml_f32 has angles and no frequencies; tables cover it.
    """
    compare_axes(freqs, who, got)
    words, single = array("Q", bytes.fromhex(got["turn"])), floats("f", got["f32"])
    points = 0
    for i, omega in enumerate(freqs.omega if freqs.spec.numerics != "ggml_f32" else []):
        turn = words[3 * i : 3 * i + 3]
        error = turn_error(freqs, i, turn[0] << 128 | turn[1] << 64 | turn[2], 192)
        compare_frequency(f"{who}: frequency {i}", error, mpfr(2) ** -191 * max(1, omega), single[i], freqs.inv_freq[i])
        positions = [random_position(seed + i, k) for k in range(PAIR_POSITIONS)]
        for kind in (SINE, COSINE) if omega else ():
            near_zero = list(convergents(omega, kind))
            positions += [-p if k % 2 else p for k, (p, _) in enumerate(near_zero)][-4:]
        for position in positions:
            compare_point(freqs, f"{who}: pair {i} position {position}", i, position, turn)
        points += len(positions)
    return points


def compare_point(freqs: Freqs, who: str, pair: int, position: int, turn: "array[int]") -> None:
    """Compares the oracle's sine and cosine of a pair at a position."""
    sine, cosine = c_double(), c_double()
    if freqs.spec.numerics == "exact":
        library().exact_sincos_turn((c_uint64 * 3)(*turn), c_int64(position), byref(sine), byref(cosine))
    else:
        library().exact_sincos(c_double(freqs.angle(pair, position)), byref(sine), byref(cosine))
    got, want = (sine.value, cosine.value), freqs.sincos(pair, position)
    if not all(map(same, got, want)):
        raise Disagreement(f"{who}: {' '.join(map(float.hex, got))}, MPFR {' '.join(map(float.hex, want))}")


def compare_library_freqs(freqs: Freqs, who: str, got: Dict[str, Any]) -> None:
    """Compares the library's frequencies: 104 bits of a turn are right, or all 128 if omega is small."""
    compare_axes(freqs, who, got)
    high, low = array("Q", bytes.fromhex(got["turn_hi"])), array("Q", bytes.fromhex(got["turn_lo"]))
    omega, single = floats("d", got["omega"]), floats("f", got["f32"])
    for i, exact in enumerate(freqs.omega):
        error = turn_error(freqs, i, high[i] << 64 | low[i], 128)
        as_f32 = freqs.inv_freq[i] if freqs.spec.numerics in ("hf_f32", "torch_exp_f32") else nearest_f32(exact)
        compare_frequency(f"{who}: frequency {i}", error, math.ldexp(float(exact), -102) + 2.0**-127, single[i], as_f32)
        if omega[i] != float(exact):
            raise Disagreement(f"{who}: frequency {i}: {omega[i]!r}, MPFR {float(exact)!r}")


def certify_spec(item: Tuple[FreqsSpec, int]) -> Counts:
    """Compares the frequencies of a spec, and tables of them.

    In an f32 mode, tables of the library are compared as well. A sine there is one rounding of an f32 angle, so that
    other bits mean another angle.
    """
    spec, seed = item
    freqs, line = Freqs(spec), f"{kernel_of(spec)} {spec.notation()}"
    found = problem.read_freqs(line)
    points = compare_oracle_freqs(freqs, f"oracle, {line}", found["oracle"], seed)
    compare_library_freqs(freqs, f"library, {line}", found["library"])
    rounded = spec.numerics != "exact"
    return Counts(sum(certify_line(table, rounded).values for table in table_lines(spec, seed)), points)


def spec_of(line: str) -> FreqsSpec:
    """Returns the spec of a problem of sinusoidal or rope_table in the mode exact, for longrope with other factors."""
    spec = replace(FreqsSpec.of(read_problem(line).fields), numerics="exact")
    if spec.scaling != "longrope":
        return spec
    # Factors that differ from pair to pair, the first below 1.
    factors = [tuple(0.9 + last * (i * i) / (256 * 256) for i in range(spec.n_pairs)) for last in (3.3, 64.1)]
    return replace(spec, short_factor=factors[0], long_factor=factors[1])


def certified_specs(pool: Pool, root: Path, cases: List[GoldenCase]) -> List[Tuple[FreqsSpec, int]]:
    """Returns the specs of certified.txt and of the golden cases in all their numerics modes, with a seed each."""
    lines = problem.read_lines(root / "cases/certified.txt")
    lines += [case.line for case in cases if case.kernel in ("sinusoidal", "sinusoidal_add", "rope_table")]
    specs = dict.fromkeys(pool.map(spec_of, lines))
    plain = [spec for spec in specs if not spec.inv_freq and spec.xpos_scale_base == 0]
    return [
        (replace(spec, numerics=numerics), 1000 * k + j)
        for k, spec in enumerate(plain)
        for j, numerics in enumerate(NUMERICS)
        if has_numerics(spec, numerics)
    ]


def has_numerics(spec: FreqsSpec, numerics: str) -> bool:
    """Returns true if a numerics mode supports the scaling and the exponents of a spec."""
    own_exponents = spec.freq_spacing != "exponent" or spec.mrope_layout in ("qwen2_vl_vision", "pixtral", "kimi")
    return numerics in SCALINGS[spec.scaling].numerics and not (numerics == "ggml_f32" and own_exponents)


# ---- Problems ----


def certify_line(line: str, with_library: bool = False) -> Counts:
    """Compares the outputs of a problem by the oracle and, if `with_library`, by the library."""
    p = read_problem(line, with_library)
    return Counts(compare_problem(line, p, reference.outputs(p)), 0)


def certify_case(case: GoldenCase) -> Tuple[Counts, List[str]]:
    """Compares a golden case, and returns the flags whose property it has."""
    p = read_problem(case.line)
    expected = reference.outputs(p)
    return Counts(compare_problem(case.id, p, expected), 0), check_flags.kept_flags(case, p, expected)


def certify(pool: Pool, root: Path) -> str:
    """Makes all comparisons, and returns a sentence with their numbers."""
    cases = problem.read_cases(root)
    check_published.check(cases)
    list(pool.imap(check_arithmetic.check, range(len(check_arithmetic.PARTS))))
    specs = certified_specs(pool, root, cases)
    names = problem.kernel_names()
    random = [problem.random_line(names[i], mix64(i, k) >> 1) for i in range(len(names)) for k in range(N_RANDOM)]
    of_cases = list(pool.imap(certify_case, cases))
    check_flags.check(cases, [kept for _, kept in of_cases])
    counted = [count for count, _ in of_cases] + list(pool.imap(certify_line, random))
    counted += list(pool.imap(certify_spec, specs))
    return (
        f"oracle and library = MPFR: {len(specs)} specs with {sum(c.points for c in counted)} sines and cosines, "
        f"{len(random)} random problems and {len(cases)} cases with {sum(c.values for c in counted)} values in all"
    )
