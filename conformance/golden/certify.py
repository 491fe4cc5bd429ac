"""Compares the oracle with MPFR to the bit, and the library's frequencies within their promised error.

It takes the frequencies of every certified spec in every numerics mode that supports it, and tables of them. The oracle
is also compared on random problems of every kernel and on every golden case.
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

import arithmetic
import flags
import published
import reference
from exact import mix64, nearest_f32, same, two_pi
from frequencies import Spec, axis_of
from plan import COSINE, SINE, Plan, convergents
from problem import (
    Disagreement,
    GoldenCase,
    Output,
    Problem,
    floats,
    kernel_names,
    library,
    random_line,
    read_cases,
    read_lines,
    read_plans,
    read_problem,
)
from scalings import FAMILIES

PROFILES = ("exact", "hf_f32", "ggml_f32", "torch_exp_f32")
ROWS, PROBLEMS = 12, 40


class Counted(NamedTuple):
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


def compare_problem(name: str, p: Problem, made: Sequence["array[float]"]) -> int:
    """Compares the outputs of a problem by the oracle and, if present, by the library."""
    values = 0
    for output, want in zip(p.outputs, made):
        compare(f"oracle, {name}", output.oracle, want, output)
        values += len(want) + len(output.library)
        if output.library:
            compare(f"library, {name}", output.library, array("f", map(nearest_f32, want)), output)
    return values


# ---- Specs ----


def any_position(seed: int, index: int) -> int:
    """Returns a position below 2^31, all magnitudes alike."""
    z = mix64(seed, index)
    position = z & ((1 << 1 + (z >> 32) % 31) - 1)
    return -position if z >> 63 else position


def table_lines(spec: Spec, seed: int) -> Iterator[str]:
    """Yields tables at positions of all magnitudes, at times of most and, where there are sections, of a picture."""
    for way in ("positions", "times", "picture")[: 3 if spec.mrope_section else 2]:
        drawn = [any_position(seed + ("positions", "times", "picture").index(way), k) for k in range(ROWS)]
        kind = "i64"
        if way == "times":
            drawn = [int(position / 256) for position in drawn]
            kind = f"f32 time_step={math.ldexp(1 / 3, -(seed % 40))!r}"
        if way == "picture":
            kind += f" mrope_grid=5 position_offset={int(drawn[0] / 2)}"
        positions = ",".join(map(str, drawn))
        yield f"{kernel_of(spec)} {way} {spec.notation()} positions={positions} position_kind={kind}"


def kernel_of(spec: Spec) -> str:
    """Returns the kernel that makes a table of a spec."""
    return "sinusoidal" if spec.dim % 2 else "rope_table"


def turn_error(plan: Plan, pair: int, turn: int, bits: int) -> mpfr:
    """Returns how far a fraction of a turn is from omega / (2 pi); whole turns do not count."""
    off = mpfr(turn) / (1 << bits) - plan.omega[pair] / two_pi()
    return abs(off - gmpy2.rint(off))


def compare_plan(plan: Plan, who: str, got: Dict[str, Any]) -> None:
    """Compares axes and attention factor of the oracle or the library, which all pairs share."""
    axes = [axis_of(plan.spec, i) for i in range(plan.spec.n_pairs)]
    if got["axis"] != axes or not same(got["attention"], plan.attention_factor):
        raise Disagreement(
            f"{who}: axes {got['axis']}, attention factor {got['attention']!r}, MPFR {axes}, {plan.attention_factor!r}"
        )


def compare_frequency(plan: Plan, who: str, i: int, error: mpfr, allowed: mpfr, single: float, as_f32: float) -> None:
    """Compares the turn and the f32 value of a frequency."""
    if error > allowed or not same(single, as_f32):
        raise Disagreement(f"{who}: frequency {i}: turn off by {float(error)}, f32 {single!r}, MPFR {as_f32!r}")


def compare_oracle_plan(plan: Plan, who: str, got: Dict[str, Any], seed: int) -> int:
    """Compares the oracle's frequencies, and pairs at positions of all magnitudes and next to zeros.

    Numerics ggml_f32 has no frequencies: tables show its angles.
    """
    compare_plan(plan, who, got)
    words, single = array("Q", bytes.fromhex(got["turn"])), floats("f", got["f32"])
    points = 0
    for i, omega in enumerate(plan.omega if plan.spec.profile != "ggml_f32" else []):
        turn = words[3 * i : 3 * i + 3]
        error = turn_error(plan, i, turn[0] << 128 | turn[1] << 64 | turn[2], 192)
        compare_frequency(plan, who, i, error, mpfr(2) ** -191 * max(1, omega), single[i], plan.inv_freq[i])
        positions = [any_position(seed + i, k) for k in range(12)]
        for kind in (SINE, COSINE) if omega else ():
            hard = list(convergents(omega, kind))
            positions += [-p if k % 2 else p for k, (p, _) in enumerate(hard)][-4:]
        for position in positions:
            compare_point(plan, f"{who}: pair {i} position {position}", i, position, turn)
        points += len(positions)
    return points


def compare_point(plan: Plan, who: str, pair: int, position: int, turn: "array[int]") -> None:
    """Compares the oracle's sine and cosine of a pair at a position."""
    sine, cosine = c_double(), c_double()
    if plan.spec.profile == "exact":
        library().exact_sincos_turn((c_uint64 * 3)(*turn), c_int64(position), byref(sine), byref(cosine))
    else:
        library().exact_sincos(c_double(plan.angle(pair, position)), byref(sine), byref(cosine))
    got, want = (sine.value, cosine.value), plan.sincos(pair, position)
    if not all(map(same, got, want)):
        raise Disagreement(f"{who}: {' '.join(map(float.hex, got))}, MPFR {' '.join(map(float.hex, want))}")


