"""Operators of PyTorch: formula, gradients, torch.compile() and models of transformers."""

import importlib
import re
import runpy
import shutil
from typing import Any, Dict, Iterator, List, Tuple

import pytest

torch: Any = pytest.importorskip("torch", "2.4", reason="PyTorch is missing or older than 2.4")
from conftest import ROOT, python_blocks  # noqa: E402

import posenc  # noqa: E402
import posenc.torch  # noqa: E402

KERNELS = ["rope_half", "rope_interleaved"]
LAYOUTS = {  # shape of x, leading dimensions of cos, heads_first
    "tokens first": ((2, 5, 3, 8), (5,), False),
    "one batch of rows": ((2, 5, 3, 8), (1, 5), False),
    "rows by batch": ((2, 5, 3, 8), (2, 5), False),
    "heads first": ((2, 3, 5, 8), (1, 5), True),
    "heads first, rows by batch": ((2, 3, 5, 8), (2, 5), True),
    "no batch": ((5, 3, 8), (5,), False),
    "no batch, heads first": ((3, 5, 8), (1, 5), True),
    "one token": ((2, 3, 1, 8), (2, 1), True),
    "no token": ((2, 3, 0, 8), (0,), True),
}


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=list(LAYOUTS))
def layout(request: pytest.FixtureRequest) -> Tuple[Any, ...]:
    return LAYOUTS[request.param]


def inputs(layout: Tuple[Any, ...], dtype: Any = None, pairs: int = 3) -> Tuple[Any, ...]:
    """Returns x, cos, sin and heads_first of a layout. Six of eight channels are rotated."""
    shape, rows, heads_first = layout
    generator = torch.Generator().manual_seed(len(shape))
    x = torch.randn(shape, generator=generator).to(dtype or torch.float32)
    angles = torch.randn((*rows, pairs), generator=generator)
    return x, angles.cos(), angles.sin(), heads_first


def rotate(kernel: str, x: Any, cos: Any, sin: Any, heads_first: bool = False) -> Tuple[Any, Any]:
    """Returns the rotation in double precision, and the larger product of each element."""
    x = x.detach().double().unsqueeze(0)  # a batch, so that tables with and without one broadcast
    cos, sin = (table.detach().double().unsqueeze(-2) for table in (cos, sin))  # for all heads
    if heads_first:
        cos, sin = cos.transpose(-2, -3), sin.transpose(-2, -3)
    pairs = cos.shape[-1]
    first, second = slice(pairs), slice(pairs, 2 * pairs)
    if kernel == "rope_interleaved":
        first, second = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    out, larger = x.clone(), torch.zeros_like(x)
    a, b = x[..., first], x[..., second]
    out[..., first], out[..., second] = a * cos - b * sin, b * cos + a * sin
    larger[..., first] = torch.maximum((a * cos).abs(), (b * sin).abs())
    larger[..., second] = torch.maximum((b * cos).abs(), (a * sin).abs())
    return out.squeeze(0), larger.squeeze(0)


def assert_rotated(result: Any, kernel: str, x: Any, cos: Any, sin: Any, heads_first: bool = False) -> None:
    """Checks that a result is within two units in the last place of the larger product."""
    expected, larger = rotate(kernel, x, cos, sin, heads_first)
    assert result.shape == x.shape and result.dtype == x.dtype
    assert ((result.double() - expected).abs() <= 2 * torch.finfo(x.dtype).eps * larger).all()


# ---- The operators ----


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_formula(kernel: str, layout: Tuple[Any, ...], dtype: str) -> None:
    x, cos, sin, heads_first = inputs(layout, getattr(torch, dtype))
    operator, before = getattr(torch.ops.posenc, kernel), x.clone()
    assert_rotated(operator(x, cos, sin, heads_first), kernel, x, cos, sin, heads_first)
    assert_rotated(operator(x, cos, sin, heads_first, transpose=True), kernel, x, cos, -sin, heads_first)
    assert x.equal(before)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)  # as models with 16-bit weights have them
    assert_rotated(operator(x, cos, sin, heads_first), kernel, x, cos, sin, heads_first)


