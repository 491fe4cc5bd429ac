"""OpenVINO on a CPU: rotate_half() as a graph, which its compiler fuses."""
from functools import lru_cache

import numpy as np
import openvino
from openvino import opset13 as op

from posenc.scoreboard import implements

PACKAGES = ["openvino"]


@lru_cache()
def compiled(rotary_dim):
    """Compiles x cos + rotate_half(x) sin of x [1, heads, tokens, rotary_dim] by [1, 1, tokens, rotary_dim]."""
    x, cos, sin = (op.parameter([1, heads, -1, rotary_dim], np.float32) for heads in (-1, 1, 1))
    first, second = op.split(x, 3, 2).outputs()
    half = op.concat([op.multiply(second, np.float32(-1)), first], 3)
    y = op.add(op.multiply(x, cos), op.multiply(half, sin))
    return openvino.compile_model(openvino.Model([y], [x, cos, sin]), "CPU",
                                  {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"})


@implements("rope_half", "rotate_half() as a graph", framework="numpy")
def rotate(x, cos, sin):
    if x.shape[-1] != 2 * cos.shape[-1] or x.dtype != np.float32:
        raise NotImplementedError("rotates whole heads in f32 only")
    tables = (np.concatenate([table, table], -1)[None, None] for table in (cos, sin))
    return compiled(x.shape[-1])([np.ascontiguousarray(x.swapaxes(0, 1))[None], *tables])[0][0].swapaxes(0, 1)
