"""Adapter of OpenVINO for `posenc scoreboard` (docs/adding.md): rotate_half() as a graph, which it fuses."""
from functools import lru_cache

import numpy as np
import openvino
from openvino import opset13 as op

from posenc.scoreboard import implements

PACKAGES = ["openvino"]


@lru_cache()
def compile_rotation(head_dim):
    """Returns a model that computes x cos + rotate_half(x) sin.

    x is [1, heads, tokens, head_dim]; cos and sin are [1, 1, tokens, head_dim].
    """
    x, cos, sin = (op.parameter([1, heads, -1, head_dim], np.float32) for heads in (-1, 1, 1))
    first, second = op.split(x, 3, 2).outputs()
    rotated_half = op.concat([op.multiply(second, np.float32(-1)), first], 3)
    y = op.add(op.multiply(x, cos), op.multiply(rotated_half, sin))
    options = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    return openvino.compile_model(openvino.Model([y], [x, cos, sin]), "CPU", options)


@implements("rope_half", "rotate_half() as a graph", framework="numpy")
def rotate_half(x, cos, sin):
    if x.shape[-1] != 2 * cos.shape[-1] or x.dtype != np.float32:
        raise NotImplementedError("rotates whole heads in f32 only")
    heads_first = np.ascontiguousarray(x.swapaxes(0, 1))[None]
    tables = (np.concatenate([table, table], -1)[None, None] for table in (cos, sin))
    return compile_rotation(x.shape[-1])([heads_first, *tables])[0][0].swapaxes(0, 1)
