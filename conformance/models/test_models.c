/*
 * The built-in models: each loads and each of its problems is one the library takes; their
 * numbers against those that DESIGN's sources give; and configurations that must be refused.
 */
#define _XOPEN_SOURCE 700
#include "conformance/tap/tap.h"
#include "test_text.h"

#include <math.h>
#include <sys/stat.h>

/* A problem may be large (BLOOM's scores are 117 MB): few tokens or queries say as
 * much here. */
static struct problem small(struct problem p)
{
    if (p.tokens > 8)
        p.tokens = 8;
    if (p.queries > 4)
        p.queries = 4;
    if (p.relative == RELATIVE_TRANSFORMER_XL) /* whose queries are the last of the keys */
        p.query_offset = p.keys - p.queries;
    return p;
}

static bool valid(const struct problem *problem)
{
    struct problem p = small(*problem);
    struct call call;
    const struct posenc_backend *backend = posenc_backend_find("scalar");
    enum posenc_status status = call_create(&call, &p, &memory_plain);
    if (status == POSENC_OK) {
        status = call_run(&call, backend);
        call_destroy(&call);
    }
    if (status != POSENC_OK)
        printf("# %s: %s\n", posenc_kernel_name(p.kernel), posenc_status_string(status));
    return status == POSENC_OK;
}

