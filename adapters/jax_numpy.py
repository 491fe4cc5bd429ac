"""Adapter of JAX for `posenc scoreboard` (docs/adding.md): formulas of Flax models, compiled by XLA for the CPU."""
import jax
import jax.numpy as jnp

from posenc.scoreboard import implements

PACKAGES = ["jax", "flax"]


@implements("rope_half", "jit of rotate_half()", framework="jax")
@jax.jit
def rotate_half(x, cos, sin):
    pairs = cos.shape[-1]
    first, second, rest = x[..., :pairs], x[..., pairs:2 * pairs], x[..., 2 * pairs:]
    cos, sin = cos[:, None], sin[:, None]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin, rest], -1)


@implements("rope_table", "jit of the outer product, f32", framework="jax")
@jax.jit
def make_table(positions, inv_freq, *, attention_factor):
    angles = positions.astype(jnp.float32)[:, None] * inv_freq.astype(jnp.float32)
    return jnp.cos(angles) * attention_factor, jnp.sin(angles) * attention_factor
