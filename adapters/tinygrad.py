"""Adapter of tinygrad for `posenc scoreboard` (docs/adding.md): the rotation of its own language models."""
import numpy as np
from tinygrad import Tensor
from tinygrad.apps.llm import apply_rope, precompute_freqs_cis

from posenc.scoreboard import implements, require_base

PACKAGES = ["tinygrad==0.12.0"]  # later wheels lack a folder that the rotation needs
TABLE_ROWS = 1 << 17  # positions of the table that is made for each call


@implements("rope_half", "apply_rope()", framework="numpy")
def rotate_half(x, cos, sin):
    if x.shape[-1] != 2 * cos.shape[-1] or x.dtype != np.float32:
        raise NotImplementedError("rotates whole heads in f32 only")
    tables = Tensor(np.ascontiguousarray(np.concatenate([cos, sin], -1)))
    heads_first = Tensor(np.ascontiguousarray(x.swapaxes(0, 1)))[None]
    return apply_rope(heads_first, tables)[0].numpy().swapaxes(0, 1)


@implements("rope_table", "precompute_freqs_cis()", framework="numpy", max_position=TABLE_ROWS)
def make_table(positions, inv_freq, *, rotary_dim, rope_theta):
    require_base(inv_freq, rope_theta)
    if positions.dtype.kind == "f" or positions.min() < 0:
        raise NotImplementedError("integers from 0 on only")
    rows = precompute_freqs_cis(rotary_dim, TABLE_ROWS, rope_theta).numpy()[positions]  # cosines, then sines
    return np.split(rows, 2, -1)
