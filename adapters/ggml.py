"""ggml: ggml_rope_ext(), whose table is read by rotating unit vectors.

The libraries are those of llama-cpp-python, or in the folder that GGML_LIBRARIES names.
"""
import ctypes
import importlib.util
import os
from pathlib import Path

import numpy as np

from posenc.scoreboard import implements, require_base, table_by_rotation

PACKAGES = ["llama-cpp-python"]
I32, F32 = 26, 0  # enum ggml_type
INTERLEAVED, HALF = 0, 2  # GGML_ROPE_TYPE_NORMAL, _NEOX
POINTER, LONG, FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float


class Parameters(ctypes.Structure):
    """struct ggml_init_params."""

    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", POINTER), ("no_alloc", ctypes.c_bool)]


def libraries():
    """Loads ggml, with the types of the functions that are called."""
    package = importlib.util.find_spec("llama_cpp")
    folder = Path(os.environ.get("GGML_LIBRARIES") or (package and Path(package.origin).parent / "lib") or "absent")
    if not folder.is_dir():
        raise ModuleNotFoundError("No module named 'llama_cpp', and GGML_LIBRARIES names no folder")
    base, cpu = (ctypes.CDLL(folder / f"libggml-{name}.so", ctypes.RTLD_GLOBAL) for name in ("base", "cpu"))
    types = {
        "ggml_init": (POINTER, Parameters), "ggml_free": (None, POINTER), "ggml_new_graph": (POINTER, POINTER),
        "ggml_new_tensor_1d": (POINTER, POINTER, ctypes.c_int, LONG), "ggml_get_data": (POINTER, POINTER),
        "ggml_new_tensor_3d": (POINTER, POINTER, ctypes.c_int, LONG, LONG, LONG),
        "ggml_build_forward_expand": (None, POINTER, POINTER), "ggml_version": (ctypes.c_char_p,),
        "ggml_rope_ext": (POINTER, POINTER, POINTER, POINTER, POINTER, *[ctypes.c_int] * 3, *[FLOAT] * 6),
    }
    for name, (result, *arguments) in types.items():
        function = getattr(base, name)
        function.restype, function.argtypes = result, arguments
    cpu.ggml_graph_compute_with_ctx.argtypes = [POINTER, POINTER, ctypes.c_int]
    return base, cpu


GGML, CPU = libraries()
VERSIONS = {"ggml": GGML.ggml_version().decode()}


def rotate(x, positions, mode, rope_theta, freq_scale):
    """Rotates f32 [tokens, heads, head_dim] at int32 positions."""
    tokens, heads, dim = x.shape
    # Input, result and positions; 1 MiB for the graph and its work buffer.
    context = GGML.ggml_init(Parameters(3 * x.nbytes + (1 << 20), None, False))
    given = GGML.ggml_new_tensor_3d(context, F32, dim, heads, tokens)
    where = GGML.ggml_new_tensor_1d(context, I32, tokens)
    ctypes.memmove(GGML.ggml_get_data(given), x.ctypes.data, x.nbytes)
    ctypes.memmove(GGML.ggml_get_data(where), positions.ctypes.data, positions.nbytes)
    # c, n_dims, mode, n_ctx_orig, freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow
    rotated = GGML.ggml_rope_ext(context, given, where, None, dim, mode, 0, rope_theta, freq_scale, 0., 1., 32., 1.)
    graph = GGML.ggml_new_graph(context)
    GGML.ggml_build_forward_expand(graph, rotated)
    status = CPU.ggml_graph_compute_with_ctx(context, graph, 1)
    if status:
        GGML.ggml_free(context)
        raise RuntimeError(f"ggml_graph_compute_with_ctx() returned {status}")
    out = np.ctypeslib.as_array(ctypes.cast(GGML.ggml_get_data(rotated), ctypes.POINTER(FLOAT)), x.shape).copy()
    GGML.ggml_free(context)
    return out


def table_of(mode, positions, inv_freq, rotary_dim, rope_theta, scaling, factor):
    require_base(inv_freq * factor if scaling == "linear" else inv_freq, rope_theta)
    if positions.dtype.kind == "f":
        raise NotImplementedError("integers only")
    scale = 1 / factor if scaling == "linear" else 1.
    where = np.ascontiguousarray(positions, np.int32)
    return table_by_rotation(lambda x: rotate(x, where, mode, rope_theta, scale), positions, rotary_dim,
                             "half" if mode == HALF else "interleaved")


@implements("rope_table", "ggml_rope_ext(), GGML_ROPE_TYPE_NEOX", framework="numpy")
def half(positions, inv_freq, *, rotary_dim, rope_theta, scaling, factor):
    return table_of(HALF, positions, inv_freq, rotary_dim, rope_theta, scaling, factor)


@implements("rope_table", "ggml_rope_ext(), GGML_ROPE_TYPE_NORMAL", framework="numpy")
def interleaved(positions, inv_freq, *, rotary_dim, rope_theta, scaling, factor):
    return table_of(INTERLEAVED, positions, inv_freq, rotary_dim, rope_theta, scaling, factor)
