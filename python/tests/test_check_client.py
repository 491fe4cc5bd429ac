"""Tests of posenc.checking.client, which answers the prompts of `posenc verify --exec`, without that program.

A prompt is a problem with its inputs, as a message of docs/protocol.md.
"""

import io
import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import pytest

np = pytest.importorskip("numpy", reason="python3-numpy is missing")

from conftest import ROOT  # noqa: E402

from posenc.checking.arrays import NAMES, Message, Tensor, converter, tensor_of  # noqa: E402
from posenc.checking.arrays import read_message, write_message  # noqa: E402
from posenc.checking.client import Client, UnknownParameter  # noqa: E402
from posenc.checking.kernels import KERNELS, markdown  # noqa: E402


def prompt(kernel: str = "rope_half", arrays: Dict[str, Any] = {}, outputs: Any = None, **parameters: Any) -> Message:
    """Returns a prompt of a kernel. Each of its arrays is [0, 1], unless `arrays` has another; others are added."""
    tensors = {name: tensor_of(np.arange(2, dtype="f4")) for name in KERNELS[kernel].arrays}
    tensors.update((name, tensor_of(array)) for name, array in arrays.items())
    outputs = outputs or {name: {"dtype": "F32", "shape": [2]} for name in KERNELS[kernel].outputs}
    metadata = {"prompt": "7", "kernel": kernel, "dtype": "f32", "numerics": "given", "problem": kernel, "case": "",
                "parameters": json.dumps(parameters), "outputs": json.dumps(outputs)}  # fmt: skip
    return Message(metadata, tensors)


def answer(function: Callable[..., Any], asked: Message, **options: Any) -> Message:
    return Client({asked.metadata["kernel"]: function}, **options).answer(asked)


def copy_of_x(x: Any, *_: Any) -> Any:
    return x.copy()


# ---- Messages ----


@pytest.mark.parametrize("end", [3, 8, 20, -1])  # in the length, before and in the header, in the last byte
def test_a_stream_that_ends_within_a_message_is_an_error(end: int) -> None:
    stream = io.BytesIO()
    write_message(stream, prompt())
    stream.truncate(end if end >= 0 else stream.tell() + end)
    stream.seek(0)
    with pytest.raises(EOFError):
        read_message(stream)


# ---- Arrays ----


@pytest.mark.parametrize("framework", ["numpy", "torch", "jax", "array_api_strict"])
@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), ()])
def test_arrays_keep_type_shape_and_bits(framework: str, dtype: str, shape: Tuple[int, ...]) -> None:
    pytest.importorskip(framework)
    if dtype == "BF16" and framework != "torch":
        pytest.importorskip("ml_dtypes")
    if framework == "array_api_strict" and dtype in ("BF16", "F16"):
        pytest.skip("the standard lacks the type")
    if framework == "jax" and dtype in ("F64", "I64"):
        pytest.skip("JAX has 64-bit types only as an option")
    count = int(np.prod(shape))
    numbers = [1.5, -0.0, float("nan"), 3e38, -2.0, 1e-40] if dtype in ("F32", "F64") else [1, 2, 3, 4, 5, 6]
    # NumPy lacks bfloat16: there the numbers are bits.
    stored = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8", "I32": "<i4", "I64": "<i8"}[dtype]
    tensor = Tensor(dtype, shape, np.array(numbers[:count], stored).tobytes())
    assert tensor_of(converter(framework, None)(tensor)) == tensor


def test_arrays_may_be_strided_big_endian_or_need_gradients() -> None:
    expected = Tensor("F32", (3, 2), np.array([[0, 3], [1, 4], [2, 5]], "<f4").tobytes())
    rows = np.arange(6, dtype="<f4").reshape(2, 3)
    assert tensor_of(rows.T) == expected
    assert tensor_of(rows.astype(">f4").T) == expected
    torch = pytest.importorskip("torch")
    assert tensor_of(torch.from_numpy(rows).requires_grad_().T) == expected


def test_bfloat16_of_numpy_takes_ml_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # type: ignore[misc]
    with pytest.raises(ValueError, match="ml_dtypes"):
        converter("numpy", None)(Tensor("BF16", (1,), b"\0\0"))


# ---- Arguments ----


def test_a_function_gets_arrays_in_order_and_parameters_by_name() -> None:
    seen = []

    def function(x: Any, cosines: Any, sin: Any, rotary_dim: int, *, dtype: str, absent: int = 3) -> Any:
        seen.append((cosines.tolist(), sin.tolist(), rotary_dim, dtype, absent))
        return x.copy()

    asked = prompt(arrays={"cos": np.float32([5, 6]), "sin": np.float32([7, 8])}, rotary_dim=4, head_dim=8)
    assert answer(function, asked).tensors == {"out": asked.tensors["x"]}
    assert seen == [([5, 6], [7, 8], 4, "f32", 3)]


