"""Positional encodings of transformers on CPUs: the kernels of the library posenc on arrays of Python.

NumPy arrays, PyTorch tensors on the CPU, JAX arrays, and anything with the buffer protocol or DLPack are read and
written without copies. Element types are float32, float16 and bfloat16.

    rope = posenc.Rope.from_config("config.json")
    q, k = rope(q, k, positions=cached)

Every kernel is a function, named as in C: posenc.rope_half(x, cos, sin). It returns an array of the framework of its
arguments, or writes the one that `out` names, which may be x itself. A call that is rejected raises posenc.Error.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)  # in the tree, the readers of model files lie in another folder

from ._core import Frequencies, __version__, backends, select
from ._core import alibi, alibi_add, distance_bias, distance_bias_add, learned_add, learned_grad, relative_bias
from ._core import relative_bias_add, relative_sum, rope_half, rope_interleaved, rope_qk_norm, rope_table, sinusoidal
from ._core import sinusoidal_add, t5_bias, t5_bias_add, window_bias, window_bias_add
from .arrays import Error
from .builders import T5Buckets, alibi_slopes, beit_index, deberta_index, kerple_log, kerple_power, learned_fill_normal
from .builders import padding_positions, sandwich, shaw_index, swin_index, t5_buckets, transformer_xl_index
from .rope import Rope

__all__ = [
    "Error", "Frequencies", "Rope", "T5Buckets", "__version__", "alibi", "alibi_add", "alibi_slopes", "backends",
    "beit_index", "deberta_index", "distance_bias", "distance_bias_add", "kerple_log", "kerple_power", "learned_add",
    "learned_fill_normal", "learned_grad", "padding_positions", "relative_bias", "relative_bias_add", "relative_sum",
    "rope_half", "rope_interleaved", "rope_qk_norm", "rope_table", "sandwich", "select", "shaw_index", "sinusoidal",
    "sinusoidal_add", "swin_index", "t5_bias", "t5_bias_add", "t5_buckets", "transformer_xl_index", "window_bias",
    "window_bias_add",
]  # fmt: skip
