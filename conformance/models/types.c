/*
 * The model types of Hugging Face's library: how each pairs channels or encodes otherwise,
 * which its files do not say, and what its classes take where a file says nothing
 * (huggingface/transformers, models/<type>/configuration_<type>.py and modeling_<type>.py).
 */
#include "config.h"

#include <string.h>

#define JSON(...) #__VA_ARGS__
#define THETA     JSON({ "rope_theta" : 10000 })

static const char gemma3_text[] = JSON({
    "num_attention_heads" : 8,
    "num_key_value_heads" : 4,
    "head_dim" : 256,
    "max_position_embeddings" : 131072,
    "rope_theta" : 1000000,
    "rope_local_base_freq" : 10000,
    "sliding_window_pattern" : 6
});
static const char falcon[] = JSON({
    "hidden_size" : 4544,
    "num_attention_heads" : 71,
    "max_position_embeddings" : 2048,
    "rope_theta" : 10000,
    "alibi" : false,
    "multi_query" : true
});
static const char glm[] = JSON({ "rope_theta" : 10000, "partial_rotary_factor" : 0.5 });
static const char t5[] = JSON({ "n_positions" : 512 });

static const char transfo_xl[] = JSON(
    { "d_model" : 1024, "n_head" : 16, "d_head" : 64, "mem_len" : 1600, "n_positions" : 512 });
static const char beit[] = JSON({ "patch_size" : 16, "max_position_embeddings" : 1 });

/* Code that takes its sections in one way, whatever its files say of mrope_interleaved. */
#define CHUNKED        JSON({ "mrope_interleaved" : false })
#define TURNS(t, h, w) JSON({ "mrope_interleaved" : true, "mrope_section" : [ t, h, w ] })
static const char modernbert[] = JSON({
    "global_rope_theta" : 160000,
    "local_rope_theta" : 10000,
    "global_attn_every_n_layers" : 3
});

#define T5_NOTE        "T5 has no longest position: n_positions, or 512, is what it was trained on"
#define DEEPSEEK_NOTE  "With mscale_all_dim its code scales attention scores, too: not covered"
#define LAYERS_WITHOUT "Its layers of linear attention have no rotation"

