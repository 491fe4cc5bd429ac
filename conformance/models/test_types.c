/*
 * The table of model types: what a file that says sizes alone becomes.  Read a second time from
 * the code of each class (transformers 4.57 and 5.23: rotate_half and what applies it, the
 * class's own defaults, the offset of a learned table).
 */
#define _XOPEN_SOURCE 700
#include "conformance/tap/tap.h"
#include "test_text.h"

#include <stdio.h>

static struct model m;
static char error[MODEL_ERROR];

#define SIZES                                                                                  \
    "\"hidden_size\": 1024, \"num_attention_heads\": 32, \"max_position_embeddings\": 2000"

static bool loads(const char *type, const char *more)
{
    char text[512];
    snprintf(text, sizeof text, "{\"model_type\": \"%s\", " SIZES "%s}", type, more);
    model_free(&m);
    if (load_text(text, &m, error) == 0)
        return true;
    printf("# %s\n", error);
    return false;
}

/* 32 heads of 32 unless the class has another width. */
static const struct {
    const char *type, *kernel;
    double theta;
    int dim, rotary_dim;
} rotating[] = {
    { "olmo", "rope_half", 1e4, 32, 32 },
    { "olmoe", "rope_half", 1e4, 32, 32 },
    { "granite", "rope_half", 1e4, 32, 32 },
    { "granitemoe", "rope_half", 1e4, 32, 32 },
    { "granitemoeshared", "rope_half", 1e4, 32, 32 },
    { "smollm3", "rope_half", 2e6, 32, 32 },
    { "exaone4", "rope_half", 1e4, 32, 32 },
    { "seed_oss", "rope_half", 1e4, 128, 128 },
    { "glm4_moe", "rope_half", 1e4, 32, 16 },
    { "minimax_m2", "rope_half", 5e6, 128, 128 },
    { "nemotron", "rope_half", 1e4, 32, 16 },
    { "arcee", "rope_half", 1e4, 32, 32 },
    { "bitnet", "rope_half", 5e5, 32, 32 },
    { "dots1", "rope_half", 1e4, 32, 32 },
    { "lfm2", "rope_half", 1e6, 32, 32 },
    { "ministral", "rope_half", 1e4, 32, 32 },
    { "eurobert", "rope_half", 1e4, 32, 32 },
    { "qwen3", "rope_half", 1e4, 128, 128 },
    { "qwen3_next", "rope_half", 1e4, 256, 64 },
    { "gemma", "rope_half", 1e4, 256, 256 },
    { "gemma2", "rope_half", 1e4, 256, 256 },
    { "glm", "rope_interleaved", 1e4, 128, 64 },
    { "glm4", "rope_interleaved", 1e4, 128, 64 },
    { "cohere2", "rope_interleaved", 1e4, 32, 32 },
    { "helium", "rope_interleaved", 1e5, 128, 128 },
    { "ernie4_5", "rope_interleaved", 5e5, 128, 128 },
    { "ernie4_5_moe", "rope_interleaved", 5e5, 32, 32 },
    { "roformer", "rope_interleaved", 1e4, 32, 32 },
    { "deepseek_v2", "rope_interleaved", 1e4, 64, 64 },
    { "deepseek_v3", "rope_interleaved", 1e4, 64, 64 },
    { "deepseek_v32", "rope_interleaved", 1e4, 64, 64 },
    { "kimi_k2", "rope_interleaved", 1e4, 64, 64 },
    { "glm4_moe_lite", "rope_interleaved", 1e4, 64, 64 },
    { "longcat_flash", "rope_interleaved", 1e7, 64, 64 },
};

static void test_rotating(void)
{
    for (size_t i = 0; i < sizeof rotating / sizeof *rotating; i++) {
        bool loaded = loads(rotating[i].type, "");
        const struct problem *table = find_case(&m, "rope_table/f32/exact", "-prefill"),
                             *heads = find_case(&m, rotating[i].kernel, "-prefill");
        require(loaded && table && heads && heads->dim == rotating[i].dim &&
                    heads->rotary_dim == rotating[i].rotary_dim &&
                    table->freqs.dim == rotating[i].rotary_dim &&
                    !(table->freqs.rope_theta < rotating[i].theta) &&
                    !(table->freqs.rope_theta > rotating[i].theta),
                rotating[i].type);
    }
}

/* Tables of 2000 rows of 1024 unless the class has another. */
static const struct {
    const char *type;
    int rows, first, dim;
} learning[] = {
    { "gpt_neo", 2000, 0, 1024 },
    { "openai-gpt", 2000, 0, 1024 },
    { "blenderbot", 2000, 0, 1024 },
    { "blenderbot-small", 2000, 0, 1024 },
    { "megatron-bert", 2000, 0, 1024 },
    { "mobilebert", 2000, 0, 1024 },
    { "ernie", 2000, 0, 1024 },
    { "electra", 2000, 0, 128 },
    { "convbert", 2000, 0, 768 },
    { "clip_text_model", 2000, 0, 1024 },
    { "siglip_text_model", 2000, 0, 1024 },
    { "camembert", 2000, 2, 1024 },
    { "longformer", 2000, 2, 1024 },
    { "roberta-prelayernorm", 2000, 2, 1024 },
    { "mbart", 2002, 2, 1024 },
    { "mvp", 2002, 2, 1024 },
    { "plbart", 2002, 2, 1024 },
    { "biogpt", 2002, 2, 1024 },
};

static void test_learning(void)
{
    for (size_t i = 0; i < sizeof learning / sizeof *learning; i++) {
        bool loaded = loads(learning[i].type, "");
        const struct problem *p = find_case(&m, "learned_add/f32", "-prefill");
        require(loaded && p && p->rows == learning[i].rows && p->first == learning[i].first &&
                    p->dim == learning[i].dim,
                learning[i].type);
    }
}

static void test_layers(void)
{
    const struct problem *full, *sliding;
    require(loads("gemma3n_text", "") &&
                (full = find_case(&m, "rope_table/f32/exact", "full-prefill")) &&
                (sliding = find_case(&m, "rope_table/f32/exact", "sliding-prefill")) &&
                full->freqs.rope_theta == 1e6 && sliding->freqs.rope_theta == 1e4 &&
                full->freqs.dim == 256 && strstr(m.notes, "One layer in 5"),
            "gemma3n_text: two bases, heads of 256, one layer in 5 full");
    require(loads("smollm3", ", \"num_hidden_layers\": 4, \"no_rope_layers\": [1, 1, 1, 0]") &&
                strstr(m.notes, "1 of 4 layers do not rotate"),
            "smollm3: no_rope_layers has a 1 for those that rotate");
    require(loads("modernbert-decoder", "") &&
                find_case(&m, "rope_table/f32/exact", "sliding-decode"),
            "modernbert-decoder: two bases, and it decodes");
    require(loads("gptj", ", \"head_dim\": 256") &&
                (full = find_case(&m, "rope_interleaved/f32/given", "-prefill")) &&
                full->dim == 256 && full->rotary_dim == 64,
            "gptj: 64 channels where the file does not say");
    require(loads("pegasus", "") && (full = find_case(&m, "sinusoidal", "-prefill")) &&
                full->layout == POSENC_SIN_COS && full->freqs.convention == POSENC_EXPONENT,
            "pegasus: all sines, then all cosines");
}

int main(void)
{
    test_rotating();
    test_learning();
    test_layers();
    model_free(&m);
    return tap_end();
}
