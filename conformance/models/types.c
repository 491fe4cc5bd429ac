/*
 * The model types of Hugging Face's library: how each pairs channels or encodes otherwise,
 * which its files do not say, and what its classes take where a file says nothing
 * (huggingface/transformers, models/<type>/configuration_<type>.py and modeling_<type>.py).
 */
#include "config.h"

#include <string.h>

#define JSON(...)          #__VA_ARGS__
#define THETA              JSON({ "rope_theta" : 10000 })
#define HEADS_OF(n)        JSON({ "rope_theta" : 10000, "head_dim" : n })
#define BASE(theta)        JSON({ "rope_theta" : theta })
#define BASED(theta, n)    JSON({ "rope_theta" : theta, "head_dim" : n })
#define SHARE(part)        JSON({ "rope_theta" : 10000, "partial_rotary_factor" : part })
#define LATENT(theta, n)   JSON({ "rope_theta" : theta, "qk_rope_head_dim" : n })
#define ROTARY(n)          JSON({ "rope_theta" : 10000, "rotary_dim" : n })
#define PADDING            JSON({ "pad_token_id" : 1 })
#define ROWS_OF(n)         JSON({ "embedding_size" : n })
#define SCALED             JSON({ "scale_embedding" : true })
#define TEXT_TOWER(d, len) JSON({ "hidden_size" : d, "max_position_embeddings" : len })

static const char gemma3_text[] = JSON({
    "num_attention_heads" : 8,
    "num_key_value_heads" : 4,
    "head_dim" : 256,
    "max_position_embeddings" : 131072,
    "rope_theta" : 1000000,
    "rope_local_base_freq" : 10000,
    "sliding_window_pattern" : 6
});
static const char gemma3n_text[] = JSON({
    "hidden_size" : 2048,
    "num_attention_heads" : 8,
    "num_key_value_heads" : 2,
    "head_dim" : 256,
    "max_position_embeddings" : 32768,
    "rope_theta" : 1000000,
    "rope_local_base_freq" : 10000,
    "sliding_window_pattern" : 5
});
static const char falcon[] = JSON({
    "hidden_size" : 4544,
    "num_attention_heads" : 71,
    "max_position_embeddings" : 2048,
    "rope_theta" : 10000,
    "alibi" : false,
    "multi_query" : true
});
static const char glm[] =
    JSON({ "rope_theta" : 10000, "partial_rotary_factor" : 0.5, "head_dim" : 128 });
static const char qwen3_next[] =
    JSON({ "rope_theta" : 10000, "partial_rotary_factor" : 0.25, "head_dim" : 256 });
static const char smollm3[] = JSON({ "rope_theta" : 2000000, "no_rope_layer_interval" : 4 });
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

#define T5_NOTE "T5 has no longest position; it was trained on n_positions, or 512"
#define LFM2_NOTE                                                                              \
    "Its layers of convolution have no rotation.  A member `theta`, which releases before 5 "  \
    "prefer to rope_theta, is not read"
#define DEEPSEEK_NOTE  "With mscale_all_dim its code scales attention scores, too: not covered"
#define LAYERS_WITHOUT "Its layers of linear attention have no rotation"

