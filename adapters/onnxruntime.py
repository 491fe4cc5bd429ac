"""ONNX Runtime on a CPU: RotaryEmbedding of ONNX 23 and of com.microsoft."""
from functools import lru_cache

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from posenc.scoreboard import implements

PACKAGES = ["onnxruntime", "onnx"]


@lru_cache()
def session(domain, interleaved, rotary_dim):
    """Returns a session that rotates x [1, heads, tokens, head_dim] by rows of caches at position ids."""
    inputs = {"x": TensorProto.FLOAT, "ids": TensorProto.INT64, "cos": TensorProto.FLOAT, "sin": TensorProto.FLOAT}
    order = ["x", "cos", "sin", "ids"] if domain == "" else list(inputs)
    partial = {"rotary_embedding_dim": rotary_dim} if rotary_dim else {}
    node = helper.make_node("RotaryEmbedding", order, ["y"], domain=domain, interleaved=interleaved, **partial)
    graph = helper.make_graph([node], "rope", [helper.make_tensor_value_info(name, kind, None)
                                               for name, kind in inputs.items()],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    imports = [helper.make_opsetid("", 23)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def rotate(x, cos, sin, domain, interleaved):
    rotary_dim = 2 * cos.shape[-1] if 2 * cos.shape[-1] != x.shape[-1] else 0
    if x.dtype != np.float32 or (domain and rotary_dim):
        raise NotImplementedError("f32 only; com.microsoft here with whole heads only")
    feeds = {"x": np.ascontiguousarray(x.swapaxes(0, 1))[None], "cos": cos, "sin": sin,
             "ids": np.arange(len(x), dtype=np.int64)[None]}
    return session(domain, interleaved, rotary_dim).run(None, feeds)[0][0].swapaxes(0, 1)


@implements("rope_half", "RotaryEmbedding, ONNX 23", framework="numpy")
def half(x, cos, sin):
    return rotate(x, cos, sin, "", 0)


@implements("rope_interleaved", "RotaryEmbedding, ONNX 23", framework="numpy")
def interleaved(x, cos, sin):
    return rotate(x, cos, sin, "", 1)


@implements("rope_half", "RotaryEmbedding, com.microsoft", framework="numpy")
def contrib(x, cos, sin):
    return rotate(x, cos, sin, "com.microsoft", 0)