static const struct model_type types[] = {
    { "transformer", SINUSOIDAL, 0, JSON({ "rope_theta" : 10000, "scale_embedding" : true }),
      NULL },
    { "marian", SINUSOIDAL, SIN_THEN_COS, THETA, NULL },
    { "whisper", SINUSOIDAL, SPEECH, "{}", NULL },
    { "gpt2", LEARNED, 0, "{}", NULL },
    { "gpt_bigcode", LEARNED, 0, "{}", NULL },
    { "bert", LEARNED, ENCODER, "{}", NULL },
    { "albert", LEARNED, ENCODER | BY_EMBEDDING, JSON({ "embedding_size" : 128 }), NULL },
    { "roberta", LEARNED, ENCODER | PAD_OFFSET, JSON({ "pad_token_id" : 1 }), NULL },
    { "xlm-roberta", LEARNED, ENCODER | PAD_OFFSET, JSON({ "pad_token_id" : 1 }), NULL },
    { "bart", LEARNED, TWO_OFFSET, "{}", NULL },
    { "opt", LEARNED, TWO_OFFSET, "{}", NULL },
    { "llama", ROPE_HALF, 0, THETA, NULL },
    { "llama4_text", ROPE_INTERLEAVED, 0,
      JSON({ "rope_theta" : 500000, "no_rope_layer_interval" : 4 }),
      "Its layers without a rotation may scale queries by their position "
      "(attn_temperature_tuning): not covered" },
    { "mllama_text_model", ROPE_HALF, 0, JSON({ "rope_theta" : 500000 }),
      "Its cross-attention layers do not rotate" },
    { "mistral", ROPE_HALF, 0, THETA, NULL },
    { "ministral3", ROPE_HALF, 0, "{}", NULL },
    { "mixtral", ROPE_HALF, 0, "{}", NULL },
    { "qwen2", ROPE_HALF, 0, THETA, NULL },
    { "qwen2_moe", ROPE_HALF, 0, THETA, NULL },
    { "qwen2_vl", ROPE_HALF, 0, CHUNKED, NULL },
    { "qwen2_vl_text", ROPE_HALF, 0, CHUNKED, NULL },
    { "qwen2_5_vl", ROPE_HALF, 0, CHUNKED, NULL },
    { "qwen2_5_vl_text", ROPE_HALF, 0, CHUNKED, NULL },
    { "qwen3", ROPE_HALF, 0, THETA, NULL },
    { "qwen3_moe", ROPE_HALF, 0, THETA, NULL },
    { "qwen3_vl_text", ROPE_HALF, 0, TURNS(24, 20, 20), NULL },
    { "qwen3_vl_moe_text", ROPE_HALF, 0, TURNS(24, 20, 20), NULL },
    { "qwen3_5_text", ROPE_HALF, 0, TURNS(11, 11, 10), LAYERS_WITHOUT },
    { "qwen3_5_moe_text", ROPE_HALF, 0, TURNS(11, 11, 10), LAYERS_WITHOUT },
    { "gemma", ROPE_HALF, 0, THETA, NULL },
    { "gemma2", ROPE_HALF, 0, THETA, NULL },
    { "gemma3_text", ROPE_HALF, 0, gemma3_text, NULL },
    { "gemma4_text", ROPE_HALF, 0, "{}", NULL },
    { "gemma4_unified_text", ROPE_HALF, 0, "{}", NULL },
    { "phi", ROPE_HALF, 0, JSON({ "rope_theta" : 10000, "partial_rotary_factor" : 0.5 }),
      NULL },
    { "phi-msft", ROPE_HALF, 0, THETA, NULL },
    { "phi3", ROPE_HALF, 0, THETA, NULL },
    { "gpt_neox", ROPE_HALF, 0, JSON({ "rope_theta" : 10000, "rotary_pct" : 0.25 }), NULL },
    { "gpt_oss", ROPE_HALF, 0, "{}", NULL },
    { "internlm2", ROPE_HALF, 0, THETA, NULL },
    { "olmo2", ROPE_HALF, 0, THETA, NULL },
    { "starcoder2", ROPE_HALF, 0, THETA, NULL },
    { "stablelm", ROPE_HALF, 0, JSON({ "rope_theta" : 10000, "partial_rotary_factor" : 0.25 }),
      NULL },
    { "modernbert", ROPE_HALF, ENCODER, modernbert, NULL },
    { "gptj", ROPE_INTERLEAVED, 0, THETA, NULL },
    { "glm", ROPE_INTERLEAVED, 0, glm, NULL },
    { "glm4", ROPE_INTERLEAVED, 0, glm, NULL },
    { "codegen", ROPE_INTERLEAVED, 0, THETA, NULL },
    { "cohere", ROPE_INTERLEAVED, 0, THETA, NULL },
    { "deepseek_v2", ROPE_INTERLEAVED, 0, THETA, DEEPSEEK_NOTE },
    { "deepseek_v3", ROPE_INTERLEAVED, 0, THETA, DEEPSEEK_NOTE },
    { "falcon", ROPE_HALF, 0, falcon, NULL },
    { "RefinedWebModel", ROPE_HALF, 0, falcon, NULL },
    { "baichuan", ROPE_HALF, BY_WIDTH, THETA, NULL },
    { "bloom", ALIBI, 0, "{}", NULL },
    { "mpt", ALIBI, 0, "{}", NULL },
    { "t5", T5, 0, t5, T5_NOTE },
    { "mt5", T5, 0, t5, T5_NOTE },
    { "deberta", DEBERTA, ENCODER | MAYBE_RELATIVE, "{}", NULL },
    { "deberta-v2", DEBERTA, ENCODER | MAYBE_RELATIVE, "{}", NULL },
    { "transfo-xl", TRANSFORMER_XL, 0, transfo_xl, NULL },
    { "swin", WINDOW, ENCODER | STAGES, JSON({ "patch_size" : 4 }), NULL },
    { "beit", WINDOW, ENCODER, beit, NULL },
    { "xlnet", LEARNED, UNSUPPORTED, "{}",
      "relative positions in both directions, by segment" },
    { "swinv2", LEARNED, UNSUPPORTED, "{}", "a network that makes the bias of a window" },
};
enum { N_TYPES = sizeof types / sizeof *types };

const struct model_type *model_type_at(size_t index)
{
    return index < N_TYPES ? &types[index] : NULL;
}

const struct model_type *model_type_find(const char *name)
{
    for (int i = 0; i < N_TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}
