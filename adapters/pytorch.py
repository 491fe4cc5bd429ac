"""Adapter of PyTorch for `posenc scoreboard` (docs/adding.md): the formulas that most models copy, run eagerly."""
import math

import torch

from posenc.scoreboard import implements, require_whole_heads

PACKAGES = ["torch"]


@implements("rope_half", "rotate_half()")
def rotate_half(x, cos, sin):
    rotary_dim = 2 * cos.shape[-1]
    rotated, rest = x[..., :rotary_dim], x[..., rotary_dim:]
    cos, sin = (torch.cat([table, table], -1)[:, None] for table in (cos, sin))
    first, second = rotated.chunk(2, -1)
    return torch.cat([rotated * cos + torch.cat([-second, first], -1) * sin, rest], -1)


@implements("rope_interleaved", "complex product")
def rotate_complex(x, cos, sin):
    require_whole_heads(x, cos)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * torch.complex(cos, sin)[:, None]).flatten(-2).to(x.dtype)


@implements("rope_table", "outer product, f32")
def make_table_f32(positions, inv_freq, *, attention_factor):
    angles = torch.outer(positions.float(), inv_freq.float())
    return angles.cos() * attention_factor, angles.sin() * attention_factor


@implements("rope_table", "outer product, f64")
def make_table_f64(positions, inv_freq, *, attention_factor):
    angles = torch.outer(positions.double(), inv_freq.double())
    return (angles.cos() * attention_factor).float(), (angles.sin() * attention_factor).float()


@implements("sinusoidal", "PositionalEncoding of the tutorial")
def make_sinusoids(positions, inv_freq, *, dim, rope_theta, layout):
    if layout != "interleaved" or dim % 2:
        raise NotImplementedError("sine and cosine in turn only, and an even dim")
    frequencies = torch.exp(torch.arange(0, dim, 2) * (-math.log(rope_theta) / dim))
    out = torch.zeros(len(positions), dim)
    out[:, 0::2] = torch.sin(positions.float()[:, None] * frequencies)
    out[:, 1::2] = torch.cos(positions.float()[:, None] * frequencies)
    return out


@implements("learned_add", "nn.Embedding")
def add_learned(x, positions, table, *, x_scale):
    return x * x_scale + torch.nn.functional.embedding(positions, table).to(x.dtype)


@implements("alibi", "slopes times distance")
def make_alibi(slopes, *, queries, keys, query_offset, causal, batch):
    distance = torch.arange(keys) - (torch.arange(queries) + query_offset)[:, None]
    bias = -slopes.reshape(-1, slopes.shape[-1], 1, 1).expand(batch, -1, -1, -1) * distance.abs()
    return bias.masked_fill(distance > 0, -math.inf) if causal else bias