def test_keywords_get_all_parameters() -> None:
    seen = []

    def function(x: Any, cos: Any, sin: Any, **more: Any) -> Any:
        seen.append(more)
        return x.copy()

    answer(function, prompt(rotary_dim=4, head_dim=8))
    assert seen == [{"rotary_dim": 4, "head_dim": 8, "dtype": "f32", "numerics": "given", "shape": (2,)}]


def test_a_module_is_called_as_its_forward_says() -> None:
    class Module:
        def forward(self, x: Any, cos: Any, sin: Any, rotary_dim: int) -> Any:
            return x + rotary_dim

        def __call__(self, *arrays: Any, **words: Any) -> Any:
            return self.forward(*arrays, **words)

    got = answer(Module(), prompt(rotary_dim=4, head_dim=8))
    assert got.tensors["out"] == tensor_of(np.float32([4, 5]))


def test_arrays_that_some_problems_lack_are_passed_by_name() -> None:
    def named(x: Any, positions: Any, init: Any = None) -> Any:
        return x + (0 if init is None else init)

    without_init, with_init = prompt("learned_grad"), prompt("learned_grad", {"init": np.float32([1, 1])})
    assert answer(named, without_init).tensors["out"] == tensor_of(np.float32([0, 1]))
    assert answer(named, with_init).tensors["out"] == tensor_of(np.float32([1, 2]))
    assert answer(copy_of_x, without_init).tensors
    assert answer(lambda x, positions: x, with_init).metadata["declined"] == "the function has no parameter init"


def test_a_parameter_that_no_problem_has_is_an_error() -> None:
    with pytest.raises(UnknownParameter, match="parameter base, .* further arguments: .*rotary_dim"):
        answer(lambda x, cos, sin, base: x, prompt(rotary_dim=4))


# ---- Results ----

WRONG = {
    "nothing": (lambda x, cos, sin: None, "returned nothing; expected out float32 [2]"),
    "a list": (lambda x, cos, sin: x.tolist(), "returned a list; expected out float32 [2]"),
    "a list of an array": (lambda x, cos, sin: [x.copy()], "returned a list; expected out float32 [2]"),
    "a number": (lambda x, cos, sin: 3.0, "returned as out a value of type float is no array; expected float32 [2]"),
    "another type": (lambda x, cos, sin: x.astype("f8"), "returned out as float64 [2]; expected float32 [2]"),
    "another shape": (lambda x, cos, sin: x[None].copy(), "returned out as float32 [1, 2]; expected float32 [2]"),
    "a changed input": (lambda x, cos, sin: np.negative(cos, out=cos) + x, "changed its argument cos; "),
    "its input, changed": (lambda x, cos, sin: np.multiply(x, 2, out=x), "changed its argument x; "),
    "an error": (lambda x, cos, sin: x @ np.ones((3, 3)), "ValueError: matmul"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_result_is_an_error_that_names_the_expected_one(name: str) -> None:
    function, text = WRONG[name]
    got = answer(function, prompt())
    assert got.metadata["prompt"] == "7" and not got.tensors
    assert got.metadata["error"].startswith(text)


def test_two_results_are_a_tuple() -> None:
    asked = prompt("rope_table", outputs={name: {"dtype": "F32", "shape": [2]} for name in ("cos", "sin")})
    got = answer(lambda positions, inv_freq: (np.cos(inv_freq), np.sin(inv_freq)), asked)
    assert got.tensors["sin"] == tensor_of(np.sin(np.float32([0, 1])))
    wrong = answer(lambda positions, inv_freq: inv_freq, asked)
    assert wrong.metadata["error"] == "returned a ndarray; expected cos float32 [2] and sin float32 [2]"


def test_the_traceback_of_an_error_is_kept_without_our_frames() -> None:
    client = Client({"rope_half": lambda x, cos, sin: x.missing})
    text = client.answer(prompt()).metadata["error"]
    (trace,) = client.traces.values()
    assert list(client.traces) == [text] and trace.count("File") == 1 and Path(__file__).name in trace


def test_numpy_does_not_warn_of_overflow(recwarn: pytest.WarningsRecorder) -> None:
    answer(lambda x, cos, sin: x * np.float32(3e38) * np.float32(3e38), prompt())
    assert not recwarn.list


def test_hello_names_only_the_offer() -> None:
    client = Client({"rope_table": copy_of_x}, dtypes="f32 f16", numerics="hf_f32", max_position=4096)
    hello = client.answer(Message({"hello": "1"})).metadata
    assert hello == {"hello": "1", "name": "python", "description": "functions of Python", "kernels": "rope_table",
                     "dtypes": "f32 f16", "numerics": "hf_f32", "max_position": "4096"}  # fmt: skip
    assert "numerics" not in Client({"rope_table": copy_of_x}).hello
    with pytest.raises(ValueError, match="unknown kernel .got 'rope'"):
        Client({"rope": copy_of_x})


def test_the_page_has_the_table_of_kernels() -> None:
    assert markdown() in (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
