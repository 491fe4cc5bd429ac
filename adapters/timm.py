"""timm: rotations, and the index of windows. It needs a torchvision that was built for the same PyTorch."""
import torch
from timm.layers.pos_embed_rel import gen_relative_position_index
from timm.layers.pos_embed_sincos import apply_rot_embed

from posenc.scoreboard import implements

PACKAGES = ["torch", "timm"]


def rotate(x, cos, sin, half):
    if x.shape[-1] != 2 * cos.shape[-1]:
        raise NotImplementedError("rotates whole heads only")
    cos, sin = ((torch.cat([table, table], -1) if half else table.repeat_interleave(2, -1))[:, None]
                for table in (cos, sin))
    return apply_rot_embed(x, sin, cos, half)


@implements("rope_interleaved", "apply_rot_embed()")
def interleaved(x, cos, sin):
    return rotate(x, cos, sin, False)


@implements("rope_half", "apply_rot_embed(half=True)")
def half(x, cos, sin):
    return rotate(x, cos, sin, True)


@implements("window_bias", "gen_relative_position_index()")
def window(table, index, *, window_height, window_width, window_class, scattered):
    own = gen_relative_position_index((window_height, window_width), class_token=bool(window_class))
    if scattered or table.shape[0] <= int(own.max()):
        raise NotImplementedError("its own index only")
    return table[own.flatten()].reshape(*own.shape, -1).permute(2, 0, 1)[None]