def test_pair_is_two_calls(kernel: str, layout: Tuple[Any, ...]) -> None:
    x, cos, sin, heads_first = inputs(layout)
    keys = x[:, :1] if heads_first and x.dim() == 4 else x + 1
    operator, pair = getattr(torch.ops.posenc, kernel), getattr(torch.ops.posenc, f"{kernel}_qk")
    q, k, twin_q, twin_k = (one.clone().requires_grad_() for one in (x, keys, x, keys))
    for transpose in (False, True):
        results = pair(q, k, cos, sin, heads_first, transpose)
        expected = [operator(one, cos, sin, heads_first, transpose) for one in (twin_q, twin_k)]
        assert results[0].equal(expected[0]) and results[1].equal(expected[1])
        (results[0].square().sum() + results[1].sum()).backward()
        (expected[0].square().sum() + expected[1].sum()).backward()
    assert q.grad.equal(twin_q.grad) and k.grad.equal(twin_k.grad)


def test_any_strides(kernel: str) -> None:
    x, cos, sin, _ = inputs(LAYOUTS["tokens first"])
    operator = getattr(torch.ops.posenc, kernel)
    apart = x.transpose(1, 3).contiguous().transpose(1, 3)
    assert apart.stride(-1) != 1
    for strided in (apart, x[:, ::2].repeat_interleave(2, 1)[:, :5], x[:1].expand(2, -1, -1, -1)):
        assert_rotated(operator(strided, cos, sin), kernel, strided, cos, sin)
    wide = torch.stack((cos, sin), -1)
    assert operator(x, wide[..., 0], wide[..., 1]).equal(operator(x, cos, sin))
    heads_first = x.transpose(1, 2)
    assert operator(heads_first, cos, sin, heads_first=True).stride() == heads_first.stride()


def test_rejected_calls(kernel: str) -> None:
    x, cos, sin, _ = inputs(LAYOUTS["tokens first"])
    operator = getattr(torch.ops.posenc, kernel)
    for rows in (cos[:4], cos.expand(3, 5, 3), cos[:, None]):
        with pytest.raises(posenc.Error, match=r"cos has the shape .*expected \[5, rotary_dim/2\] or \[2, 5"):
            operator(x, rows, sin)
        with pytest.raises(posenc.Error, match="sin has the shape"):
            operator(x, cos, rows)
    for other in (x[0, 0], x[None]):
        with pytest.raises(posenc.Error, match=f"x has {other.dim()} dimensions, expected 3 or 4"):
            operator(other, cos, sin)
    with pytest.raises(posenc.Error, match="k has 4 tokens, expected 5"):
        getattr(torch.ops.posenc, f"{kernel}_qk")(x, x[:, :4], cos, sin)
    with pytest.raises(posenc.Error, match="float64"):
        operator(x.double(), cos, sin)
    with pytest.raises(posenc.Error, match="sin requires gradients"):
        operator(x, cos, sin.clone().requires_grad_())
    with torch.no_grad():
        operator(x, cos, sin.clone().requires_grad_())


# ---- Gradients ----


