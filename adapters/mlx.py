"""MLX on a CPU: mx.fast.rope()."""
import mlx.core as mx
import numpy as np

from posenc.scoreboard import implements, table_by_rotation

PACKAGES = ["mlx", "mlx-cpu"]  # of Linux; on macOS mlx alone has a CPU


@implements("rope_table", "mx.fast.rope()", framework="numpy")
def table(positions, inv_freq, *, rotary_dim, attention_factor):
    if positions.dtype.kind == "f" or attention_factor != 1:
        raise NotImplementedError("integers, and no attention factor")
    wave = mx.array((1 / np.asarray(inv_freq, np.float64)).astype(np.float32))

    def rotate(x):  # [tokens, 1, rotary_dim]: each token is a batch with an offset of its own
        offsets = mx.array(positions.astype(np.int32))
        return np.array(mx.fast.rope(mx.array(x)[:, :, None], rotary_dim, traditional=False, base=None, scale=1.,
                                     offset=offsets, freqs=wave))[:, :, 0]
    return table_by_rotation(rotate, positions, rotary_dim, "half")
