"""Adapter of rotary-embedding-torch for `posenc scoreboard` (docs/adding.md): the table by which it rotates."""
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

from posenc.scoreboard import implements, require_base, table_by_rotation

PACKAGES = ["torch", "rotary-embedding-torch"]


@implements("rope_table", "RotaryEmbedding, apply_rotary_emb()")
def make_table(positions, inv_freq, *, rotary_dim, rope_theta):
    require_base(inv_freq, rope_theta)
    angles = RotaryEmbedding(rotary_dim, theta=rope_theta)(positions.float()).detach()

    def rotate(x):  # [tokens, 1, rotary_dim]
        return apply_rotary_emb(angles[:, None], x, seq_dim=-3, freqs_seq_dim=0)

    return table_by_rotation(rotate, positions, rotary_dim, "interleaved")
