"""Adapter of KerasHub for `posenc scoreboard` (docs/adding.md): its tables and sinusoids, by Keras with PyTorch.

Keras has one backend in a process, chosen before it is imported. keras_tensorflow.py runs this file with the global
BACKEND set to another one.
"""
import os

os.environ["KERAS_BACKEND"] = globals().get("BACKEND", "torch")
import keras_hub  # noqa: E402
import numpy as np  # noqa: E402
from keras.ops import convert_to_numpy, convert_to_tensor  # noqa: E402

from posenc.scoreboard import implements, require_base, table_by_rotation  # noqa: E402

PACKAGES = ["torch", "keras", "keras-hub"]


@implements("rope_table", "RotaryEmbedding", framework="numpy")
def make_table(positions, inv_freq, *, rotary_dim, rope_theta, scaling, factor):
    divisor = factor if scaling == "linear" else 1.
    require_base(inv_freq * divisor, rope_theta)
    layer = keras_hub.layers.RotaryEmbedding(max_wavelength=rope_theta, scaling_factor=divisor,
                                             rope_type="linear" if scaling == "linear" else "default")
    positions_tensor = convert_to_tensor(positions)

    def rotate(x):
        return convert_to_numpy(layer(convert_to_tensor(x[None]), positions=positions_tensor))[0]

    return table_by_rotation(rotate, positions, rotary_dim, "half")


@implements("sinusoidal", "SinePositionEncoding", framework="numpy")
def make_sinusoids(positions, inv_freq, *, dim, rope_theta, layout):
    if layout != "interleaved":
        raise NotImplementedError("sine and cosine in turn only")
    layer = keras_hub.layers.SinePositionEncoding(max_wavelength=rope_theta)
    positions_tensor = convert_to_tensor(positions.astype(np.float32))
    zeros = convert_to_tensor(np.zeros((1, len(positions), dim), np.float32))
    return convert_to_numpy(layer(zeros, positions=positions_tensor))[0]
