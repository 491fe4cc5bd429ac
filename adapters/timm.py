"""Adapter of timm for `posenc scoreboard` (docs/adding.md): rotations, and the index of windows.

timm needs a torchvision that was built for the same PyTorch.
"""
import torch
from timm.layers.pos_embed_rel import gen_relative_position_index
from timm.layers.pos_embed_sincos import apply_rot_embed

from posenc.scoreboard import implements, require_whole_heads

PACKAGES = ["torch", "timm"]


@implements("rope_interleaved", "apply_rot_embed()")
def rotate_interleaved(x, cos, sin):
    require_whole_heads(x, cos)
    cos, sin = (table.repeat_interleave(2, -1)[:, None] for table in (cos, sin))
    return apply_rot_embed(x, sin, cos, half=False)


@implements("rope_half", "apply_rot_embed(half=True)")
def rotate_half(x, cos, sin):
    require_whole_heads(x, cos)
    cos, sin = (torch.cat([table, table], -1)[:, None] for table in (cos, sin))
    return apply_rot_embed(x, sin, cos, half=True)


@implements("window_bias", "gen_relative_position_index()")
def make_window_bias(table, index, *, window_height, window_width, window_class):
    rows = gen_relative_position_index((window_height, window_width), class_token=bool(window_class))
    if not rows.to(index.dtype).equal(index):
        raise NotImplementedError("its own index only")
    return table[rows.flatten()].reshape(*rows.shape, -1).permute(2, 0, 1)[None]
