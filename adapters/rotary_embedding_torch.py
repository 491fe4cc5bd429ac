"""rotary-embedding-torch, whose tables are read by rotating unit vectors."""
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

from posenc.scoreboard import implements, require_base, table_by_rotation

PACKAGES = ["torch", "rotary-embedding-torch"]


@implements("rope_table", "RotaryEmbedding, apply_rotary_emb()")
def table(positions, inv_freq, *, rotary_dim, rope_theta):
    require_base(inv_freq, rope_theta)
    angles = RotaryEmbedding(rotary_dim, theta=rope_theta)(positions.float()).detach()
    return table_by_rotation(lambda x: apply_rotary_emb(angles[:, None], x, seq_dim=-3, freqs_seq_dim=0),
                             positions, rotary_dim, "interleaved")
