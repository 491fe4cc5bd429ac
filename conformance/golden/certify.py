"""Compares the oracle with MPFR to the bit, and the library's frequencies within their error bound.

golden.py --certify runs certify(). A disagreement stops it with a message such as

    oracle, rope_table/f32/exact/llama31-p131071: cos row 0 column 3: 0x1.8p-1, MPFR 0x1.8000000000001p-1

Frequencies and tables are compared for the specs of certified.txt and of golden cases, in each numerics mode that
supports them. Outputs of the oracle are compared for every golden case and for random problems of every kernel.
"""

import math
from array import array
from ctypes import byref, c_double, c_int64, c_uint64
from dataclasses import replace
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import gmpy2
from gmpy2 import mpfr

import check_arithmetic
import check_published
import problem
import reference
from rounding import FORMATS, add_f32, mix64, nearest_f32, rounded, same, two_pi
from freqs import COSINE, MOST_POSITIONS, SINE, Freqs, convergents, hard_halves, hard_positions, is_convergent
from problem import Disagreement, FreqsSpec, GoldenCase, Output, Problem, floats, library, pairs_of, read_problem
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
    axes = [pair.axis for pair in pairs_of(freqs.spec)]
    if got["axis"] != axes or not same(got["attention"], freqs.attention_factor):
        raise Disagreement(
            f"{who}: axes {got['axis']}, attention factor {got['attention']!r}, MPFR {axes}, {freqs.attention_factor!r}"
        )


def compare_frequency(who: str, error: mpfr, allowed: mpfr, got_f32: float, want_f32: float) -> None:
    """Compares the error of a frequency in turns with a bound, and its f32 value with MPFR's."""
    if error > allowed or not same(got_f32, want_f32):
        raise Disagreement(f"{who}: turn off by {float(error)}, f32 {got_f32!r}, MPFR {want_f32!r}")


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


def certify_spec(spec_and_seed: Tuple[FreqsSpec, int]) -> Counts:
    """Compares the frequencies of a spec, and tables of them.

    In an f32 mode, tables of the library are compared as well. A sine there is one rounding of an f32 angle, so that
    other bits mean another angle.
    """
    spec, seed = spec_and_seed
    freqs, line = Freqs(spec), f"{kernel_of(spec)} {spec.notation()}"
    found = problem.read_freqs(line)
    points = compare_oracle_freqs(freqs, f"oracle, {line}", found["oracle"], seed)
    compare_library_freqs(freqs, f"library, {line}", found["library"])
    rounded = spec.numerics != "exact"
    return Counts(sum(certify_line(table, rounded).values for table in table_lines(spec, seed)), points)


def spec_of(line: str) -> FreqsSpec:
    """Returns the spec of a problem of sinusoidal or rope_table in the mode exact, for longrope with other factors."""
    spec = replace(FreqsSpec.from_fields(read_problem(line).fields), numerics="exact")
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
    return Counts(compare_problem(case.id, p, expected), 0), kept_flags(case, p, expected)


# ---- Flags of golden cases ----
#
# Flags state that a value rounds in a certain way, that a sum depends on its order, or that positions are next to a
# zero. A kernel with that fault fails such a case.


def is_tie(dtype: str, odd: float) -> bool:
    """Returns true if the value as f32 is halfway between two values of the dtype."""
    value = nearest_f32(odd)
    up, down = rounded(dtype, value, gmpy2.RoundUp), rounded(dtype, value, gmpy2.RoundDown)
    return up != down and up - value == value - down


def is_subnormal(dtype: str, odd: float) -> bool:
    """Returns true if the value is subnormal in the dtype."""
    return 0 < abs(rounded(dtype, odd)) < (2.0**-14 if dtype == "f16" else 2.0**-126)


def overflows(dtype: str, odd: float) -> bool:
    """Returns true if the value is finite as f32 and infinite in the dtype."""
    value = nearest_f32(odd)
    return math.isfinite(value) and math.isinf(rounded(dtype, value))


def rounds_twice(dtype: str, odd: float) -> bool:
    """Returns true if rounding to f32 first gives another value of the dtype."""
    return math.isfinite(odd) and rounded(dtype, odd) != rounded(dtype, nearest_f32(odd))


TESTS_OF_VALUES: Dict[str, Callable[[str, float], bool]] = {
    "Tie": is_tie,
    "Subnormal": is_subnormal,
    "Overflow": overflows,
    "TwoRoundings": rounds_twice,
}


