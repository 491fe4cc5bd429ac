"""Adapter of MLX for `posenc scoreboard` (docs/adding.md): the table by which mx.fast.rope() rotates on a CPU."""
import mlx.core as mx
import numpy as np

from posenc.scoreboard import implements, table_by_rotation

PACKAGES = ["mlx", "mlx-cpu"]  # of Linux; on macOS mlx alone has a CPU


@implements("rope_table", "mx.fast.rope()", framework="numpy")
def make_table(positions, inv_freq, *, rotary_dim, attention_factor):
    if positions.dtype.kind == "f" or attention_factor != 1:
        raise NotImplementedError("integers, and no attention factor")
    wavelengths = mx.array((1 / np.asarray(inv_freq, np.float64)).astype(np.float32))
    offsets = mx.array(positions.astype(np.int32))

    def rotate(x):
        # [tokens, 1, 1, rotary_dim]: each token is a batch, as each batch has an offset of its own.
        batches = mx.array(x)[:, :, None]
        rotated = mx.fast.rope(batches, rotary_dim, traditional=False, base=None, scale=1., offset=offsets,
                               freqs=wavelengths)
        return np.array(rotated)[:, :, 0]

    return table_by_rotation(rotate, positions, rotary_dim, "half")
