"""torchtune: its rotary modules, whose tables are read by rotating unit vectors."""
import torch
from torchtune.models.llama3_1 import Llama3ScaledRoPE
from torchtune.modules import RotaryPositionalEmbeddings

from posenc.scoreboard import implements, implements_module, require_base, table_by_rotation

PACKAGES = ["torch", "torchtune", "torchao==0.9.0"]  # torchtune needs what later ones lack
LARGEST = 1 << 17  # rows of the cache


def rotate(module, positions, dim):
    positions_tensor = positions[None].long()
    return table_by_rotation(lambda x: module(x[None], input_pos=positions_tensor)[0], positions, dim, "interleaved")


@implements("rope_table", "RotaryPositionalEmbeddings", max_position=LARGEST)
def rope(positions, inv_freq, *, rotary_dim, rope_theta):
    require_base(inv_freq, rope_theta)
    if positions.is_floating_point():
        raise NotImplementedError("integers only")
    return rotate(RotaryPositionalEmbeddings(rotary_dim, LARGEST, rope_theta), positions, rotary_dim)


class Llama31(torch.nn.Module):
    """Tables of the module of Llama 3.1, in the form of a rotary module of transformers."""

    def __init__(self):
        super().__init__()
        self.rope = Llama3ScaledRoPE(128, LARGEST, 500000)
        self.inv_freq = self.rope.theta

    def forward(self, x, position_ids):
        return tuple(table[None] for table in rotate(self.rope, position_ids[0], 128))


@implements_module("Llama3ScaledRoPE")
def llama_3_1():
    scaling = {"rope_type": "llama3", "factor": 8., "low_freq_factor": 1., "high_freq_factor": 4.,
               "original_max_position_embeddings": 8192}
    return Llama31(), {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
                       "max_position_embeddings": LARGEST, "rope_theta": 500000., "rope_scaling": scaling}