def compare_library_plan(plan: Plan, who: str, got: Dict[str, Any]) -> None:
    """Compares the library's frequencies: turns of it have 104 bits, and the last of the 128."""
    compare_plan(plan, who, got)
    high, low = array("Q", bytes.fromhex(got["turn_hi"])), array("Q", bytes.fromhex(got["turn_lo"]))
    omega, single = floats("d", got["omega"]), floats("f", got["f32"])
    for i, exact in enumerate(plan.omega):
        error = turn_error(plan, i, high[i] << 64 | low[i], 128)
        as_f32 = plan.inv_freq[i] if plan.spec.profile in ("hf_f32", "torch_exp_f32") else nearest_f32(exact)
        compare_frequency(plan, who, i, error, math.ldexp(float(exact), -102) + 2.0**-127, single[i], as_f32)
        if omega[i] != float(exact):
            raise Disagreement(f"{who}: frequency {i}: {omega[i]!r}, MPFR {float(exact)!r}")


def certify_spec(item: Tuple[Spec, int]) -> Counted:
    """Compares the plans of a spec, and tables of it.

    In an f32 mode the sine of an f32 angle is rounded once: a table of the library with other bits has other angles.
    """
    spec, seed = item
    plan, line = Plan(spec), f"{kernel_of(spec)} {spec.notation()}"
    plans = read_plans(line)
    points = compare_oracle_plan(plan, f"oracle, {line}", plans["oracle"], seed)
    compare_library_plan(plan, f"library, {line}", plans["library"])
    return Counted(
        sum(certify_line(table, spec.profile != "exact").values for table in table_lines(spec, seed)), points
    )


def spec_of(line: str) -> Spec:
    """Returns the frequencies of a problem of sinusoidal or rope_table, in numerics exact."""
    spec = replace(Spec.of(read_problem(line).fields), profile="exact")
    if spec.scaling != "longrope":
        return spec
    # Uneven factors; the first below 1.
    factors = [tuple(0.9 + last * (i * i) / (256 * 256) for i in range(spec.n_pairs)) for last in (3.3, 64.1)]
    return replace(spec, short_factor=factors[0], long_factor=factors[1])


def certified_specs(pool: Pool, root: Path, cases: List[GoldenCase]) -> List[Tuple[Spec, int]]:
    """Returns the specs of certified.txt and of the golden cases in all their numerics modes, with a seed each."""
    lines = read_lines(root / "cases/certified.txt")
    lines += [case.line for case in cases if case.kernel in ("sinusoidal", "sinusoidal_add", "rope_table")]
    specs = dict.fromkeys(pool.map(spec_of, lines))
    plain = [spec for spec in specs if not spec.inv_freq and spec.xpos_scale_base == 0]
    return [
        (replace(spec, profile=profile), 1000 * k + j)
        for k, spec in enumerate(plain)
        for j, profile in enumerate(PROFILES)
        if has_profile(spec, profile)
    ]


def has_profile(spec: Spec, profile: str) -> bool:
    """Returns true if a numerics mode supports the scaling and the convention of a spec."""
    own_exponents = spec.freq_convention != "exponent" or spec.mrope_layout in ("restarted", "dealt", "alternating")
    return profile in FAMILIES[spec.scaling].profiles and not (profile == "ggml_f32" and own_exponents)


# ---- Problems ----


def certify_line(line: str, with_library: bool = False) -> Counted:
    """Compares a problem."""
    p = read_problem(line, with_library)
    return Counted(compare_problem(line, p, reference.outputs(p)), 0)


def certify_case(case: GoldenCase) -> Tuple[Counted, List[str]]:
    """Compares a golden case, and returns the flags whose promises it keeps."""
    p = read_problem(case.line)
    made = reference.outputs(p)
    return Counted(compare_problem(case.id, p, made), 0), flags.kept_flags(case, p, made)


def certify(pool: Pool, root: Path) -> str:
    """Compares everything, and returns the numbers of comparisons in words."""
    cases = read_cases(root)
    published.check(cases)
    list(pool.imap(arithmetic.check, range(len(arithmetic.PARTS))))
    specs = certified_specs(pool, root, cases)
    random = [random_line(kernel, mix64(i, k) >> 1) for i, kernel in enumerate(kernel_names()) for k in range(PROBLEMS)]
    of_cases = list(pool.imap(certify_case, cases))
    flags.check(cases, [kept for _, kept in of_cases])
    counted = [count for count, _ in of_cases] + list(pool.imap(certify_line, random))
    counted += list(pool.imap(certify_spec, specs))
    return (
        f"oracle and library = MPFR: {len(specs)} plans, {sum(c.points for c in counted)} sines and cosines, "
        f"{len(random)} problems at random and {len(cases)} cases with {sum(c.values for c in counted)} values in all"
    )