static const struct model_type types[] = {
    { "transformer", SINUSOIDAL, 0, JSON({ "rope_theta" : 10000, "scale_embedding" : true }),
      NULL },
    { "marian", SINUSOIDAL, SIN_THEN_COS, THETA, NULL },
    { "pegasus", SINUSOIDAL, SIN_THEN_COS, THETA, NULL },
    { "whisper", SINUSOIDAL, SPEECH, "{}", NULL },
    { "gpt2", LEARNED, 0, "{}", NULL },
    { "gpt_bigcode", LEARNED, 0, "{}", NULL },
    { "gpt_neo", LEARNED, 0, "{}", NULL },
    { "openai-gpt", LEARNED, 0, "{}", NULL },
    { "blenderbot", LEARNED, 0, "{}", NULL },
    { "blenderbot-small", LEARNED, 0, "{}", NULL },
    { "bert", LEARNED, ENCODER, "{}", NULL },
    { "megatron-bert", LEARNED, ENCODER, "{}", NULL },
    { "mobilebert", LEARNED, ENCODER, "{}", NULL },
    { "ernie", LEARNED, ENCODER, "{}", "With use_task_id its code adds a table of tasks, too" },
    { "albert", LEARNED, ENCODER | BY_EMBEDDING, ROWS_OF(128), NULL },
    { "electra", LEARNED, ENCODER | BY_EMBEDDING, ROWS_OF(128), NULL },
    { "convbert", LEARNED, ENCODER | BY_EMBEDDING, ROWS_OF(768), NULL },
    { "roberta", LEARNED, ENCODER | PAD_OFFSET, PADDING, NULL },
    { "xlm-roberta", LEARNED, ENCODER | PAD_OFFSET, PADDING, NULL },
    { "camembert", LEARNED, ENCODER | PAD_OFFSET, PADDING, NULL },
    { "longformer", LEARNED, ENCODER | PAD_OFFSET, PADDING, NULL },
    { "roberta-prelayernorm", LEARNED, ENCODER | PAD_OFFSET, PADDING, NULL },
    { "clip_text_model", LEARNED, ENCODER, TEXT_TOWER(512, 77), NULL },
    { "siglip_text_model", LEARNED, ENCODER, TEXT_TOWER(768, 64), NULL },
    { "bart", LEARNED, TWO_OFFSET, "{}", NULL },
    { "mbart", LEARNED, TWO_OFFSET, "{}", NULL },
    { "mvp", LEARNED, TWO_OFFSET, "{}", NULL },
    { "plbart", LEARNED, TWO_OFFSET, SCALED, NULL },
    { "biogpt", LEARNED, TWO_OFFSET, SCALED, NULL },
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
    { "ministral", ROPE_HALF, 0, THETA, NULL },
    { "mixtral", ROPE_HALF, 0, "{}", NULL },
    { "qwen2", ROPE_HALF, 0, THETA, NULL },
    { "qwen2_moe", ROPE_HALF, 0, THETA, NULL },
    { "qwen2_vl", ROPE_HALF, 0, CHUNKED, NULL },
    { "qwen2_vl_text", ROPE_HALF, 0, CHUNKED, NULL },
    { "qwen2_5_vl", ROPE_HALF, 0, CHUNKED, NULL },
    { "qwen2_5_vl_text", ROPE_HALF, 0, CHUNKED, NULL },
    { "qwen3", ROPE_HALF, 0, HEADS_OF(128), NULL },
    { "qwen3_moe", ROPE_HALF, 0, THETA, NULL },
    { "qwen3_next", ROPE_HALF, 0, qwen3_next, LAYERS_WITHOUT },
    { "qwen3_vl_text", ROPE_HALF, 0, TURNS(24, 20, 20), NULL },
    { "qwen3_vl_moe_text", ROPE_HALF, 0, TURNS(24, 20, 20), NULL },
    { "qwen3_5_text", ROPE_HALF, 0, TURNS(11, 11, 10), LAYERS_WITHOUT },
    { "qwen3_5_moe_text", ROPE_HALF, 0, TURNS(11, 11, 10), LAYERS_WITHOUT },
    { "gemma", ROPE_HALF, 0, HEADS_OF(256), NULL },
    { "gemma2", ROPE_HALF, 0, HEADS_OF(256), NULL },
    { "gemma3_text", ROPE_HALF, 0, gemma3_text, NULL },
    { "gemma3n_text", ROPE_HALF, 0, gemma3n_text, NULL },
    { "gemma4_text", ROPE_HALF, 0, "{}", NULL },
    { "gemma4_unified_text", ROPE_HALF, 0, "{}", NULL },
    { "phi", ROPE_HALF, 0, SHARE(0.5), NULL },
    { "phi-msft", ROPE_HALF, 0, THETA, NULL },
    { "phi3", ROPE_HALF, 0, THETA, NULL },
    { "gpt_neox", ROPE_HALF, 0, JSON({ "rope_theta" : 10000, "rotary_pct" : 0.25 }), NULL },
    { "gpt_oss", ROPE_HALF, 0, "{}", NULL },
    { "internlm2", ROPE_HALF, 0, THETA, NULL },
    { "olmo", ROPE_HALF, 0, THETA, NULL },
    { "olmo2", ROPE_HALF, 0, THETA, NULL },
    { "olmoe", ROPE_HALF, 0, THETA, NULL },
    { "granite", ROPE_HALF, 0, THETA, NULL },
    { "granitemoe", ROPE_HALF, 0, THETA, NULL },
    { "granitemoeshared", ROPE_HALF, 0, THETA, NULL },
    { "smollm3", ROPE_HALF, 0, smollm3, NULL },
    { "exaone4", ROPE_HALF, 0, THETA,
      "Where sliding_window is set its layers of full attention have no rotation" },
    { "seed_oss", ROPE_HALF, 0, HEADS_OF(128), NULL },
    { "glm4_moe", ROPE_HALF, 0, SHARE(0.5), NULL },
    { "minimax_m2", ROPE_HALF, 0, BASED(5000000, 128), NULL },
    { "nemotron", ROPE_HALF, 0, SHARE(0.5), NULL },
    { "arcee", ROPE_HALF, 0, THETA, NULL },
    { "bitnet", ROPE_HALF, 0, BASE(500000), NULL },
    { "dots1", ROPE_HALF, 0, THETA, NULL },
    { "lfm2", ROPE_HALF, 0, BASE(1000000), LFM2_NOTE },
    { "starcoder2", ROPE_HALF, 0, THETA, NULL },
    { "stablelm", ROPE_HALF, 0, SHARE(0.25), NULL },
    { "eurobert", ROPE_HALF, ENCODER, THETA, NULL },
    { "modernbert", ROPE_HALF, ENCODER, modernbert, NULL },
    { "modernbert-decoder", ROPE_HALF, 0, modernbert, NULL },
    { "gptj", ROPE_INTERLEAVED, 0, ROTARY(64), NULL },
    { "glm", ROPE_INTERLEAVED, 0, glm, NULL },
    { "glm4", ROPE_INTERLEAVED, 0, glm, NULL },
    { "codegen", ROPE_INTERLEAVED, 0, ROTARY(64), NULL },
    { "cohere", ROPE_INTERLEAVED, 0, THETA, NULL },
    { "cohere2", ROPE_INTERLEAVED, 0, THETA, "Its layers of full attention have no rotation" },
    { "helium", ROPE_INTERLEAVED, 0, BASED(100000, 128), NULL },
    { "ernie4_5", ROPE_INTERLEAVED, 0, BASED(500000, 128), NULL },
    { "ernie4_5_moe", ROPE_INTERLEAVED, 0, BASE(500000), NULL },
    { "roformer", ROPE_INTERLEAVED, ENCODER, THETA,
      "With rotary_value its code turns values, too" },
    { "deepseek_v2", ROPE_INTERLEAVED, 0, LATENT(10000, 64), DEEPSEEK_NOTE },
    { "deepseek_v3", ROPE_INTERLEAVED, 0, LATENT(10000, 64), DEEPSEEK_NOTE },
    { "deepseek_v32", ROPE_INTERLEAVED, 0, LATENT(10000, 64),
      DEEPSEEK_NOTE ".  Its indexer turns halves of its own heads: not covered" },
    { "kimi_k2", ROPE_INTERLEAVED, 0, LATENT(10000, 64), DEEPSEEK_NOTE },
    { "glm4_moe_lite", ROPE_INTERLEAVED, 0, LATENT(10000, 64), DEEPSEEK_NOTE },
    { "longcat_flash", ROPE_INTERLEAVED, 0, LATENT(10000000, 64), DEEPSEEK_NOTE },
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
