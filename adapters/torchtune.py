"""Adapter of torchtune for `posenc scoreboard` (docs/adding.md): the tables by which its modules rotate."""
import torch
from torchtune.models.llama3_1 import Llama3ScaledRoPE
from torchtune.modules import RotaryPositionalEmbeddings

from posenc.scoreboard import implements, implements_module, require_base, table_by_rotation

PACKAGES = ["torch", "torchtune", "torchao==0.9.0"]  # torchtune needs what later ones lack
CACHE_ROWS = 1 << 17


def make_table(module, positions, dim):
    """Returns cosines and sines [tokens, dim/2] of a rotary module."""
    batched = positions[None].long()
    return table_by_rotation(lambda x: module(x[None], input_pos=batched)[0], positions, dim, "interleaved")


@implements("rope_table", "RotaryPositionalEmbeddings", max_position=CACHE_ROWS)
def make_unscaled_table(positions, inv_freq, *, rotary_dim, rope_theta):
    require_base(inv_freq, rope_theta)
    if positions.is_floating_point():
        raise NotImplementedError("integers only")
    return make_table(RotaryPositionalEmbeddings(rotary_dim, CACHE_ROWS, rope_theta), positions, rotary_dim)


class Llama31(torch.nn.Module):
    """Llama3ScaledRoPE with the call of a rotary module of transformers: forward() returns cos and sin."""

    def __init__(self):
        super().__init__()
        self.rope = Llama3ScaledRoPE(128, CACHE_ROWS, 500000)
        self.inv_freq = self.rope.theta

    def forward(self, x, position_ids):
        return tuple(table[None] for table in make_table(self.rope, position_ids[0], 128))


@implements_module("Llama3ScaledRoPE")
def make_llama_3_1():
    """Returns the module and the configuration to compare it with."""
    scaling = {"rope_type": "llama3", "factor": 8., "low_freq_factor": 1., "high_freq_factor": 4.,
               "original_max_position_embeddings": 8192}
    return Llama31(), {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
                       "max_position_embeddings": CACHE_ROWS, "rope_theta": 500000., "rope_scaling": scaling}