def test_gradients_against_differences(kernel: str, layout: Tuple[Any, ...]) -> None:
    """Compares first and second derivatives with differences.

    The kernels have no float64. A rotation is linear, so differences of a step of 1 are exact but for rounding.
    """
    x, cos, sin, heads_first = inputs(layout)
    x.requires_grad_()
    operator = getattr(torch.ops.posenc, kernel)
    for transpose in (False, True):
        with pytest.warns(UserWarning, match="double precision"):
            for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
                arguments = [x, cos, sin, heads_first, transpose]
                assert check(operator, arguments, eps=1.0, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_gradient_is_the_inverse_rotation(kernel: str, layout: Tuple[Any, ...], dtype: str) -> None:
    x, cos, sin, heads_first = inputs(layout, getattr(torch, dtype))
    x.requires_grad_()
    y = getattr(torch.ops.posenc, kernel)(x, cos, sin, heads_first)
    y.sum().backward()  # the gradient of y has stride 0
    assert_rotated(x.grad, kernel, torch.ones_like(x), cos, -sin, heads_first)


# ---- Registration and compilers ----


def test_opcheck(kernel: str, layout: Tuple[Any, ...]) -> None:
    x, cos, sin, heads_first = inputs(layout)
    operator, pair = (getattr(torch.ops.posenc, name).default for name in (kernel, f"{kernel}_qk"))
    permuted, apart = (x.transpose(0, i).contiguous().transpose(0, i) for i in (1, -1))
    for one in (permuted.requires_grad_(), apart):
        torch.library.opcheck(operator, (one, cos, sin, heads_first))
        torch.library.opcheck(pair, (one, x, cos, sin, heads_first))


@pytest.mark.parametrize("compiler", ["aot_eager", "inductor"])
def test_compile(kernel: str, compiler: str) -> None:
    if compiler == "inductor" and not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("no C++ compiler")
    operator, pair = getattr(torch.ops.posenc, kernel), getattr(torch.ops.posenc, f"{kernel}_qk")

    def scores(q: Any, k: Any, cos: Any, sin: Any) -> Any:
        q, k = pair(q, 2 * k, cos, sin, True)
        return (operator(q, cos, sin, True, True) @ k.transpose(-1, -2)).relu()

    compiled = torch.compile(scores, fullgraph=True, backend=compiler)
    for tokens in (5, 7):  # the second length compiles for any
        q, cos, sin, _ = inputs(((2, 3, tokens, 8), (1, tokens), True))
        results: List[Any] = []
        for function in (scores, compiled):
            x = q.clone().requires_grad_()
            y = function(x, q, cos, sin)
            y.sum().backward()
            results += [y.detach(), x.grad]
        torch.testing.assert_close(results[2:], results[:2])


# ---- Models ----


class Calls(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
    """Counts the calls of operators of posenc."""

    n = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.n += function.namespace == "posenc"
        return function(*args, **(kwargs or {}))


@pytest.fixture
def model() -> Iterator[Any]:
    """Returns a Llama with two layers and random weights."""
    transformers = pytest.importorskip("transformers", "5", reason="transformers is missing or older than 5")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, pad_token_id=0, eos_token_id=None, bos_token_id=1,
    )  # fmt: skip
    yield transformers.LlamaForCausalLM(config).eval()


def tokens_of(model: Any) -> Any:
    return torch.randint(1, model.config.vocab_size, (2, 40), generator=torch.Generator().manual_seed(1))


def results_of(model: Any) -> Tuple[Any, Dict[str, Any]]:
    """Returns logits and gradients."""
    model.zero_grad()
    out = model(tokens_of(model), labels=tokens_of(model))
    out.loss.backward()
    return out.logits.detach().double(), {name: one.grad.double() for name, one in model.named_parameters()}


def relative_difference(ours: Any, theirs: Any) -> float:
    """Returns the largest difference relative to the largest value."""
    return float((ours - theirs).abs().max() / theirs.abs().max())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_llama_has_the_same_logits_and_gradients(model: Any, dtype: str) -> None:
    """Bounds are in units in the last place of the largest logit and of the largest gradient of each weight."""
    model.to(getattr(torch, dtype))
    logits, gradients = results_of(model)
    with posenc.torch.apply_to(model):
        with Calls() as calls:
            model(tokens_of(model))
        assert calls.n == 2  # one for each layer
        our_logits, our_gradients = results_of(model)
    eps = torch.finfo(model.dtype).eps
    assert relative_difference(our_logits, logits) <= 8 * eps
    assert max(relative_difference(our_gradients[name], gradients[name]) for name in gradients) <= 32 * eps


def test_llama_generates_the_same_tokens(model: Any) -> None:
    prompt = tokens_of(model)
    mask = torch.ones_like(prompt)
    mask[1, :9] = 0  # padding on the left: positions differ in the batch
    arguments = {"attention_mask": mask, "max_new_tokens": 24, "do_sample": False}
    expected = model.generate(prompt, **arguments)
    with posenc.torch.apply_to(model), Calls() as calls:
        assert model.generate(prompt, **arguments).equal(expected)
    assert calls.n == 2 * 24 and expected.shape == (2, 64)
    assert not model.generate(prompt, **{**arguments, "attention_mask": mask.fill_(1)})[1].equal(expected[1])


def test_llama_compiles(model: Any) -> None:
    with torch.no_grad(), posenc.torch.apply_to(model):
        expected = model(tokens_of(model)).logits
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(tokens_of(model)).logits, expected)


