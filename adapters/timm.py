"""Adapter of timm for `posenc scoreboard` (docs/adding.md): rotations, and the index of windows.

x is [tokens, heads, head_dim], cos and sin [tokens, head_dim / 2]. timm takes them repeated, with an axis of heads. It
needs a torchvision that was built for the same PyTorch.
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
    own_index = gen_relative_position_index((window_height, window_width), class_token=bool(window_class))
    if not own_index.to(index.dtype).equal(index):
        raise NotImplementedError("gathers by its own index only")
    by_index = table[own_index.flatten()].reshape(*own_index.shape, -1)  # [queries, keys, heads]
    return by_index.permute(2, 0, 1)[None]
