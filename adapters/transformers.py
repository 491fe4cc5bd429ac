"""transformers: rotary modules of its models with their own default sizes, and other encodings."""
import importlib

import torch
from transformers import AutoConfig

from posenc.scoreboard import implements, implements_module

PACKAGES = ["torch", "transformers"]
LLAMA_3_1 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8., "low_freq_factor": 1., "high_freq_factor": 4.,
             "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4., "original_max_position_embeddings": 32768}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.}
LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.}
LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 4096,
            "short_factor": [1. + .01 * i for i in range(48)], "long_factor": [1. + i for i in range(48)]}
MODELS = [  # type, class of the module, what replaces its configuration's defaults, type of layers if they differ
    ("llama", "Llama", {}), ("llama", "Llama", {"rope_parameters": LLAMA_3_1, "max_position_embeddings": 131072}),
    ("llama", "Llama", {"rope_parameters": LINEAR}), ("llama", "Llama", {"rope_parameters": DYNAMIC}),
    ("mistral", "Mistral", {}), ("mixtral", "Mixtral", {}), ("qwen2", "Qwen2", {}),
    ("qwen3", "Qwen3", {"rope_parameters": YARN, "max_position_embeddings": 131072}), ("qwen3_next", "Qwen3Next", {}),
    ("gemma2", "Gemma2", {}), ("gemma3_text", "Gemma3", {}, "full_attention"),
    ("gemma3_text", "Gemma3", {}, "sliding_attention"), ("phi", "Phi", {}),
    ("phi3", "Phi3", {"rope_parameters": LONGROPE, "max_position_embeddings": 131072}), ("gpt_neox", "GPTNeoX", {}),
    ("gpt_oss", "GptOss", {}), ("deepseek_v3", "DeepseekV3", {}), ("falcon", "Falcon", {}), ("olmo2", "Olmo2", {}),
    ("cohere2", "Cohere2", {}), ("glm4", "Glm4", {}), ("stablelm", "StableLm", {}), ("granite", "Granite", {}),
    ("modernbert", "ModernBert", {}, "full_attention"), ("smollm3", "SmolLM3", {}),
]


def code_of(name):
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


for model_type, prefix, changes, *layers in MODELS:
    scalings = [value["rope_type"] for value in changes.values() if isinstance(value, dict)]

    @implements_module(", ".join([f"{prefix}RotaryEmbedding", *scalings, *layers]), *layers)
    def module(model_type=model_type, prefix=prefix, changes=changes):
        config = AutoConfig.for_model(model_type, **changes)
        return getattr(code_of(model_type.replace("_text", "")), f"{prefix}RotaryEmbedding")(config), config


@implements("rope_half", "apply_rotary_pos_emb() of Llama")
def rotate(x, cos, sin):
    if x.shape[-1] != 2 * cos.shape[-1]:
        raise NotImplementedError("rotates whole heads only")
    tables = (torch.cat([table, table], -1)[None] for table in (cos, sin))
    return code_of("llama").apply_rotary_pos_emb(x[None], x[None, :, :1], *tables, unsqueeze_dim=2)[0][0]


@implements("rope_half", "apply_rotary_pos_emb() of GPT-NeoX, partial")
def rotate_partly(x, cos, sin):
    tables = (torch.cat([table, table], -1)[None] for table in (cos, sin))
    return code_of("gpt_neox").apply_rotary_pos_emb(x[None], x[None, :, :1], *tables, unsqueeze_dim=2)[0][0]


@implements("sinusoidal", "sinusoids() of Whisper")
def whisper(positions, inv_freq, *, dim, rope_theta, layout, freq_spacing):
    if layout != "sin_cos" or freq_spacing != "endpoint" or positions.is_floating_point() or positions.min() < 0:
        raise NotImplementedError("sines before cosines, endpoint spacing, and rows from 0 on")
    return code_of("whisper").sinusoids(int(positions.max()) + 1, dim, rope_theta)[positions]


@implements("t5_bias", "compute_bias() of T5")
def t5(table, *, queries, keys, query_offset, num_buckets, max_distance, bidirectional):
    config = AutoConfig.for_model("t5", relative_attention_num_buckets=num_buckets, num_heads=table.shape[1],
                                  relative_attention_max_distance=max_distance, d_kv=1, d_model=table.shape[1],
                                  is_decoder=not bidirectional)
    attention = code_of("t5").T5Attention(config, has_relative_attention_bias=True)
    attention.relative_attention_bias.weight.data = table
    return attention.compute_bias(queries, keys, past_seen_tokens=query_offset).detach()
