"""Adapter of diffusers for `posenc scoreboard` (docs/adding.md): timesteps, tables and rotations of image models."""
import torch
from diffusers.models.embeddings import apply_rotary_emb, get_1d_rotary_pos_embed, get_timestep_embedding

from posenc.scoreboard import implements, require_base, require_whole_heads

PACKAGES = ["torch", "diffusers"]


@implements("sinusoidal", "get_timestep_embedding()")
def embed_timesteps(positions, inv_freq, *, dim, rope_theta, layout, freq_spacing):
    if layout not in ("sin_cos", "cos_sin"):
        raise NotImplementedError("all sines before all cosines, or after them")
    return get_timestep_embedding(positions.float(), dim, flip_sin_to_cos=layout == "cos_sin",
                                  downscale_freq_shift=freq_spacing == "endpoint", scale=1, max_period=rope_theta)


def make_table(dtype, positions, inv_freq, rotary_dim, rope_theta):
    """Returns cosines and sines [tokens, pairs], whose angles are formed in a dtype. diffusers repeats each value."""
    require_base(inv_freq, rope_theta)
    cos, sin = get_1d_rotary_pos_embed(rotary_dim, positions, rope_theta, use_real=True, freqs_dtype=dtype)
    return cos[:, ::2], sin[:, ::2]


@implements("rope_table", "get_1d_rotary_pos_embed(), f64 as in Flux")
def make_table_f64(positions, inv_freq, *, rotary_dim, rope_theta):
    return make_table(torch.float64, positions, inv_freq, rotary_dim, rope_theta)


@implements("rope_table", "get_1d_rotary_pos_embed(), f32")
def make_table_f32(positions, inv_freq, *, rotary_dim, rope_theta):
    # Positions in f64 would make the angles f64.
    return make_table(torch.float32, positions.float(), inv_freq, rotary_dim, rope_theta)


@implements("rope_interleaved", "apply_rotary_emb() as in Flux")
def rotate_interleaved(x, cos, sin):
    require_whole_heads(x, cos)
    tables = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    return apply_rotary_emb(x[None], tables, sequence_dim=1)[0]


@implements("rope_half", "apply_rotary_emb() as in CogView4")
def rotate_half(x, cos, sin):
    require_whole_heads(x, cos)
    tables = torch.cat([cos, cos], -1), torch.cat([sin, sin], -1)
    return apply_rotary_emb(x[None], tables, use_real_unbind_dim=-2, sequence_dim=1)[0]


@implements("rope_interleaved", "apply_rotary_emb() as in Lumina, complex")
def rotate_complex(x, cos, sin):
    require_whole_heads(x, cos)
    return apply_rotary_emb(x[None], torch.complex(cos, sin)[None], use_real=False)[0]
