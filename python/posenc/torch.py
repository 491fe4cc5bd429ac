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
from typing import Any, Callable, Iterator, List, Sequence, Tuple

import torch
from torch import Tensor

from . import _core
from .arrays import Error


def _dense(tensor: Tensor) -> Tensor:
    """Returns the tensor without gradients, or a copy if its channels are apart."""
    tensor = tensor.detach() if tensor.requires_grad else tensor
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _rows(table: Tensor, name: str, batch: int, tokens: int) -> Tuple[Tensor, Any]:
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
    axis = -2 if heads_first else -3
    shape = tensors[0].shape
    if len(shape) not in (3, 4):
        raise Error(f"x has {len(shape)} dimensions, expected 3 or 4", "shape", "x")
    batch, tokens = shape[0] if len(shape) == 4 else 1, shape[axis]
    cos, positions = _rows(cos, "cos", batch, tokens)
    sin, _ = _rows(sin, "sin", batch, tokens)
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
    """Registers the operators that call a kernel."""

    def rotate(x: Tensor, cos: Tensor, sin: Tensor, heads_first: bool = False, transpose: bool = False) -> Tensor:
        return _rotate(kernel, (x,), cos, sin, heads_first, transpose)[0]

    def rotate_qk(
        q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, heads_first: bool = False, transpose: bool = False
    ) -> Tuple[Tensor, ...]:
        return tuple(_rotate(kernel, (q, k), cos, sin, heads_first, transpose))

    def fake(x: Tensor, *_: Any) -> Tensor:
        return torch.empty_like(_dense(x))

    def fake_qk(q: Tensor, k: Tensor, *_: Any) -> Tuple[Tensor, ...]:
        return fake(q), fake(k)

    for name, inputs, outputs, function, shapes in (
        (kernel.__name__, "Tensor x", "Tensor", rotate, fake),
        (f"{kernel.__name__}_qk", "Tensor q, Tensor k", "(Tensor, Tensor)", rotate_qk, fake_qk),
    ):
        schema = f"({inputs}, Tensor cos, Tensor sin, bool heads_first=False, bool transpose=False) -> {outputs}"
        torch.library.define(f"posenc::{name}", schema, tags=torch.Tag.pt2_compliant_tag)
        torch.library.impl(f"posenc::{name}", "cpu", function)
        torch.library.register_fake(f"posenc::{name}", shapes)
        _register_gradient(name)


def _register_gradient(name: str) -> None:
    operator = getattr(torch.ops.posenc, name).default

    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        *_, cos, sin, ctx.heads_first, ctx.transpose = inputs
        if cos.requires_grad or sin.requires_grad:
            raise Error("cos or sin requires gradients, expected cos.detach() and sin.detach()", what="cos")
        ctx.save_for_backward(cos, sin)

    def backward(ctx: Any, *gradients: Tensor) -> Tuple[Any, ...]:
        result = operator(*gradients, *ctx.saved_tensors, ctx.heads_first, not ctx.transpose)
        return (*((result,) if len(gradients) == 1 else result), None, None, None, None)

    torch.library.register_autograd(f"posenc::{name}", backward, setup_context=setup_context)


_register(_core.rope_half)
_register(_core.rope_interleaved)

# ---- Models of transformers ----

_NAME = "apply_rotary_pos_emb"


def _first_half(table: Tensor) -> Tensor:
    return table[..., : table.shape[-1] // 2]


# Forms of that function: the kernel, how the model widens its tables, and how to undo it.
_FORMS: Tuple[Tuple[str, Callable[..., Any], Callable[..., Any]], ...] = (
    ("rope_half", lambda table: torch.cat((table, table), -1), _first_half),
    ("rope_half", lambda table: table, lambda table: table),
    ("rope_interleaved", lambda table: torch.cat((table, table), -1), _first_half),
    ("rope_interleaved", lambda table: table.repeat_interleave(2, -1), lambda table: table[..., ::2]),
)


def _replacement(kernel: str, undo: Callable[..., Any]) -> Callable[..., Any]:
    operator = getattr(torch.ops.posenc, f"{kernel}_qk").default

    def apply_rotary_pos_emb(
        q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1
    ) -> Tuple[Tensor, Tensor]:
        result: Tuple[Tensor, Tensor] = operator(q, k, undo(cos), undo(sin), unsqueeze_dim == cos.dim() - 2)
        return result

    return apply_rotary_pos_emb


def _replacement_of(original: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the replacement that computes what a function computes on small tensors."""
    generator = torch.Generator().manual_seed(0)
    q, k, angles = (torch.randn(shape, generator=generator) for shape in ((1, 2, 3, 8), (1, 1, 3, 8), (1, 3, 4)))
    for kernel, widen, undo in _FORMS:
        replacement = _replacement(kernel, undo)
        arguments = q, k, widen(angles.cos()), widen(angles.sin())
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