def order_matters(case: GoldenCase, p: Problem, expected: Sequence["array[float]"]) -> bool:
    """Returns true if adding the inputs in reverse order gives other sums."""
    width, x = p.outputs[0].width, p.inputs["x"]
    # Terms are (index of the sum, addend), in the order of the kernel.
    sums = list(p.inputs["out"]) if p.kernel == "learned_grad" and p.accumulate else [0.0] * len(expected[0])
    if p.kernel == "learned_grad":
        terms = [(int(row) * width + k, x[t * width + k]) for t, row in enumerate(p.times[0]) for k in range(width)]
    else:
        terms = [
            (r * width + reference.column_of(p, query, j), x[r * p.keys + j])
            for r, (_, query) in enumerate(reference.queries(p))
            for j in range(p.keys)
        ]
    for i, term in reversed(terms):
        sums[i] = add_f32(sums[i], term)
    return sums != list(expected[0])


def lists_convergents(case: GoldenCase, p: Problem, expected: Sequence["array[float]"]) -> bool:
    """Returns true if the positions are those nearest to zeros of a sine, or of a cosine."""
    positions, freqs = p.positions, Freqs(FreqsSpec.from_fields(p.fields))
    if not positions or len(positions) > MOST_POSITIONS:
        return False
    if p.position_kind == "f32":
        # Token t is at its listed position plus t/2. Token 2k + 1 is thereby at the k-th nearest m/2. Token 2k lists
        # the integer part of m/2, every second time negated.
        expected_positions = []
        for k, m in enumerate(hard_halves(freqs, len(positions) // 2)):
            expected_positions += [-(m // 2) if k % 2 else m // 2, m // 2 - k]
        return bool(p.time_step == 0.5 and positions == expected_positions)
    kind, n = COSINE if case.name.endswith("-cos") else SINE, len(positions)
    if positions == hard_positions(freqs, kind, n):
        return True
    # The last position may be any convergent.
    return positions[:-1] == hard_positions(freqs, kind, n - 1) and is_convergent(freqs, positions[-1])


TESTS_OF_CASES: Dict[str, Callable[[GoldenCase, Problem, Sequence["array[float]"]], bool]] = {
    "Order": order_matters,
    "Convergent": lists_convergents,
}
LEAST_CASES = {"Convergent": 11}  # the least number of cases with a flag; 1 for other flags


def checked_flags(case: GoldenCase) -> List[str]:
    """Returns the flags of a case whose property is checked: flags of values for f16 and bf16.

    Convergent is not checked for cases that have integer wavelengths, or one position next to a zero.
    """
    of_case = {"Order"}
    if "position_kind=f32" in case.line.split() or case.group == "convergents":
        of_case.add("Convergent")
    return [flag for flag in case.flags if flag in of_case or (flag in TESTS_OF_VALUES and case.dtype != "f32")]


def kept_flags(case: GoldenCase, p: Problem, expected: Sequence["array[float]"]) -> List[str]:
    """Returns the checked flags of a case whose property it has, and all flags of values that it has."""
    flags = [flag for flag in checked_flags(case) if flag in TESTS_OF_CASES and TESTS_OF_CASES[flag](case, p, expected)]
    if case.dtype in FORMATS and case.dtype != "f32":
        values = [value for output in expected for value in output]
        flags += [flag for flag, test in TESTS_OF_VALUES.items() if any(test(case.dtype, value) for value in values)]
    return flags


def check_flags(cases: Sequence[GoldenCase], kept_by: Sequence[List[str]]) -> None:
    """Raises Disagreement for a flag without its property. If cases differ in dtype alone, one has to have it."""
    kept = {(case.id_without_dtype, flag) for case, flags in zip(cases, kept_by) for flag in flags}
    for flag in [*TESTS_OF_VALUES, *TESTS_OF_CASES]:
        flagged = [case for case in cases if flag in checked_flags(case)]
        wrong = [case.id for case in flagged if (case.id_without_dtype, flag) not in kept]
        if wrong or len(flagged) < LEAST_CASES.get(flag, 1):
            raise Disagreement(f"of {len(flagged)} cases with the flag {flag} some do not keep it: {wrong}")


# ---- All comparisons ----


def certify(pool: Pool, root: Path) -> str:
    """Makes all comparisons, and returns a sentence with their numbers."""
    cases = problem.read_cases(root)
    check_published.check(cases)
    list(pool.imap(check_arithmetic.check, range(len(check_arithmetic.PARTS))))
    specs = certified_specs(pool, root, cases)
    names = problem.kernel_names()
    random = [problem.random_line(names[i], mix64(i, k) >> 1) for i in range(len(names)) for k in range(N_RANDOM)]
    of_cases = list(pool.imap(certify_case, cases))
    check_flags(cases, [kept for _, kept in of_cases])
    counted = [count for count, _ in of_cases] + list(pool.imap(certify_line, random))
    counted += list(pool.imap(certify_spec, specs))
    return (
        f"oracle and library = MPFR: {len(specs)} specs with {sum(c.points for c in counted)} sines and cosines, "
        f"{len(random)} random problems and {len(cases)} cases with {sum(c.values for c in counted)} values in all"
    )
