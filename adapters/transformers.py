"""Adapter of transformers for `posenc scoreboard` (docs/adding.md): rotary modules of its models, and other encodings.

make_module() returns a rotary module and its configuration. The scoreboard compares the module with what posenc makes
of that configuration.
"""
import importlib
from typing import NamedTuple, Optional

import torch
from transformers import AutoConfig

from posenc.scoreboard import implements, implements_module, require_whole_heads

PACKAGES = ["torch", "transformers"]
LLAMA_3_1 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8., "low_freq_factor": 1., "high_freq_factor": 4.,
             "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4., "original_max_position_embeddings": 32768}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.}
LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.}
LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 4096,
            # 48 pairs of a head_dim of 96; the factors are made up
            "short_factor": [1. + .01 * i for i in range(48)], "long_factor": [1. + i for i in range(48)]}


class Model(NamedTuple):
    """A rotary module, with the default sizes of its model's configuration."""

    model_type: str
    prefix: str  # of the class PREFIXRotaryEmbedding
    changes: dict = {}  # of the default configuration
    layer_type: Optional[str] = None  # in models whose layers differ


MODELS = [
    Model("llama", "Llama"), Model("llama", "Llama", {"rope_parameters": LLAMA_3_1, "max_position_embeddings": 131072}),
    Model("llama", "Llama", {"rope_parameters": LINEAR}), Model("llama", "Llama", {"rope_parameters": DYNAMIC}),
    Model("mistral", "Mistral"), Model("mixtral", "Mixtral"), Model("qwen2", "Qwen2"),
    Model("qwen3", "Qwen3", {"rope_parameters": YARN, "max_position_embeddings": 131072}),
    Model("qwen3_next", "Qwen3Next"), Model("gemma2", "Gemma2"), Model("gemma3_text", "Gemma3", {}, "full_attention"),
    Model("gemma3_text", "Gemma3", {}, "sliding_attention"), Model("phi", "Phi"),
    Model("phi3", "Phi3", {"rope_parameters": LONGROPE, "max_position_embeddings": 131072}),
    Model("gpt_neox", "GPTNeoX"), Model("gpt_oss", "GptOss"), Model("deepseek_v3", "DeepseekV3"),
    Model("falcon", "Falcon"), Model("olmo2", "Olmo2"), Model("cohere2", "Cohere2"), Model("glm4", "Glm4"),
    Model("stablelm", "StableLm"), Model("granite", "Granite"), Model("modernbert", "ModernBert", {}, "full_attention"),
    Model("smollm3", "SmolLM3"),
]


def modeling_code(name):
    """Returns the Python module that has the classes and functions of a model."""
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def declare(model):
    """Declares the maker of a rotary module, titled such as "Gemma3RotaryEmbedding, full_attention"."""
    scalings = [value["rope_type"] for value in model.changes.values() if isinstance(value, dict)]
    layers = [model.layer_type] if model.layer_type else []

    @implements_module(", ".join([f"{model.prefix}RotaryEmbedding", *scalings, *layers]), model.layer_type)
    def make_module():
        config = AutoConfig.for_model(model.model_type, **model.changes)
        code = modeling_code(model.model_type.replace("_text", ""))
        return getattr(code, f"{model.prefix}RotaryEmbedding")(config), config


for each in MODELS:
    declare(each)


def rotate_by_model(name, x, cos, sin):
    """Rotates x [tokens, heads, head_dim] by a model's function, which also takes keys: here the first head of x."""
    tables = (torch.cat([table, table], -1)[None] for table in (cos, sin))
    code = modeling_code(name)
    queries, _keys = code.apply_rotary_pos_emb(x[None], x[None, :, :1], *tables, unsqueeze_dim=2)
    return queries[0]


@implements("rope_half", "apply_rotary_pos_emb() of Llama")
def rotate_half(x, cos, sin):
    require_whole_heads(x, cos)
    return rotate_by_model("llama", x, cos, sin)


@implements("rope_half", "apply_rotary_pos_emb() of GPT-NeoX, partial")
def rotate_partly(x, cos, sin):  # its function leaves further channels unrotated
    return rotate_by_model("gpt_neox", x, cos, sin)


@implements("sinusoidal", "sinusoids() of Whisper")
def make_sinusoids(positions, inv_freq, *, dim, rope_theta, layout, freq_spacing):
    if layout != "sin_cos" or freq_spacing != "endpoint" or positions.is_floating_point() or positions.min() < 0:
        raise NotImplementedError("sines before cosines, endpoint spacing, and rows from 0 on")
    return modeling_code("whisper").sinusoids(int(positions.max()) + 1, dim, rope_theta)[positions]


@implements("t5_bias", "compute_bias() of T5")
def make_t5_bias(table, *, queries, keys, query_offset, num_buckets, max_distance, bidirectional):
    config = AutoConfig.for_model("t5", relative_attention_num_buckets=num_buckets, num_heads=table.shape[1],
                                  relative_attention_max_distance=max_distance, d_kv=1, d_model=table.shape[1],
                                  is_decoder=not bidirectional)
    attention = modeling_code("t5").T5Attention(config, has_relative_attention_bias=True)
    attention.relative_attention_bias.weight.data = table
    return attention.compute_bias(queries, keys, past_seen_tokens=query_offset).detach()
