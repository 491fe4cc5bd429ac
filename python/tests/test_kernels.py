"""Each kernel on arrays of each framework, against its formula in NumPy."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple, Tuple

import numpy as np
import posenc
import pytest
from conftest import Framework

RANDOM = np.random.default_rng(1)
B, T, H, D, Q, K = 2, 5, 3, 8, 4, 6  # batch, tokens, heads, head_dim, queries, keys
FREQS = posenc.Frequencies(D, rope_theta=100.0)
POSITIONS = np.array([[3, 0, 7, 2, 1], [6, 6, 5, 4, 0]])
BUCKETS = posenc.t5_buckets(8, 16, True)
INDEX = posenc.shaw_index(Q, K, 2)  # 5 columns

Arrays = Dict[str, Any]


def draw(*shape: int) -> Any:
    """Returns values that each element type has."""
    return RANDOM.integers(-64, 65, shape) / 32.0


def angles(positions: Any) -> Tuple[Any, Any]:
    angle = np.asarray(positions)[..., None] * np.asarray(FREQS.inv_freq)
    return np.cos(angle), np.sin(angle)


def encoding(positions: Any) -> Any:
    cos, sin = angles(positions)
    return np.stack([sin, cos], -1).reshape(*np.shape(positions), D)


def half(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x[..., : D // 2], x[..., D // 2 :]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def interleaved(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x[..., ::2], x[..., 1::2]
    return np.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape)


def normalised(x: Any, weight: Any) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * (weight + 1)


def rows(table: Any) -> Any:
    """Returns rows of cosines or sines, with an axis for heads."""
    return table[POSITIONS][:, :, None]


def distances(offset: int = 0) -> Any:
    return np.arange(Q)[:, None] + offset - np.arange(K)


def linear(slopes: Any) -> Any:
    return -slopes[:, None, None] * abs(distances(2))


def bucketed(table: Any) -> Any:
    far = np.searchsorted(BUCKETS.thresholds, abs(distances(1)), "right") - 1
    return table[far + 4 * (distances(1) < 0)].transpose(2, 0, 1)


def relative(c2p: Any, p2c: Any) -> Any:
    column = INDEX[distances() + K - 1]
    by_query = np.take_along_axis(c2p, np.broadcast_to(column, (B, H, Q, K)), -1)
    by_key = np.take_along_axis(p2c, np.broadcast_to(column.T, (B, H, K, Q)), -1).swapaxes(-1, -2)
    return 0.5 * (by_query + by_key)


def gradient(x: Any) -> Any:
    out = np.zeros((8, D))
    np.add.at(out, POSITIONS, x)
    return out


def summed(x: Any) -> Any:
    out = np.zeros((B, H, Q, 5))
    for i in range(Q):
        for j in range(K):
            out[:, :, i, INDEX[i - j + K - 1]] += x[:, :, i, j]
    return out


X = {"tokens": draw(B, T, D), "heads": draw(B, T, H, D), "scores": draw(B, H, Q, K)}
COS, SIN = draw(8, D // 2), draw(8, D // 2)
F32 = {"table": draw(8, D), "weight": draw(H, D), "slopes": draw(H), "bias": draw(8, H), "values": draw(H, 16)}
C2P, P2C = draw(B, H, Q, 5), draw(B, H, K, 5)
WINDOW = RANDOM.integers(0, 8, (Q, K)).astype("int32")
ROTATION = {"cos": COS, "sin": SIN}


class Case(NamedTuple):
    """Arguments of a kernel, and the formula of its result."""

    x: str  # key of X, or empty
    own_dtype: Arrays  # arrays of the dtype of the framework
    float32: Arrays
    others: Arrays
    formula: Callable[..., Any]


CASES = {
    "sinusoidal_add": Case("tokens", {}, {}, {"freqs": FREQS, "positions": POSITIONS, "x_scale": 2.0},
                           lambda x: 2 * x + encoding(POSITIONS)),
    "learned_add": Case("tokens", {}, {"table": F32["table"]}, {"positions": POSITIONS, "x_scale": 2.0},
                        lambda x: 2 * x + F32["table"][POSITIONS]),
    "learned_grad": Case("tokens", {}, {}, {"positions": POSITIONS, "rows": 8}, gradient),
    "rope_half": Case("heads", ROTATION, {}, {"positions": POSITIONS}, lambda x: half(x, rows(COS), rows(SIN))),
    "rope_interleaved": Case("heads", ROTATION, {}, {"positions": POSITIONS, "transpose": True},
                             lambda x: interleaved(x, rows(COS), -rows(SIN))),
    "rope_qk_norm": Case("heads", ROTATION, {"weight": F32["weight"]},
                         {"positions": POSITIONS, "epsilon": 1e-3, "weight_offset": 1.0},
                         lambda x: half(normalised(x, F32["weight"]), rows(COS), rows(SIN))),
    "alibi": Case("", {}, {"slopes": F32["slopes"]}, {"queries": Q, "keys": K, "query_offset": 2},
                  lambda: linear(F32["slopes"])),
    "alibi_add": Case("scores", {}, {"slopes": F32["slopes"]}, {"query_offset": 2, "x_scale": 0.5},
                      lambda x: 0.5 * x + linear(F32["slopes"])),
    "t5_bias": Case("", {}, {"table": F32["bias"]}, {"buckets": BUCKETS, "queries": Q, "keys": K, "query_offset": 1},
                    lambda: bucketed(F32["bias"])),
    "t5_bias_add": Case("scores", {}, {"table": F32["bias"]}, {"buckets": BUCKETS, "query_offset": 1},
                        lambda x: x + bucketed(F32["bias"])),
    "distance_bias": Case("", {}, {"values": F32["values"]}, {"queries": Q, "keys": K, "first": -6},
                          lambda: F32["values"][:, distances() + 6]),
    "distance_bias_add": Case("scores", {}, {"values": F32["values"]}, {"first": -6, "x_scale": 2.0},
                              lambda x: 2 * x + F32["values"][:, distances() + 6]),
    "window_bias": Case("", {}, {"table": F32["bias"]}, {"index": WINDOW},
                        lambda: F32["bias"][WINDOW].transpose(2, 0, 1)),
    "window_bias_add": Case("scores", {}, {"table": F32["bias"]}, {"index": WINDOW},
                            lambda x: x + F32["bias"][WINDOW].transpose(2, 0, 1)),
    "relative_bias": Case("", {"c2p": C2P, "p2c": P2C}, {}, {"index": INDEX, "scale": 0.5}, lambda: relative(C2P, P2C)),
    "relative_bias_add": Case("scores", {"c2p": C2P, "p2c": P2C}, {}, {"index": INDEX, "scale": 0.5, "x_scale": 2.0},
                              lambda x: 2 * x + relative(C2P, P2C)),
    "relative_sum": Case("scores", {}, {}, {"index": INDEX, "columns": 5}, summed),
}  # fmt: skip
TABLE_KERNELS = ("sinusoidal", "rope_table")
NOT_IN_PLACE = ("learned_grad", "relative_sum")
ALL_WORDS = {word for name in (*CASES, *TABLE_KERNELS) for word in inspect.signature(getattr(posenc, name)).parameters}


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


def check(kernel: str, framework: Framework, result: Any) -> None:
    """Compares a result with the formula, within a few ulp of the largest term; 16-bit types within one ulp."""
    case = CASES[kernel]
    expected = case.formula(*([X[case.x]] if case.x else []))
    allowed = 2.0**-19 * max(1.0, abs(expected).max())
    np.testing.assert_allclose(framework.numbers(result), expected, rtol=framework.ulp, atol=allowed)


def test_every_kernel_has_a_case() -> None:
    table = Path(__file__).resolve().parents[2] / "impl" / "include" / "posenc_kernels.def"
    kernels = re.findall(r"^POSENC_KERNEL\(\w+, (\w+),", table.read_text(encoding="utf-8"), re.M)
    assert {*kernels} == {*CASES, *TABLE_KERNELS} and {*kernels} <= {*posenc.__all__}


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
    for got, expected in zip(tables, (*angles(POSITIONS), encoding(POSITIONS))):
        np.testing.assert_allclose(framework.numbers(got), expected, rtol=2.0**-23)


def test_ranges_and_integers() -> None:
    cos, sin = posenc.rope_table(FREQS, range(5, 9))
    again = np.empty_like(cos), np.empty_like(sin)
    returned = posenc.rope_table(FREQS, 5, cos=again[0], sin=again[1])
    assert returned[0] is again[0] and returned[1] is again[1]
    assert (again[0] == cos).all() and (again[1] == sin).all()
    np.testing.assert_allclose(sin, angles(range(5, 9))[1], rtol=2.0**-22)
    x = draw(4, H, D).astype("float32")
    expected = posenc.rope_half(x, cos, sin)
    for positions in (0, None, np.int64(0), range(4), np.arange(4), np.arange(4, dtype="int32"), np.array(0)):
        assert (posenc.rope_half(x, cos, sin, positions) == expected).all()
    with pytest.raises(posenc.Error, match="expected a range of 4 with step 1"):
        posenc.rope_half(x, cos, sin, range(3))


def test_slopes_by_batch() -> None:
    slopes = draw(B, H).astype("f4")
    expected = np.stack([linear(one) for one in slopes])
    zeros = np.zeros((B, H, Q, K), "f4")
    assert (posenc.alibi_add(zeros, slopes, query_offset=2) == expected).all()
    assert (posenc.alibi(slopes, queries=Q, keys=K, query_offset=2) == expected).all()
    assert (posenc.alibi_add(zeros, np.tile(slopes, 2)[:, :H], query_offset=2) == expected).all()
    assert (posenc.alibi_add(zeros, slopes[:1], query_offset=2) == expected[0]).all()


def test_one_term() -> None:
    for words in ({"c2p": C2P.astype("f4")}, {"p2c": P2C.astype("f4")}):
        both = [words.get("c2p", np.zeros_like(C2P)), words.get("p2c", np.zeros_like(P2C))]
        assert (posenc.relative_bias(INDEX, scale=0.5, **words) == relative(*both)).all()


def test_axes() -> None:
    """Several axes: [axes, tokens] and [axes, batch, tokens]; [tokens] gives all axes the same."""
    freqs = posenc.Frequencies(D, mrope_section=[2, 1, 1])
    assert (freqs.n_axes, freqs.axis) == (3, (0, 0, 1, 2))
    positions = RANDOM.integers(0, 100, (3, B, T))
    cos, _ = posenc.rope_table(freqs, positions)
    assert cos.shape == (B, T, D // 2)
    np.testing.assert_allclose(cos, np.cos(positions[[0, 0, 1, 2]].transpose(1, 2, 0) * freqs.inv_freq), rtol=2.0**-22)
    assert (posenc.rope_table(freqs, positions[:, 1])[0] == cos[1]).all()
    same = posenc.rope_table(freqs, np.broadcast_to(positions[0, 0], (3, T)))[0]
    assert (posenc.rope_table(freqs, positions[0, 0])[0] == same).all() and (same[:, 0] == cos[0, :, 0]).all()


@pytest.mark.parametrize("view", [
    lambda: np.zeros((B, H, T, D), "f4").transpose(0, 2, 1, 3),
    lambda: np.zeros((B, T, 3 * H, D), "f4")[:, :, H : 2 * H],
    lambda: np.zeros((B, T, H, D + 3), "f4")[..., 1 : D + 1], lambda: np.zeros((B, T, H, D), "f4")[::-1, ::-1],
    lambda: np.zeros((2 * B, 3 * T, H, D), "f4")[::2, ::3],
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
    posenc.rope_half(x, COS.astype("f4"), SIN.astype("f4"), POSITIONS, out=x)
    assert (x == out).all()


def test_signatures_are_those_of_the_stub() -> None:
    """Each parameter is accepted by name, and no other."""
    stub = Path(posenc._core.__file__).with_name("_core.pyi").read_text()
    functions = {one.name: one for one in ast.parse(stub).body if isinstance(one, ast.FunctionDef)}
    for name in (*CASES, *TABLE_KERNELS):
        given = inspect.signature(getattr(posenc, name)).parameters
        args = functions[name].args
        assert [one.arg for one in (*args.args, *args.kwonlyargs)] == list(given)
        assert getattr(posenc, name).__doc__.count("Raises posenc.Error: status ") == 1
        for word in ALL_WORDS:
            with pytest.raises(TypeError) as raised:
                getattr(posenc, name)(**{word: None})
            assert ("unexpected keyword" in str(raised.value)) == (word not in given), (name, word)
