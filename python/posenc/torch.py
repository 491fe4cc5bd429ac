"""Rotations as operators of PyTorch on the CPU, for autograd, torch.compile() and models of transformers.

    y = torch.ops.posenc.rope_half(x, cos, sin)           # and rope_interleaved
    q, k = torch.ops.posenc.rope_half_qk(q, k, cos, sin)  # and rope_interleaved_qk: one call costs less than two
    with posenc.torch.apply_to(model): ...                # a model of transformers rotates with them

x, q, k      [tokens, heads, head_dim] or [batch, tokens, heads, head_dim]: float32, float16 or bfloat16, any strides
cos, sin     [tokens, rotary_dim/2] or [batch or 1, tokens, rotary_dim/2], of one of these types: a row for each token
heads_first  True if heads come before tokens: [batch, heads, tokens, head_dim]
transpose    True for the inverse rotation, by -sin

Results are new tensors like x. The gradient with respect to x is the inverse rotation. Gradients with respect to cos
and sin are not computed: a call that needs them raises posenc.Error.
"""

import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, NamedTuple, Sequence, Tuple

import torch
from torch import Tensor

from . import _core
from .arrays import Error


def _dense(tensor: Tensor) -> Tensor:
    """Returns a tensor without gradients, whose last dimension is contiguous: a copy only if it must be."""
    tensor = tensor.detach() if tensor.requires_grad else tensor
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _rows_and_positions(table: Tensor, name: str, batch: int, tokens: int) -> Tuple[Tensor, Any]:
    """Returns the table as [rows, rotary_dim/2], and the positions that choose the row of each token."""
    shape = tuple(table.shape[:-1])
    table = _dense(table)
    if shape == (tokens,):
        return table, 0
    if shape == (1, tokens):
        return table[0], 0
    if shape == (batch, tokens):
        return table.flatten(0, 1), torch.arange(batch * tokens).view(batch, tokens)
    expected = f"[{tokens}, rotary_dim/2] or [{batch}, {tokens}, rotary_dim/2]"
    raise Error(f"{name} has the shape {list(table.shape)}, expected {expected}", "shape", name)


def _rotate(
    kernel: Callable[..., Any], tensors: Sequence[Tensor], cos: Tensor, sin: Tensor,
    heads_first: bool, transpose: bool,
) -> List[Tensor]:  # fmt: skip
    """Rotates tensors, which have the same tokens: x, or q and k."""
    axis = -2 if heads_first else -3
    shape = tensors[0].shape
    if len(shape) not in (3, 4):
        raise Error(f"x has {len(shape)} dimensions, expected 3 or 4", "shape", "x")
    batch, tokens = shape[0] if len(shape) == 4 else 1, shape[axis]
    cos, positions = _rows_and_positions(cos, "cos", batch, tokens)
    sin, _ = _rows_and_positions(sin, "sin", batch, tokens)
    results = []
    for x in map(_dense, tensors):
        if x.shape[axis] != tokens:
            raise Error(f"k has {x.shape[axis]} tokens, expected {tokens} as q has", "shape", "k")
        out = torch.empty_like(x)
        results.append(out)
        if heads_first:
            x, out = x.transpose(-3, -2), out.transpose(-3, -2)
        kernel(x, cos, sin, positions, transpose=transpose, out=out)
    return results


def _register(kernel: Callable[..., Any]) -> None:
    """Registers the operators NAME and NAME_qk that call a kernel, for the CPU, torch.compile() and autograd."""

    def rotate(x: Tensor, cos: Tensor, sin: Tensor, heads_first: bool = False, transpose: bool = False) -> Tensor:
        return _rotate(kernel, (x,), cos, sin, heads_first, transpose)[0]

    def rotate_qk(
        q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, heads_first: bool = False, transpose: bool = False
    ) -> Tuple[Tensor, ...]:
        return tuple(_rotate(kernel, (q, k), cos, sin, heads_first, transpose))

    def empty_result(x: Tensor, *_: Any) -> Tensor:
        return torch.empty_like(_dense(x))

    def empty_results(q: Tensor, k: Tensor, *_: Any) -> Tuple[Tensor, ...]:
        return empty_result(q), empty_result(k)

    options = "Tensor cos, Tensor sin, bool heads_first=False, bool transpose=False"
    _register_operator(kernel.__name__, f"(Tensor x, {options}) -> Tensor", rotate, empty_result)
    schema = f"(Tensor q, Tensor k, {options}) -> (Tensor, Tensor)"
    _register_operator(f"{kernel.__name__}_qk", schema, rotate_qk, empty_results)


