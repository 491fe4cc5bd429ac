"""Checks that golden cases keep the promises of their flags, so that a kernel with that mistake cannot pass them.

Values round as the flag says, sums depend on their order, and positions are the nearest to a zero.
"""

import math
from array import array
from typing import Callable, Dict, List, Sequence

import gmpy2

import reference
from exact import FORMATS, add_f32, nearest_f32, rounded
from frequencies import Spec
from plan import COSINE, MOST_POSITIONS, SINE, Plan, hard_halves, hard_positions, is_convergent
from problem import Disagreement, GoldenCase, Problem

# ---- Values ----


def is_tie(dtype: str, odd: float) -> bool:
    """Returns true if the f32 is halfway between two values of the type."""
    value = nearest_f32(odd)
    up, down = rounded(dtype, value, gmpy2.RoundUp), rounded(dtype, value, gmpy2.RoundDown)
    return up != down and up - value == value - down


def is_subnormal(dtype: str, odd: float) -> bool:
    """Returns true if the value is below the least normal one of the type."""
    return 0 < abs(rounded(dtype, odd)) < (2.0**-14 if dtype == "f16" else 2.0**-126)


def overflows(dtype: str, odd: float) -> bool:
    """Returns true if a finite f32 is beyond the largest value of the type."""
    value = nearest_f32(odd)
    return math.isfinite(value) and math.isinf(rounded(dtype, value))


def rounds_twice(dtype: str, odd: float) -> bool:
    """Returns true if rounding to f32 first makes a difference."""
    return math.isfinite(odd) and rounded(dtype, odd) != rounded(dtype, nearest_f32(odd))


TESTS_OF_VALUES: Dict[str, Callable[[str, float], bool]] = {
    "Tie": is_tie,
    "Subnormal": is_subnormal,
    "Overflow": overflows,
    "TwoRoundings": rounds_twice,
}

# ---- Order of sums ----


def order_matters(case: GoldenCase, p: Problem, made: Sequence["array[float]"]) -> bool:
    """Returns true if summing from the last input to the first gives another sum."""
    width, x = p.outputs[0].width, p.inputs["x"]
    sums = list(p.inputs["out"]) if p.kernel == "learned_grad" and p.accumulate else [0.0] * len(made[0])
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
    return sums != list(made[0])


# ---- Positions next to a zero ----


def lists_convergents(case: GoldenCase, p: Problem, made: Sequence["array[float]"]) -> bool:
    """Returns true if the positions are the nearest to zeros of a sine, or of a cosine."""
    positions, plan = p.positions, Plan(Spec.of(p.fields))
    if not positions or len(positions) > MOST_POSITIONS:
        return False
    if p.position_kind == "f32":
        # Token 2 k + 1 has the k-th nearest half m/2, and its position is t/2 less. The token before it has the whole
        # part; every second one is negative.
        wanted = []
        for k, m in enumerate(hard_halves(plan, len(positions) // 2)):
            wanted += [-(m // 2) if k % 2 else m // 2, m // 2 - k]
        return bool(p.time_step == 0.5 and positions == wanted)
    kind, n = COSINE if case.name.endswith("-cos") else SINE, len(positions)
    if positions == hard_positions(plan, kind, n):
        return True
    # The last position may be any convergent, which an earlier search found.
    return positions[:-1] == hard_positions(plan, kind, n - 1) and is_convergent(plan, positions[-1])


# ---- Flags ----

TESTS_OF_CASES: Dict[str, Callable[[GoldenCase, Problem, Sequence["array[float]"]], bool]] = {
    "Order": order_matters,
    "Convergent": lists_convergents,
}
LEAST_CASES = {"Convergent": 11}  # number of cases that a flag needs; others need 1


def promised_flags(case: GoldenCase) -> List[str]:
    """Returns the flags of a case that make a promise.

    Flags of values do so in 16 bits. Convergent does so if the positions were searched for; other cases with it have
    whole wavelengths, or need one position for its value.
    """
    of_case = {"Order"}
    if "position_kind=f32" in case.line.split() or case.group == "convergents":
        of_case.add("Convergent")
    return [flag for flag in case.flags if flag in of_case or (flag in TESTS_OF_VALUES and case.dtype != "f32")]


def kept_flags(case: GoldenCase, p: Problem, made: Sequence["array[float]"]) -> List[str]:
    """Returns the flags of a case whose promises it keeps."""
    flags = [flag for flag in promised_flags(case) if flag in TESTS_OF_CASES and TESTS_OF_CASES[flag](case, p, made)]
    if case.dtype in FORMATS and case.dtype != "f32":
        values = [value for output in made for value in output]
        flags += [flag for flag, test in TESTS_OF_VALUES.items() if any(test(case.dtype, value) for value in values)]
    return flags


def check(cases: Sequence[GoldenCase], kept_by: Sequence[List[str]]) -> None:
    """Checks that promises are kept; one of the types of a case suffices for a flag of values."""
    keeping = {(case.unstored, flag) for case, flags in zip(cases, kept_by) for flag in flags}
    for flag in [*TESTS_OF_VALUES, *TESTS_OF_CASES]:
        promised = [case for case in cases if flag in promised_flags(case)]
        wrong = [case.id for case in promised if (case.unstored, flag) not in keeping]
        if wrong or len(promised) < LEAST_CASES.get(flag, 1):
            raise Disagreement(f"of {len(promised)} cases with the flag {flag} some do not keep it: {wrong}")
