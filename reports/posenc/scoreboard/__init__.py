"""The scoreboard: declarations of an adapter, a file that calls one library. docs/scoreboard/README.md lists adapters.

    @implements("rope_half", "apply_rotary_emb()")
    def rotate(x, cos, sin): ...

Arguments and results are those of posenc.check(). NotImplementedError says that the library does not offer a problem.
"""
from typing import Any, Callable, List, NamedTuple, Optional

import numpy as np


class Row(NamedTuple):
    """An implementation of a kernel by a library."""

    kernel: str
    title: str  # name in the library
    fn: Callable[..., Any]
    framework: Optional[str] = None
    max_position: Optional[int] = None
    is_module: bool = False  # fn() returns a rotary module and its configuration
    layer_type: Optional[str] = None  # of a module whose layers differ


ROWS: List[Row] = []  # of the adapter that is being loaded


def implements(kernel: str, title: str, *, framework: str = "torch",
               max_position: Optional[int] = None) -> Callable[..., Any]:  # fmt: skip
    """Declares the decorated function as an implementation of a kernel on arrays of a framework."""
    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        ROWS.append(Row(kernel, title, fn, framework, max_position))
        return fn
    return declare


def implements_module(title: str, layer_type: Optional[str] = None) -> Callable[..., Any]:
    """Declares the decorated function as the maker of a module like those of transformers, and of its configuration."""
    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        ROWS.append(Row("rope_table", title, fn, "torch", is_module=True, layer_type=layer_type))
        return fn
    return declare


def require_base(inv_freq: Any, rope_theta: float) -> None:
    """Declines frequencies [pairs] that are not rope_theta^(-i/pairs), for a library that takes a base alone."""
    pairs = len(inv_freq)
    if not np.allclose(np.asarray(inv_freq), rope_theta ** (-np.arange(pairs) / pairs), rtol=1e-4, atol=0):
        raise NotImplementedError("frequencies of a base only")


def require_whole_heads(x: Any, cos: Any) -> None:
    """Declines tables cos [tokens, pairs] that rotate only some channels of x, for a library that rotates all."""
    if x.shape[-1] != 2 * cos.shape[-1]:
        raise NotImplementedError("rotates whole heads only")


def table_by_rotation(rotate: Callable[[Any], Any], positions: Any, dim: int, pairing: str) -> Any:
    """Returns cosines and sines [tokens, dim/2] of a library that only rotates: what it makes of unit vectors.

    rotate() takes and returns f32 [tokens, 1, dim]. The pairing is half or interleaved. A rotated (1, 0) is (cos, sin),
    with no rounding beside that of the table.
    """
    pairs = dim // 2
    first, second = (slice(0, pairs), slice(pairs, dim)) if pairing == "half" else (slice(0, dim, 2), slice(1, dim, 2))
    units = np.zeros((len(positions), 1, dim), np.float32)
    units[..., first] = 1
    if not isinstance(positions, np.ndarray):  # a tensor of PyTorch
        import torch

        units = torch.from_numpy(units)
    rotated = rotate(units)[:, 0]
    return rotated[:, first], rotated[:, second]