/* Case ids are of [a-z0-9_./-] and unlike each other. */
static bool good_ids(const struct model *m)
{
    for (size_t i = 0; i < m->n_cases; i++) {
        const char *id = m->cases[i].id;
        if (strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_./-") != strlen(id))
            return false;
        for (size_t j = 0; j < i; j++)
            if (strcmp(id, m->cases[j].id) == 0)
                return false;
    }
    return true;
}

static bool reaches_the_end(const struct model *m)
{
    for (size_t i = 0; i < m->n_verify; i++) {
        const struct problem *p = &m->verify[i];
        const int64_t end =
            p->kernel == POSENC_KERNEL_learned_add ? p->rows : m->max_position_embeddings;
        if (p->first + p->tokens == end || p->keys == end)
            return true;
    }
    return false;
}

static void test_built_in(void)
{
    static struct model m;
    char error[MODEL_ERROR] = "", sentence[128];
    size_t n = 0;
    for (; model_name_at(n); n++)
        ;
    require(n >= 30, "there are thirty models or more");
    for (size_t i = 0; model_name_at(i); i++) {
        const char *name = model_name_at(i);
        bool loaded = model_by_name(name, &m, error) == 0;
        bool works = loaded && m.n_cases > 0 && m.n_verify > 0 && *m.source && *m.checked;
        for (size_t c = 0; works && c < m.n_cases; c++)
            works = valid(&m.cases[c].problem) && *m.cases[c].label;
        for (size_t v = 0; works && v < m.n_verify; v++)
            works = valid(&m.verify[v]);
        snprintf(sentence, sizeof sentence,
                 "%s loads, and the library takes each of its problems", name);
        require(works, sentence);
        snprintf(sentence, sizeof sentence,
                 "%s: ids are unique and its last position is verified", name);
        require(loaded && good_ids(&m) && reaches_the_end(&m), sentence);
        model_free(&m);
    }
}

static const struct problem *find(const struct model *m, const char *id)
{
    for (size_t i = 0; i < m->n_cases; i++)
        if (strcmp(m->cases[i].id, id) == 0)
            return &m->cases[i].problem;
    return NULL;
}

static void test_numbers(void)
{
    static struct model m;
    char error[MODEL_ERROR];
    const struct problem *p;
    require(model_by_name("llama-3.1-8b", &m, error) == 0 &&
                m.freqs.scaling == POSENC_SCALING_LLAMA3 && m.freqs.rope_theta == 500000.0 &&
                m.freqs.factor == 8.0 && m.freqs.original_max_position_embeddings == 8192.0,
            "Llama 3.1 scales by the llama3 rule");
    p = find(&m, "rope_half/f32/given/llama-3.1-8b-decode");
    require(p && p->heads == 40 && p->dim == 128 && p->rotary_dim == 128 && p->tokens == 1 &&
                p->in_place,
            "and rotates 32 query and 8 key heads of 128 in one call");
    p = find(&m, "rope_table/f32/hf_f32/llama-3.1-8b-decode");
    require(p && p->first == 131071 && p->freqs.profile == POSENC_HF_F32,
            "whose last position is 131071");
    require(model_by_name("gpt-neox-20b", &m, error) == 0 &&
                (p = find(&m, "rope_half/f32/given/gpt-neox-20b-prefill")) && p->dim == 96 &&
                p->rotary_dim == 24,
            "GPT-NeoX rotates 24 of 96");
    require(model_by_name("gpt-j-6b", &m, error) == 0 &&
                (p = find(&m, "rope_interleaved/f32/given/gpt-j-6b-prefill")) &&
                p->dim == 256 && p->rotary_dim == 64,
            "GPT-J rotates 64 of 256, interleaved");
    require(model_by_name("gpt-oss-20b", &m, error) == 0 &&
                m.freqs.scaling == POSENC_SCALING_YARN && !m.freqs.truncate &&
                m.freqs.dim == 64,
            "gpt-oss does not truncate its YaRN ramp");
    struct posenc_freqs *freqs;
    bool made = posenc_freqs_create(&m.freqs, &freqs, NULL) == POSENC_OK;
    require(made && fabs(posenc_freqs_view(freqs).attention_factor - 1.346574) < 1e-6,
            "attention factor 1.346574");
    if (made)
        posenc_freqs_destroy(freqs);
    require(model_by_name("deepseek-v3", &m, error) == 0 &&
                posenc_freqs_create(&m.freqs, &freqs, NULL) == POSENC_OK,
            "DeepSeek-V3 has both mscales");
    require(posenc_freqs_view(freqs).attention_factor == 1.0, "which cancel to 1 exactly");
    posenc_freqs_destroy(freqs);
    require(model_by_name("deberta-v3-base", &m, error) == 0 &&
                (p = find(&m, "relative_bias_add/f32/given/deberta-v3-base-prefill")) &&
                p->heads == 12 && p->keys == 512 && p->num_buckets == 256 &&
                p->max_distance == 512 && p->with_p2c && !p->without_c2p &&
                p->x_scale == (float)(1.0 / sqrt(3.0 * 64.0)),
            "DeBERTa V3 has 256 buckets of 512 distances and both terms, scaled by three");
    require(model_by_name("swin-tiny", &m, error) == 0 &&
                (p = find(&m, "window_bias_add/f32/given/swin-tiny-stage1-image")) &&
                p->batch == 64 && p->heads == 3 && p->queries == 49 &&
                (p = find(&m, "window_bias_add/f32/given/swin-tiny-stage4-image")) &&
                p->batch == 1 && p->heads == 24,
            "Swin tiny has 64 windows of 7 x 7 with 3 heads, in the end one with 24");
    require(model_by_name("beit-base", &m, error) == 0 &&
                (p = find(&m, "window_bias_add/f32/given/beit-base-image")) && p->keys == 197 &&
                p->window_class,
            "BEiT has one window, and a class token");
    require(model_by_name("transfo-xl-wt103", &m, error) == 0 &&
                (p = find(&m, "relative_bias_add/f32/given/transfo-xl-wt103-decode")) &&
                p->keys == 1601 && !p->with_p2c && p->relative == RELATIVE_TRANSFORMER_XL,
            "Transformer-XL sees 1600 positions before the one it decodes");
    require(model_by_name("bloom-176b", &m, error) == 0 &&
                (p = find(&m, "alibi_add/f32/given/bloom-176b-decode")) && p->heads == 112 &&
                p->keys == 2048 && p->query_offset == 2047 && p->causal &&
                p->x_scale == (float)(1.0 / sqrt(128.0)),
            "BLOOM decodes 112 heads over 2048 keys, scores scaled by 1/sqrt(128)");
    require(model_by_name("t5-base", &m, error) == 0 &&
                (p = find(&m, "t5_bias_add/f32/given/t5-base-prefill")) && p->bidirectional &&
                p->x_scale == 1.0f && p->heads == 12,
            "T5 encodes in both directions and does not scale its scores");
    require(model_by_name("transformer-base", &m, error) == 0 &&
                (p = find(&m, "sinusoidal_add/f32/exact/transformer-base-prefill")) &&
                p->x_scale == (float)sqrt(512.0) && p->freqs.dim == 512,
            "the Transformer scales its embeddings by sqrt(512)");
}

#define T5_OF(buckets, distance)                                                               \
    "{\"model_type\": \"t5\", \"d_model\": 64, \"num_heads\": 4, "                             \
    "\"relative_attention_num_buckets\": " #buckets                                            \
    ", \"relative_attention_max_distance\": " #distance "}"

static void test_refusals(void)
{
    static const struct {
        const char *text, *named;
    } bad[] = {
        { "{\"model_type\": \"mamba\"}", "mamba" },
        { LLAMA ", \"rope_theta\": 0}", "rope_theta" },
        { LLAMA ", \"rope_theta\": \"big\"}", "rope_theta is no number: a number from" },
        { LLAMA ", \"head_dim\": 0}", "head_dim" },
        { LLAMA ", \"head_dim\": 15}", "even" },
        { LLAMA ", \"rotary_dim\": 32}", "rotary_dim" },
        { LLAMA ", \"num_key_value_heads\": 1.5}", "num_key_value_heads" },
        { LLAMA ", \"num_key_value_heads\": 3}",
          "num_key_value_heads is 3: a divisor of the 4" },
        { LLAMA ", \"num_key_value_heads\": 8}", "num_key_value_heads is 8" },
        { "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": null, "
          "\"max_position_embeddings\": 8}",
          "num_attention_heads is missing" },
        { "{\"model_type\": \"bloom\", \"hidden_size\": 64, \"n_head\": 65537, "
          "\"seq_length\": 8}",
          "n_head is 65537: a whole number from 1 to 65536" },
        { T5_OF(33, 128), "relative_attention_num_buckets is 33" },
        { T5_OF(1, 128), "relative_attention_num_buckets is 1" },
        { T5_OF(4098, 5000), "relative_attention_num_buckets is 4098: an even number" },
        { T5_OF(16777216, 16777216), "relative_attention_num_buckets is 16777216" },
        { T5_OF(32, 16), "relative_attention_max_distance is 16: a whole number from 17" },
        { T5_OF(32, 16777216), "relative_attention_max_distance is 16777216" },
        { "{\"model_type\": \"gpt2\", \"n_embd\": 16777216, \"n_positions\": 16777216}",
          "learned_add/f32/given/posenc-config-" },
        { "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": 65536, "
          "\"max_position_embeddings\": 512, \"head_dim\": 16777216, \"rotary_dim\": 64}",
          "this machine's memory" },
        { "{\"model_type\": \"llama\", \"hidden_size\": -4}", "max_position_embeddings" },
        { "{\"model_type\": \"llama\", \"max_position_embeddings\": 8, \"hidden_size\": -4}",
          "hidden_size" },
        { "{\"model_type\": \"gpt_oss\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
          "\"max_position_embeddings\": 8}",
          "rope_theta is missing" },
        { "{\"model_type\": \"mpt\", \"d_model\": 64, \"n_heads\": 4, \"max_seq_len\": 8, "
          "\"attn_config\": {\"alibi\": false}}",
          "alibi" },
        { "{\"model_type\": ", "line 1" },
        { "[]", "an array: an object" },
        { "{\"model_type\": \"a\\u0000b\"}", "NUL character" },
    };
    static struct model m;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char error[MODEL_ERROR] = "", sentence[96];
        int status = load_text(bad[i].text, &m, error);
        snprintf(sentence, sizeof sentence, "refused, naming %s", bad[i].named);
        require(status == -1 && strstr(error, bad[i].named), sentence);
        if (!strstr(error, bad[i].named))
            printf("# %s\n", error);
    }
    char error[MODEL_ERROR] = "";
    require(load_text(LLAMA "}", &m, error) == 0 && m.freqs.rope_theta == 10000.0 &&
                m.freqs.dim == 16 && m.cases[0].problem.heads == 8,
            "what those are made from is accepted, with the defaults of its type");
    require(load_text(LLAMA ", \"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 4, "
                            "\"rope_theta\": 5e5}}",
                      &m, error) == 0 &&
                m.freqs.scaling == POSENC_SCALING_LINEAR && m.freqs.rope_theta == 5e5,
            "rope_parameters say the same as rope_scaling");
    require(model_load("llama-3.1-8", &m, error) == -1 &&
                strstr(error, "did you mean llama-3.1-8b?"),
            "an unknown name brings the nearest one");
    require(model_load("lama-2-7b", &m, error) == -1 &&
                strstr(error, "did you mean llama-2-7b?"),
            "a misspelt one, too");
    require(model_load("/nowhere/config.json", &m, error) == -1 &&
                strstr(error, "/nowhere/config.json"),
            "a path that is not there is named");
}

