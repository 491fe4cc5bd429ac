"""Adapter of ggml for `posenc scoreboard` (docs/adding.md): the cosines and sines of ggml_rope_ext(), called by ctypes.

That function only rotates, so the table is what it makes of unit vectors. The libraries are those of llama-cpp-python,
or in the folder that GGML_LIBRARIES names.
"""
import ctypes
import importlib.util
import os
from pathlib import Path

import numpy as np

from posenc.scoreboard import implements, require_base, table_by_rotation

PACKAGES = ["llama-cpp-python"]
TYPE_I32, TYPE_F32 = 26, 0  # enum ggml_type
NORMAL, NEOX = 0, 2  # GGML_ROPE_TYPE_*: interleaved pairs, and pairs by halves
POINTER, INT, LONG, FLOAT = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_float


class Parameters(ctypes.Structure):
    """struct ggml_init_params."""

    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", POINTER), ("no_alloc", ctypes.c_bool)]


FUNCTIONS = {  # type of the result, then of the arguments
    "ggml_init": (POINTER, Parameters), "ggml_free": (None, POINTER), "ggml_new_graph": (POINTER, POINTER),
    "ggml_new_tensor_1d": (POINTER, POINTER, INT, LONG), "ggml_get_data": (POINTER, POINTER),
    "ggml_new_tensor_3d": (POINTER, POINTER, INT, LONG, LONG, LONG),
    "ggml_build_forward_expand": (None, POINTER, POINTER), "ggml_version": (ctypes.c_char_p,),
    "ggml_rope_ext": (POINTER, POINTER, POINTER, POINTER, POINTER, INT, INT, INT, *[FLOAT] * 6),
}


def load_libraries():
    """Returns ggml's base library and its CPU library, with the types of the functions that are called."""
    package = importlib.util.find_spec("llama_cpp")
    folder = Path(os.environ.get("GGML_LIBRARIES") or (package and Path(package.origin).parent / "lib") or "absent")
    if not folder.is_dir():
        raise ModuleNotFoundError("No module named 'llama_cpp', and GGML_LIBRARIES names no folder")
    base, cpu = (ctypes.CDLL(folder / f"libggml-{name}.so", ctypes.RTLD_GLOBAL) for name in ("base", "cpu"))
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(base, name)
        function.restype, function.argtypes = result, arguments
    cpu.ggml_graph_compute_with_ctx.argtypes = [POINTER, POINTER, INT]
    return base, cpu


BASE, CPU = load_libraries()
VERSIONS = {"ggml": BASE.ggml_version().decode()}


def rotate(x, positions, mode, rope_theta, freq_scale):
    """Rotates f32 [tokens, heads, head_dim] at int32 positions [tokens]. `mode` is NORMAL or NEOX."""
    tokens, heads, dim = x.shape
    # Input, result and positions; 1 MiB for the graph and its work buffer.
    context = BASE.ggml_init(Parameters(3 * x.nbytes + (1 << 20), None, False))
    try:
        x_tensor = BASE.ggml_new_tensor_3d(context, TYPE_F32, dim, heads, tokens)
        positions_tensor = BASE.ggml_new_tensor_1d(context, TYPE_I32, tokens)
        ctypes.memmove(BASE.ggml_get_data(x_tensor), x.ctypes.data, x.nbytes)
        ctypes.memmove(BASE.ggml_get_data(positions_tensor), positions.ctypes.data, positions.nbytes)
        rotated = BASE.ggml_rope_ext(
            # context, a, b, c, n_dims, mode, n_ctx_orig,
            # freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow
            context, x_tensor, positions_tensor, None, dim, mode, 0, rope_theta, freq_scale, 0., 1., 32., 1.)
        graph = BASE.ggml_new_graph(context)
        BASE.ggml_build_forward_expand(graph, rotated)
        status = CPU.ggml_graph_compute_with_ctx(context, graph, 1)
        if status:
            raise RuntimeError(f"ggml_graph_compute_with_ctx() returned {status}")
        data = ctypes.cast(BASE.ggml_get_data(rotated), ctypes.POINTER(FLOAT))
        return np.ctypeslib.as_array(data, x.shape).copy()
    finally:
        BASE.ggml_free(context)


def make_table(mode, positions, inv_freq, rotary_dim, rope_theta, scaling, factor):
    divisor = factor if scaling == "linear" else 1.  # freq_scale divides; require_base() declines other scalings
    require_base(inv_freq * divisor, rope_theta)
    if positions.dtype.kind == "f":
        raise NotImplementedError("integers only")
    int32_positions = np.ascontiguousarray(positions, np.int32)
    return table_by_rotation(lambda x: rotate(x, int32_positions, mode, rope_theta, 1 / divisor), positions,
                             rotary_dim, "half" if mode == NEOX else "interleaved")


@implements("rope_table", "ggml_rope_ext(), GGML_ROPE_TYPE_NEOX", framework="numpy")
def make_table_neox(positions, inv_freq, *, rotary_dim, rope_theta, scaling, factor):
    return make_table(NEOX, positions, inv_freq, rotary_dim, rope_theta, scaling, factor)


@implements("rope_table", "ggml_rope_ext(), GGML_ROPE_TYPE_NORMAL", framework="numpy")
def make_table_normal(positions, inv_freq, *, rotary_dim, rope_theta, scaling, factor):
    return make_table(NORMAL, positions, inv_freq, rotary_dim, rope_theta, scaling, factor)