def test_apply_to_ends_with_its_block(model: Any) -> None:
    module = importlib.import_module(type(model).__module__)
    original = module.apply_rotary_pos_emb
    with pytest.raises(KeyError), posenc.torch.apply_to(model):
        assert module.apply_rotary_pos_emb is not original
        with posenc.torch.apply_to(model):
            pass
        assert module.apply_rotary_pos_emb is not original
        raise KeyError
    assert module.apply_rotary_pos_emb is original


@pytest.mark.parametrize("name", ["llama", "gpt_neox", "glm", "cohere", "gpt_oss", "pixtral"])
def test_forms_of_models(name: str) -> None:
    pytest.importorskip("transformers", "5", reason="transformers is missing or older than 5")
    original = importlib.import_module(f"transformers.models.{name}.modeling_{name}").apply_rotary_pos_emb
    replacement = posenc.torch._replacement_of(original)
    q, cos, sin, _ = inputs(((2, 3, 5, 8), (2, 5), True), pairs=4)
    if name != "gpt_oss":  # each value stands twice
        cohere = name == "cohere"
        cos, sin = (one.repeat_interleave(2, -1) if cohere else torch.cat((one, one), -1) for one in (cos, sin))
    torch.testing.assert_close(replacement(q, q[:, :1], cos, sin), tuple(original(q, q[:, :1], cos, sin)))
    q = q.transpose(1, 2)
    ours = replacement(q, q[:, :, :1], cos, sin, unsqueeze_dim=2)
    torch.testing.assert_close(ours, tuple(original(q, q[:, :, :1], cos, sin, unsqueeze_dim=2)))
    q, cos, sin = q[0].transpose(0, 1), cos[0], sin[0]
    torch.testing.assert_close(replacement(q, q, cos, sin, unsqueeze_dim=0), tuple(original(q, q, cos, sin, 0)))


def test_rejected_models(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(posenc.Error, match="no module of Linear has a function apply_rotary_pos_emb"):
        posenc.torch.apply_to(torch.nn.Linear(2, 2)).__enter__()
    module = importlib.import_module(type(model).__module__)
    original = module.apply_rotary_pos_emb

    def inverse(q: Any, k: Any, cos: Any, sin: Any) -> Any:
        return original(q, k, cos, -sin)

    for other in (inverse, lambda q, k, cos, sin: original(q, 2 * k, cos, sin), lambda x: x, lambda *args: args[0]):
        monkeypatch.setattr(module, "apply_rotary_pos_emb", other)
        with pytest.raises(posenc.Error, match="is no rotation"):
            posenc.torch.apply_to(model).__enter__()
        assert module.apply_rotary_pos_emb is other


# ---- Documentation ----


def test_page() -> None:
    pytest.importorskip("transformers", "5", reason="transformers is missing or older than 5")
    exec(python_blocks("docs/python.md")[-1], {})


def test_example(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", "5", reason="transformers is missing or older than 5")
    threads = torch.get_num_threads()
    runpy.run_path(str(ROOT / "examples/torch_llama.py"))["main"]("float32", 8, 256, 4)
    torch.set_num_threads(threads)
    rows = re.findall(r"^(rotation|model), [18] tokens? .* ms .* ms  .*x \(.* to .*\)$", capsys.readouterr().out, re.M)
    assert rows == ["rotation", "rotation", "model", "model"]
