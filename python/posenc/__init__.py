"""Positional encodings of transformers on CPUs: the kernels of the library posenc on arrays of Python.

NumPy arrays, PyTorch tensors on the CPU, JAX arrays, and anything with the buffer protocol or DLPack are read and
written without copies. Element types are float32, float16 and bfloat16.

    rope = posenc.Rope.from_config("config.json")
    q, k = rope(q, k, positions=cached)

Every kernel is a function, named as in C: posenc.rope_half(x, cos, sin). It returns an array of the framework of its
arguments, or writes the one that `out` names, which may be x itself. A call that is rejected raises posenc.Error.
"""

from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

__path__ = extend_path(__path__, __name__)  # in the tree, the readers of model files lie in another folder

from ._core import __version__, backends, select
from ._core import alibi, alibi_add, distance_bias, distance_bias_add, learned_add, learned_grad, relative_bias
from ._core import relative_bias_add, relative_sum, rope_half, rope_interleaved, rope_qk_norm, rope_table, sinusoidal
from ._core import sinusoidal_add, t5_bias, t5_bias_add, window_bias, window_bias_add
from .arrays import Error
from .builders import T5Buckets, alibi_slopes, beit_index, deberta_index, kerple_log, kerple_power, learned_fill_normal
from .builders import padding_positions, sandwich, shaw_index, swin_index, t5_buckets, transformer_xl_index
from .rope import Frequencies, Rope

if TYPE_CHECKING:
    from .checking import CheckResult, check, check_module, serve

__all__ = [
    "CheckResult", "Error", "Frequencies", "Rope", "T5Buckets", "__version__", "alibi", "alibi_add", "alibi_slopes",
    "backends", "beit_index", "check", "check_module", "deberta_index", "distance_bias", "distance_bias_add",
    "kerple_log", "kerple_power", "learned_add", "learned_fill_normal", "learned_grad", "padding_positions",
    "relative_bias", "relative_bias_add", "relative_sum", "rope_half", "rope_interleaved", "rope_qk_norm",
    "rope_table", "sandwich", "select", "serve", "shaw_index", "sinusoidal", "sinusoidal_add", "swin_index",
    "t5_bias", "t5_bias_add", "t5_buckets", "transformer_xl_index", "window_bias", "window_bias_add",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Imports the functions that check others when they are used, as they take NumPy."""
    if name not in ("CheckResult", "check", "check_module", "serve"):
        raise AttributeError(f"module 'posenc' has no attribute {name!r}")
    from . import checking

    return getattr(checking, name)
