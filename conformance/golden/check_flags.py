"""Checks that golden cases have the properties that their flags state, so that a kernel with that fault fails them.

Flags state that a value rounds in a certain way, that a sum depends on its order, or that positions are next to a zero.
"""

import math
from array import array
from typing import Callable, Dict, List, Sequence

import gmpy2

import reference
from rounding import FORMATS, add_f32, nearest_f32, rounded
from freqs_spec import FreqsSpec
from freqs import COSINE, MOST_POSITIONS, SINE, Freqs, hard_halves, hard_positions, is_convergent
from problem import Disagreement, GoldenCase, Problem

# ---- Values ----


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

# ---- Order of sums ----


def order_matters(case: GoldenCase, p: Problem, expected: Sequence["array[float]"]) -> bool:
    """Returns true if adding the inputs in reverse order gives other sums."""
    width, x = p.outputs[0].width, p.inputs["x"]
    sums = list(p.inputs["out"]) if p.kernel == "learned_grad" and p.accumulate else [0.0] * len(expected[0])
    if p.kernel == "learned_grad":
        terms = [(int(at) * width + k, x[t * width + k]) for t, at in enumerate(p.times[0]) for k in range(width)]
    else:
        terms = [
            (r * width + reference.column_of(p, query, j), x[r * p.keys + j])
            for r, (_, query) in enumerate(reference.queries(p))
            for j in range(p.keys)
        ]
    for at, term in reversed(terms):
        sums[at] = add_f32(sums[at], term)
    return sums != list(expected[0])


# ---- Positions next to a zero ----


def lists_convergents(case: GoldenCase, p: Problem, expected: Sequence["array[float]"]) -> bool:
    """Returns true if the positions are those nearest to zeros of a sine, or of a cosine."""
    positions, freqs = p.positions, Freqs(FreqsSpec.of(p.fields))
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


# ---- Flags ----

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


def check(cases: Sequence[GoldenCase], kept_by: Sequence[List[str]]) -> None:
    """Raises Disagreement for a flag without its property. If cases differ in dtype alone, one has to have it."""
    kept = {(case.id_without_dtype, flag) for case, flags in zip(cases, kept_by) for flag in flags}
    for flag in [*TESTS_OF_VALUES, *TESTS_OF_CASES]:
        flagged = [case for case in cases if flag in checked_flags(case)]
        wrong = [case.id for case in flagged if (case.id_without_dtype, flag) not in kept]
        if wrong or len(flagged) < LEAST_CASES.get(flag, 1):
            raise Disagreement(f"of {len(flagged)} cases with the flag {flag} some do not keep it: {wrong}")
