"""KerasHub, by Keras with PyTorch."""
import os

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras_hub  # noqa: E402
import torch  # noqa: E402

from posenc.scoreboard import implements, require_base, table_by_rotation  # noqa: E402

PACKAGES = ["torch", "keras", "keras-hub"]


@implements("rope_table", "RotaryEmbedding")
def table(positions, inv_freq, *, rotary_dim, rope_theta, scaling, factor):
    require_base(inv_freq * factor if scaling == "linear" else inv_freq, rope_theta)
    layer = keras_hub.layers.RotaryEmbedding(max_wavelength=rope_theta, scaling_factor=factor or 1.,
                                             rope_type="linear" if scaling == "linear" else "default")
    return table_by_rotation(lambda x: layer(x[None], positions=positions)[0].detach(), positions, rotary_dim, "half")


@implements("sinusoidal", "SinePositionEncoding")
def sinusoids(positions, inv_freq, *, dim, rope_theta, layout):
    if layout != "interleaved":
        raise NotImplementedError("sine and cosine in turn only")
    layer = keras_hub.layers.SinePositionEncoding(max_wavelength=rope_theta)
    return layer(torch.zeros(1, len(positions), dim), positions=positions.float())[0].detach()