def _register_operator(
    name: str, schema: str, function: Callable[..., Any], empty_results: Callable[..., Any]
) -> None:
    """Registers an operator. `empty_results` returns tensors like its results, which compilers trace."""
    torch.library.define(f"posenc::{name}", schema, tags=torch.Tag.pt2_compliant_tag)
    torch.library.impl(f"posenc::{name}", "cpu", function)
    torch.library.register_fake(f"posenc::{name}", empty_results)
    _register_gradient(name)


def _register_gradient(name: str) -> None:
    """Registers the inverse rotation as the gradient with respect to x, or q and k."""
    operator = getattr(torch.ops.posenc, name).default

    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        *_, cos, sin, ctx.heads_first, ctx.transpose = inputs
        if cos.requires_grad or sin.requires_grad:
            raise Error("cos or sin requires gradients, expected cos.detach() and sin.detach()", what="cos")
        ctx.save_for_backward(cos, sin)

    def backward(ctx: Any, *gradients: Tensor) -> Tuple[Any, ...]:
        result = operator(*gradients, *ctx.saved_tensors, ctx.heads_first, not ctx.transpose)
        results = (result,) if len(gradients) == 1 else result
        return (*results, None, None, None, None)  # None: of cos, sin, heads_first and transpose

    torch.library.register_autograd(f"posenc::{name}", backward, setup_context=setup_context)


_register(_core.rope_half)
_register(_core.rope_interleaved)

# ---- Models of transformers ----

_NAME = "apply_rotary_pos_emb"


class _Form(NamedTuple):
    """A form of that function: the kernel that computes it, and how its tables hold the value of each pair."""

    kernel: str
    widen: Callable[[Tensor], Tensor]  # [..., pairs] to a table of the model
    narrow: Callable[[Tensor], Tensor]  # and back


def _twice(table: Tensor) -> Tensor:
    return torch.cat((table, table), -1)


def _first_half(table: Tensor) -> Tensor:
    return table[..., : table.shape[-1] // 2]


_FORMS = (
    _Form("rope_half", _twice, _first_half),
    _Form("rope_half", lambda table: table, lambda table: table),
    _Form("rope_interleaved", _twice, _first_half),
    _Form("rope_interleaved", lambda table: table.repeat_interleave(2, -1), lambda table: table[..., ::2]),
)


def _replacement(form: _Form) -> Callable[..., Any]:
    """Returns apply_rotary_pos_emb() of a form."""
    operator = getattr(torch.ops.posenc, f"{form.kernel}_qk").default

    def apply_rotary_pos_emb(
        q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1
    ) -> Tuple[Tensor, Tensor]:
        heads_first = unsqueeze_dim == cos.dim() - 2  # the heads, which cos lacks, come before its tokens
        result: Tuple[Tensor, Tensor] = operator(q, k, form.narrow(cos), form.narrow(sin), heads_first)
        return result

    return apply_rotary_pos_emb


def _replacement_of(original: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the replacement whose results on small tensors are those of a function."""
    generator = torch.Generator().manual_seed(0)
    q, k, angles = (torch.randn(shape, generator=generator) for shape in ((1, 2, 3, 8), (1, 1, 3, 8), (1, 3, 4)))
    for form in _FORMS:
        replacement = _replacement(form)
        arguments = q, k, form.widen(angles.cos()), form.widen(angles.sin())
        try:
            torch.testing.assert_close(replacement(*arguments), tuple(original(*arguments)))
            return replacement
        except Exception:  # the function may reject tensors of another form in any way
            continue
    raise Error(f"{original.__module__}.{_NAME} is no rotation by halves or by neighbours of q and k", what="model")


@contextmanager
def apply_to(model: torch.nn.Module) -> Iterator[None]:
    """Replaces apply_rotary_pos_emb() in the Python modules of a model of transformers, until the block ends.

    All models of these modules are affected. The model still computes cos and sin. Raises posenc.Error, before anything
    is replaced, if there is no such function, or if ours computes something else on small tensors.
    """
    modules = {sys.modules[type(part).__module__] for part in model.modules()}
    originals = [(module, getattr(module, _NAME)) for module in modules if hasattr(module, _NAME)]
    if not originals:
        raise Error(f"no module of {type(model).__name__} has a function {_NAME}", what="model")
    replacements = [_replacement_of(original) for _, original in originals]
    try:
        for (module, _), replacement in zip(originals, replacements):
            setattr(module, _NAME, replacement)
        yield
    finally:
        for module, original in originals:
            setattr(module, _NAME, original)