/* Loads a configuration that says nothing of its name, written at `path` under `folder`. */
static bool titled(const char *folder, const char *file, const char *config, const char *title,
                   const char *name)
{
    static struct model m;
    char path[256], error[MODEL_ERROR] = "";
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *out = fopen(path, "w");
    bool written = out && fputs(config, out) >= 0;
    if (out)
        written = fclose(out) == 0 && written;
    bool loaded = written && model_from_config(path, &m, error) == 0;
    unlink(path);
    if (loaded && (strcmp(m.title, title) != 0 || strcmp(m.name, name) != 0))
        printf("# title '%s', name '%s'\n", m.title, m.name);
    return loaded && strcmp(m.title, title) == 0 && strcmp(m.name, name) == 0 && good_ids(&m);
}

static void test_names(void)
{
    static struct model m;
    char top[] = "/tmp/posenc-models-XXXXXX", folder[64], error[MODEL_ERROR];
    if (!mkdtemp(top)) {
        require(false, "a folder can be made");
        return;
    }
    snprintf(folder, sizeof folder, "%s/My Llama-3.1", top);
    bool made = mkdir(folder, 0700) == 0;
    require(made && titled(folder, "config.json", LLAMA "}", "My Llama-3.1", "my-llama-3.1"),
            "a config.json without a title has that of its folder");
    require(made && titled(folder, "Two.v1.json", LLAMA "}", "Two.v1", "two.v1"),
            "another file its own, without .json");
    require(made && titled(folder, "a.json", LLAMA ", \"_name_or_path\": \"org/Llama\"}",
                           "org/Llama", "a"),
            "_name_or_path says more");
    require(made && titled(folder, "b.json", LLAMA ", \"_name_or_path\": \"\"}", "b", "b"),
            "an empty one does not");
    require(made && titled(folder, "c.json", LLAMA ", \"_posenc\": {\"title\": \"A\\nB\"}}",
                           "A B", "c"),
            "a title is one line");
    require(made && chdir(folder) == 0 &&
                titled(".", "config.json", LLAMA "}", "My Llama-3.1", "my-llama-3.1"),
            "./config.json has the title of the folder it is in");
    FILE *out = made ? fopen("config.json", "w") : NULL;
    bool written = out && fputs(LLAMA "}", out) >= 0;
    require(out && fclose(out) == 0 && written && model_load("config.json", &m, error) == 0 &&
                strcmp(m.title, "My Llama-3.1") == 0,
            "config.json, too");
    unlink("config.json");
    require(chdir("/") == 0 && rmdir(folder) == 0 && rmdir(top) == 0, "and nothing is left");
}

/* A NUL byte in the file itself. */
static void test_nul(void)
{
    static struct model m;
    char path[] = "/tmp/posenc-nul-XXXXXX", error[MODEL_ERROR] = "";
    int descriptor = mkstemp(path);
    bool written = descriptor >= 0 && write(descriptor, LLAMA "}", sizeof LLAMA "}") > 0;
    if (descriptor >= 0)
        close(descriptor);
    require(written && model_from_config(path, &m, error) == -1 &&
                strstr(error, "it holds a NUL character"),
            "a NUL byte is called that");
    unlink(path);
}

int main(void)
{
    test_built_in();
    test_numbers();
    test_refusals();
    test_names();
    test_nul();
    return tap_end();
}
