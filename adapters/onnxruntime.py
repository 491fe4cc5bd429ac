"""Adapter of ONNX Runtime for `posenc scoreboard` (docs/adding.md): RotaryEmbedding, as a model of one node."""
from functools import lru_cache

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from posenc.scoreboard import implements

PACKAGES = ["onnxruntime", "onnx"]
STANDARD, MICROSOFT = "", "com.microsoft"  # domains that have the operator: ONNX 23, and contributed operators


@lru_cache()
def make_session(domain, interleaved, rotary_dim):
    """Returns a session that rotates x [1, heads, tokens, head_dim] by rows of caches at ids [1, tokens].

    rotary_dim 0 rotates whole heads.
    """
    inputs = {"x": TensorProto.FLOAT, "ids": TensorProto.INT64, "cos": TensorProto.FLOAT, "sin": TensorProto.FLOAT}
    order = ["x", "cos", "sin", "ids"] if domain == STANDARD else ["x", "ids", "cos", "sin"]
    partial = {"rotary_embedding_dim": rotary_dim} if rotary_dim else {}
    node = helper.make_node("RotaryEmbedding", order, ["y"], domain=domain, interleaved=interleaved, **partial)
    values = [helper.make_tensor_value_info(name, element, None) for name, element in inputs.items()]
    graph = helper.make_graph([node], "rope", values, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    versions = [helper.make_opsetid("", 23)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=versions, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def rotate(x, cos, sin, domain, interleaved):
    is_partial = 2 * cos.shape[-1] != x.shape[-1]
    if x.dtype != np.float32 or (domain == MICROSOFT and is_partial):
        raise NotImplementedError("f32 only; com.microsoft here with whole heads only")
    session = make_session(domain, interleaved, 2 * cos.shape[-1] if is_partial else 0)
    heads_first = np.ascontiguousarray(x.swapaxes(0, 1))[None]
    ids = np.arange(len(x), dtype=np.int64)[None]
    return session.run(None, {"x": heads_first, "cos": cos, "sin": sin, "ids": ids})[0][0].swapaxes(0, 1)


@implements("rope_half", "RotaryEmbedding, ONNX 23", framework="numpy")
def rotate_half(x, cos, sin):
    return rotate(x, cos, sin, STANDARD, interleaved=0)


@implements("rope_interleaved", "RotaryEmbedding, ONNX 23", framework="numpy")
def rotate_interleaved(x, cos, sin):
    return rotate(x, cos, sin, STANDARD, interleaved=1)


@implements("rope_half", "RotaryEmbedding, com.microsoft", framework="numpy")
def rotate_half_microsoft(x, cos, sin):
    return rotate(x, cos, sin, MICROSOFT, interleaved=0)
