"""torchtune: its rotary modules, whose tables are read by rotating unit vectors."""
from torchtune.modules import RotaryPositionalEmbeddings

from posenc.scoreboard import implements, require_base, table_by_rotation

PACKAGES = ["torch", "torchtune", "torchao==0.9.0"]  # torchtune needs what later ones lack
LARGEST = 1 << 17  # rows of the cache


def rotate(module, positions, dim):
    at = positions[None].long()
    return table_by_rotation(lambda x: module(x[None], input_pos=at)[0], positions, dim, "interleaved")


@implements("rope_table", "RotaryPositionalEmbeddings", max_position=LARGEST)
def rope(positions, inv_freq, *, rotary_dim, rope_theta):
    require_base(inv_freq, rope_theta)
    if positions.is_floating_point():
        raise NotImplementedError("integers only")
    return rotate(RotaryPositionalEmbeddings(rotary_dim, LARGEST, rope_theta), positions, rotary_dim)
