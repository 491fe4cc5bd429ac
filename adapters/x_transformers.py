"""Adapter of x-transformers for `posenc scoreboard` (docs/adding.md): RoPE, ALiBi and T5's biases."""
from x_transformers.x_transformers import (AlibiPositionalBias, RelativePositionBias, RotaryEmbedding,
                                           apply_rotary_pos_emb)

from posenc.scoreboard import implements, require_base, table_by_rotation

PACKAGES = ["torch", "x-transformers"]


@implements("rope_table", "RotaryEmbedding, apply_rotary_pos_emb()")
def make_table(positions, inv_freq, *, rotary_dim, rope_theta, scaling, factor):
    divisor = factor if scaling == "linear" else 1.
    require_base(inv_freq * divisor, rope_theta)
    angles, scale = RotaryEmbedding(rotary_dim, base=rope_theta, interpolation_factor=divisor)(positions.float())

    def rotate(x):  # the library has heads before tokens
        return apply_rotary_pos_emb(x.transpose(0, 1)[None], angles, scale)[0].transpose(0, 1)

    return table_by_rotation(rotate, positions, rotary_dim, "interleaved")


@implements("alibi", "AlibiPositionalBias")
def make_alibi(slopes, *, queries, keys, query_offset, causal):
    if causal or slopes.ndim != 1 or keys != queries + query_offset:
        raise NotImplementedError("no mask, and queries at the end of the keys")
    return AlibiPositionalBias(len(slopes), slopes=slopes.tolist())(queries, keys)[None]


@implements("t5_bias", "RelativePositionBias")
def make_t5_bias(table, *, queries, keys, query_offset, num_buckets, max_distance, bidirectional):
    if keys != queries + query_offset:
        raise NotImplementedError("queries at the end of the keys")
    module = RelativePositionBias(scale=1., causal=not bidirectional, num_buckets=num_buckets,
                                  max_distance=max_distance, heads=table.shape[1])
    module.relative_attention_bias.weight.data = table
    return module(queries, keys).detach()[None]
