/*
 * How often a step of a model makes each of its calls: what the cost of a token is added up from.
 */
#define _XOPEN_SOURCE 700
#include "conformance/tap/tap.h"
#include "model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct model m;
static char error[MODEL_ERROR];

/* A name, or a configuration as text. */
static bool load(const char *text)
{
    model_free(&m);
    if (*text != '{')
        return model_load(text, &m, error) == 0;
    FILE *file = fmemopen((char *)text, strlen(text), "r");
    const bool read = file && model_from_file(file, "test.json", &m, error) == 0;
    if (file)
        fclose(file);
    return read;
}

/* "STEP TIMES" of the case of a kernel whose id ends so; "none" where no step makes it. */
static const char *calls_of(const char *kernel, const char *end)
{
    static char text[64];
    for (size_t i = 0; i < m.n_cases; i++) {
        const struct model_case *c = &m.cases[i];
        const size_t n = strlen(c->id), tail = strlen(end);
        if (strncmp(c->id, kernel, strlen(kernel)) != 0 || c->id[strlen(kernel)] != '/' ||
            n < tail || strcmp(c->id + n - tail, end) != 0)
            continue;
        snprintf(text, sizeof text, "%s %" PRId64, c->step, c->times);
        return *c->step ? text : "none";
    }
    return "no such case";
}

#define LLAMA                                                                                  \
    "{\"model_type\": \"llama\", \"hidden_size\": 256, \"num_attention_heads\": 4, \
\"max_position_embeddings\": 2048"
#define LAYERS "\"num_hidden_layers\": 8"

static const struct {
    const char *says, *model, *kernel, *end, *calls;
} rows[] = {
    { "every layer turns its heads", "llama-3.1-8b", "rope_half", "-decode", "decode 32" },
    { "tables are made once a step", "llama-3.1-8b", "rope_table", "-prefill", "prefill 1" },
    { "types of layers that turn alike make one call", "gemma-3-4b", "rope_half", "-decode",
      "decode 34" },
    { "and have a table each", "gemma-3-4b", "rope_table", "-sliding-decode", "decode 1" },
    { "a norm in the same pass is another way", "qwen3-8b", "rope_qk_norm", "-decode-keys",
      "none" },
    { "types that do not are counted", "gemma-4-e2b", "rope_half", "-full-decode", "decode 7" },
    { "each", "gemma-4-e2b", "rope_half", "-sliding-prefill", "prefill 28" },
    { "layers that do not rotate are left out", "llama-4-scout", "rope_interleaved", "-decode",
      "decode 36" },
    { "layers of linear attention, too", "qwen3.5-0.8b", "rope_half", "b-decode", "decode 6" },
    { "a vision tower has steps and layers of its own", "qwen3.5-0.8b", "rope_half",
      "-vision-image", "vision-image 12" },
    { "so has each stage of Swin", "swin-tiny", "window_bias_add", "stage3-image", "image 6" },
    { "a bias is added in every layer", "bloom-560m", "alibi_add", "-decode", "decode 24" },
    { "a bias as a tensor is another way", "bloom-560m", "alibi", "-tensor", "none" },
    { "what is added to embeddings is added once", "whisper-large-v3", "learned_add",
      "-decoder-decode", "decoder-decode 1" },
    { "the layers of T5's decoder are a number of their own",
      "{\"model_type\": \"t5\", \"d_model\": 64, \"num_heads\": 4, \"d_kv\": 16, "
      "\"n_positions\": 512, \"num_layers\": 8, \"num_decoder_layers\": 2}",
      "t5_bias_add", "-decode", "decode 2" },
    { "one layer in three, the first, has full attention",
      "{\"model_type\": \"modernbert\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
      "\"max_position_embeddings\": 512, \"head_dim\": 16, " LAYERS "}",
      "rope_half", "-prefill", "prefill 8" },
    { "a configuration that does not say how many layers there are has those of its class",
      LLAMA "}", "rope_half", "-decode", "decode 32" },
    { "or how many of them rotate",
      "{\"model_type\": \"cohere2\", \"hidden_size\": 256, \"num_attention_heads\": 4, "
      "\"max_position_embeddings\": 2048, " LAYERS "}",
      "rope_interleaved", "-decode", "decode 0" },
    { "one layer in four that rests",
      "{\"model_type\": \"smollm3\", \"hidden_size\": 256, \"num_attention_heads\": 4, "
      "\"max_position_embeddings\": 2048, " LAYERS "}",
      "rope_half", "-decode", "decode 6" },
};

/* Each preset says of each of its steps how often. */
static void test_presets(void)
{
    bool all = true;
    for (size_t i = 0; model_name_at(i); i++) {
        bool some = false, known = load(model_name_at(i));
        for (size_t c = 0; c < m.n_cases; c++) {
            some |= *m.cases[c].step != '\0';
            known &= !*m.cases[c].step || m.cases[c].times > 0;
        }
        if (!some || !known)
            printf("# %s\n", model_name_at(i));
        all &= some && known;
    }
    require(all, "every preset knows how often its steps make their calls");
}

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *got = load(rows[i].model) ? calls_of(rows[i].kernel, rows[i].end) : error;
        if (strcmp(got, rows[i].calls) != 0)
            printf("# %s\n", got);
        require(strcmp(got, rows[i].calls) == 0, rows[i].says);
    }
    test_presets();
    model_free(&m);
    return tap_end();
}
