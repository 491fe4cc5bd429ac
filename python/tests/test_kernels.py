"""Each kernel on arrays of each framework, against the functions of references.py.

A case has the arguments of one kernel. call() passes them to the kernel as arrays of a framework, and expected() passes
the same to the reference, as posenc.check() would.
"""

import inspect
import re
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple

import numpy as np
import posenc
import pytest
from conftest import ROOT, Framework
from posenc.checking.client import Call
from references import FUNCTIONS, alibi, relative_bias, sinusoidal, table

RANDOM = np.random.default_rng(1)
BATCH, TOKENS, HEADS, DIM, QUERIES, KEYS = 2, 5, 3, 8, 4, 6
FREQS = posenc.Frequencies(DIM, rope_theta=100.0)
POSITIONS = np.array([[3, 0, 7, 2, 1], [6, 6, 5, 4, 0]])
BUCKETS = posenc.t5_buckets(8, 16, True)
INDEX = posenc.shaw_index(QUERIES, KEYS, 2)  # 5 columns

Arrays = Dict[str, Any]


def draw(*shape: int) -> Any:
    """Returns values that each element type has."""
    return RANDOM.integers(-64, 65, shape) / 32.0


X = {
    "tokens": draw(BATCH, TOKENS, DIM), "heads": draw(BATCH, TOKENS, HEADS, DIM),
    "scores": draw(BATCH, HEADS, QUERIES, KEYS),
}  # fmt: skip
F32 = {
    "table": draw(8, DIM), "weight": draw(HEADS, DIM), "slopes": draw(HEADS), "bias": draw(8, HEADS),
    "values": draw(HEADS, 16),
}  # fmt: skip
TERMS = {"c2p": draw(BATCH, HEADS, QUERIES, 5), "p2c": draw(BATCH, HEADS, KEYS, 5)}
WINDOW = RANDOM.integers(0, 8, (QUERIES, KEYS)).astype("int32")
ROTATION = {"cos": draw(8, DIM // 2), "sin": draw(8, DIM // 2)}
PARAMETERS = {  # of references, unless a case has others
    "batch": 1, "queries": QUERIES, "keys": KEYS, "query_offset": 0, "causal": False, "num_buckets": 8,
    "max_distance": 16, "bidirectional": True, "scale": 1.0, "x_scale": 1.0, "dim": DIM, "layout": "interleaved",
    "rotary_dim": DIM, "rotary_offset": 0, "across_heads": False,
}  # fmt: skip


class Case(NamedTuple):
    """Arguments of a kernel."""

    x: str = ""  # key of X; "": the kernel has none
    own_dtype: Arrays = {}  # arrays with the dtype under test
    float32: Arrays = {}  # arrays with this dtype
    others: Arrays = {}  # arguments that are the same for all frameworks


CASES = {
    "sinusoidal_add": Case("tokens", {}, {}, {"freqs": FREQS, "positions": POSITIONS, "x_scale": 2.0}),
    "learned_add": Case("tokens", {}, {"table": F32["table"]}, {"positions": POSITIONS, "x_scale": 2.0}),
    "learned_grad": Case("tokens", {}, {}, {"positions": POSITIONS, "rows": 8}),
    "rope_half": Case("heads", ROTATION, {}, {"positions": POSITIONS}),
    "rope_interleaved": Case("heads", ROTATION, {}, {"positions": POSITIONS, "transpose": True}),
    "rope_qk_norm": Case("heads", ROTATION, {"weight": F32["weight"]},
                         {"positions": POSITIONS, "epsilon": 1e-3, "weight_offset": 1.0}),
    "alibi": Case("", {}, {"slopes": F32["slopes"]}, {"queries": QUERIES, "keys": KEYS, "query_offset": 2}),
    "alibi_add": Case("scores", {}, {"slopes": F32["slopes"]}, {"query_offset": 2, "x_scale": 0.5}),
    "t5_bias": Case("", {}, {"table": F32["bias"]},
                    {"buckets": BUCKETS, "queries": QUERIES, "keys": KEYS, "query_offset": 1}),
    "t5_bias_add": Case("scores", {}, {"table": F32["bias"]}, {"buckets": BUCKETS, "query_offset": 1}),
    "distance_bias": Case("", {}, {"values": F32["values"]}, {"queries": QUERIES, "keys": KEYS, "first": -6}),
    "distance_bias_add": Case("scores", {}, {"values": F32["values"]}, {"first": -6, "x_scale": 2.0}),
    "window_bias": Case("", {}, {"table": F32["bias"]}, {"index": WINDOW}),
    "window_bias_add": Case("scores", {}, {"table": F32["bias"]}, {"index": WINDOW}),
    "relative_bias": Case("", TERMS, {}, {"index": INDEX, "scale": 0.5}),
    "relative_bias_add": Case("scores", TERMS, {}, {"index": INDEX, "scale": 0.5, "x_scale": 2.0}),
    "relative_sum": Case("scores", {}, {}, {"index": INDEX, "columns": 5}),
}  # fmt: skip
TABLE_KERNELS = ("sinusoidal", "rope_table")
NOT_IN_PLACE = ("learned_grad", "relative_sum")


def call(kernel: str, framework: Framework, **more: Any) -> Any:
    """Calls a kernel with the arrays of its case. Returns the result and x."""
    case = CASES[kernel]
    given = {name: framework.array(value) for name, value in case.own_dtype.items()}
    given.update({name: framework.array(value, "float32") for name, value in case.float32.items()})
    x = framework.array(X[case.x]) if case.x else None
    args = () if x is None else (x,)
    if more.pop("in_place", False):
        more["out"] = x
    return getattr(posenc, kernel)(*args, **given, **case.others, **more), x


def expected(kernel: str, shape: Any) -> Any:
    """Returns the result of the reference. It takes no batches of tokens, so they are passed as further tokens."""
    case = CASES[kernel]
    inputs, tokens = {**case.own_dtype, **case.float32}, POSITIONS.ravel()
    if "index" in case.others:
        inputs["index"] = case.others["index"]
    if case.x:
        x = X[case.x]
        inputs["x"] = x if case.x == "scores" else x.reshape(BATCH * TOKENS, *x.shape[2:])
    if "cos" in inputs:
        sign = -1.0 if case.others.get("transpose") else 1.0
        inputs.update(cos=inputs["cos"][tokens], sin=sign * inputs["sin"][tokens])
    elif "positions" in case.others:
        inputs["positions"] = tokens
    if "freqs" in case.others:
        inputs["inv_freq"] = FREQS.inv_freq
    merged = inputs["x"].shape if kernel.endswith("_add") else shape
    scalars = {name: value for name, value in case.others.items() if np.isscalar(value)}
    return Call(FUNCTIONS[kernel], kernel)(inputs, {**PARAMETERS, **scalars, "shape": merged}).reshape(shape)


def check(kernel: str, framework: Framework, result: Any) -> None:
    """Compares a result with the reference, within a few ulp of the largest term; 16-bit types within one ulp."""
    want = expected(kernel, result.shape)
    allowed = 2.0**-19 * max(1.0, abs(want).max())
    np.testing.assert_allclose(framework.numbers(result), want, rtol=framework.ulp, atol=allowed)


def test_every_kernel_has_a_case() -> None:
    table = ROOT / "impl" / "include" / "posenc_kernels.def"
    kernels = re.findall(r"^POSENC_KERNEL\(\w+, (\w+),", table.read_text(encoding="utf-8"), re.M)
    assert {*kernels} == {*CASES, *TABLE_KERNELS} and {*kernels} <= {*posenc.__all__}
    stub = Path(posenc._core.__file__).with_name("_core.pyi").read_text()
    for kernel in kernels:
        function = getattr(posenc, kernel)
        assert f"def {kernel}(" in stub and "backend" in inspect.signature(function).parameters
        assert function.__doc__.count("Raises posenc.Error: status ") == 1


@pytest.mark.parametrize("kernel", CASES)
def test_result_is_an_array_of_the_framework(kernel: str, framework: Framework) -> None:
    result, x = call(kernel, framework)
    is_float32 = kernel not in ("relative_bias", "relative_sum") and (x is None or kernel == "learned_grad")
    assert str(result.dtype).endswith("float32" if is_float32 else framework.dtype)
    check(kernel, framework._replace(dtype="float32") if is_float32 else framework, result)
    if x is not None:
        assert (framework.numbers(x) == X[CASES[kernel].x]).all()


@pytest.mark.parametrize("kernel", [kernel for kernel in CASES if CASES[kernel].x and kernel not in NOT_IN_PLACE])
def test_in_place(kernel: str, framework: Framework) -> None:
    if framework.name == "jax":
        with pytest.raises(posenc.Error, match="out is read-only"):
            call(kernel, framework, in_place=True)
        return
    result, x = call(kernel, framework, in_place=True)
    assert result is x
    check(kernel, framework, result)


@pytest.mark.parametrize("backend", posenc.backends())
@pytest.mark.parametrize("kernel", CASES)
def test_each_backend(kernel: str, backend: str) -> None:
    framework = Framework("numpy", "float32")
    check(kernel, framework, call(kernel, framework, backend=backend)[0])


def test_tables(framework_name: str) -> None:
    framework = Framework(framework_name, "float32")
    positions = framework.array(POSITIONS, "int32")
    cos, sin = posenc.rope_table(FREQS, positions)
    tables = cos, sin, posenc.sinusoidal(FREQS, positions)
    tokens, inv_freq = POSITIONS.ravel(), FREQS.inv_freq
    wanted = (*table(tokens, inv_freq, 1.0), sinusoidal(tokens, inv_freq, DIM, "interleaved", 1.0))
    for got, want in zip(tables, wanted):
        np.testing.assert_allclose(framework.numbers(got), want.reshape(got.shape), rtol=2.0**-23)


def test_ranges_and_integers() -> None:
    cos, sin = posenc.rope_table(FREQS, range(5, 9))
    again = np.empty_like(cos), np.empty_like(sin)
    returned = posenc.rope_table(FREQS, 5, cos=again[0], sin=again[1])
    assert returned[0] is again[0] and returned[1] is again[1]
    assert (again[0] == cos).all() and (again[1] == sin).all()
    np.testing.assert_allclose(sin, table(np.arange(5, 9), FREQS.inv_freq, 1.0)[1], rtol=2.0**-22)
    x = draw(4, HEADS, DIM).astype("float32")
    want = posenc.rope_half(x, cos, sin)
    for positions in (0, None, np.int64(0), range(4), np.arange(4), np.arange(4, dtype="int32"), np.array(0)):
        assert (posenc.rope_half(x, cos, sin, positions) == want).all()
    with pytest.raises(posenc.Error, match="expected a range of 4 with step 1"):
        posenc.rope_half(x, cos, sin, range(3))


def test_slopes_by_batch() -> None:
    slopes = draw(BATCH, HEADS).astype("f4")
    want, zeros = alibi(slopes, BATCH, QUERIES, KEYS, 2, False), np.zeros((BATCH, HEADS, QUERIES, KEYS), "f4")
    assert (posenc.alibi_add(zeros, slopes, query_offset=2) == want).all()
    assert (posenc.alibi(slopes, queries=QUERIES, keys=KEYS, query_offset=2) == want).all()
    assert (posenc.alibi_add(zeros, np.tile(slopes, 2)[:, :HEADS], query_offset=2) == want).all()
    assert (posenc.alibi_add(zeros, slopes[:1], query_offset=2) == want[0]).all()


def test_one_term() -> None:
    for name, term in TERMS.items():
        terms = {name: term.astype("f4")}
        want = relative_bias(INDEX, QUERIES, KEYS, 0.5, **terms)
        assert (posenc.relative_bias(INDEX, scale=0.5, **terms) == want).all()


def test_axes() -> None:
    """Several axes: [axes, tokens] and [axes, batch, tokens]; [tokens] gives all axes the same."""
    freqs = posenc.Frequencies(DIM, mrope_section=[2, 1, 1])
    assert (freqs.n_axes, freqs.axis) == (3, (0, 0, 1, 2))
    positions = RANDOM.integers(0, 100, (3, BATCH, TOKENS))
    cos, _ = posenc.rope_table(freqs, positions)
    assert cos.shape == (BATCH, TOKENS, DIM // 2)
    np.testing.assert_allclose(cos, np.cos(positions[[0, 0, 1, 2]].transpose(1, 2, 0) * freqs.inv_freq), rtol=2.0**-22)
    assert (posenc.rope_table(freqs, positions[:, 1])[0] == cos[1]).all()
    same = posenc.rope_table(freqs, np.broadcast_to(positions[0, 0], (3, TOKENS)))[0]
    assert (posenc.rope_table(freqs, positions[0, 0])[0] == same).all() and (same[:, 0] == cos[0, :, 0]).all()


@pytest.mark.parametrize("view", [
    lambda: np.zeros((BATCH, HEADS, TOKENS, DIM), "f4").transpose(0, 2, 1, 3),
    lambda: np.zeros((BATCH, TOKENS, 3 * HEADS, DIM), "f4")[:, :, HEADS : 2 * HEADS],
    lambda: np.zeros((BATCH, TOKENS, HEADS, DIM + 3), "f4")[..., 1 : DIM + 1],
    lambda: np.zeros((BATCH, TOKENS, HEADS, DIM), "f4")[::-1, ::-1],
    lambda: np.zeros((2 * BATCH, 3 * TOKENS, HEADS, DIM), "f4")[::2, ::3],
])  # fmt: skip
def test_strides(view: Callable[[], Any]) -> None:
    """Views without copies: transposed, a part of a fused tensor, cut, reversed, with steps."""
    framework = Framework("numpy", "float32")
    out = view()
    base = out if out.base is None else out.base
    result, _ = call("rope_half", framework, out=out)
    assert result is out
    check("rope_half", framework, out)
    assert np.count_nonzero(base) == np.count_nonzero(out)
    x = view()
    x[...] = X["heads"]
    posenc.rope_half(x, *(one.astype("f4") for one in ROTATION.values()), POSITIONS, out=x)
    assert (x == out).all()
