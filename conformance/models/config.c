/*
 * A Hugging Face config.json -> what it says of positions.  Its keys have many spellings
 * (huggingface/transformers, configuration_*.py); the scaling rules are those of
 * modeling_rope_utils.py there.  What is not known is refused by name, never guessed.
 */
#define _POSIX_C_SOURCE 200809L
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const encoding_name[] = { "sinusoidal",       "learned", "rope_half",
                                             "rope_interleaved", "alibi",   "t5" };
enum { N_ENCODINGS = sizeof encoding_name / sizeof *encoding_name };

/* What a model_type means in that library: the pairing is nowhere in the file. */
static const struct model_type {
    const char *name;
    enum encoding encoding;
    double rope_theta; /* where the file names none; 0: it must */
    double rotary;     /* likewise the rotated share of a head */
} model_types[] = {
    { "llama", ROPE_HALF, 10000.0, 1.0 },
    { "mistral", ROPE_HALF, 10000.0, 1.0 },
    { "mixtral", ROPE_HALF, 0.0, 1.0 },
    { "qwen2", ROPE_HALF, 10000.0, 1.0 },
    { "qwen2_moe", ROPE_HALF, 10000.0, 1.0 },
    { "qwen3", ROPE_HALF, 10000.0, 1.0 },
    { "qwen3_moe", ROPE_HALF, 10000.0, 1.0 },
    { "gemma", ROPE_HALF, 10000.0, 1.0 },
    { "gemma2", ROPE_HALF, 10000.0, 1.0 },
    { "phi", ROPE_HALF, 10000.0, 0.0 },
    { "phi3", ROPE_HALF, 10000.0, 1.0 },
    { "gpt_neox", ROPE_HALF, 10000.0, 0.25 },
    { "gpt_oss", ROPE_HALF, 0.0, 1.0 },
    { "gptj", ROPE_INTERLEAVED, 10000.0, 0.0 },
    { "deepseek_v2", ROPE_INTERLEAVED, 10000.0, 1.0 },
    { "deepseek_v3", ROPE_INTERLEAVED, 10000.0, 1.0 },
    { "gpt2", LEARNED, 0.0, 0.0 },
    { "bert", LEARNED, 0.0, 0.0 },
    { "bloom", ALIBI, 0.0, 0.0 },
    { "mpt", ALIBI, 0.0, 0.0 },
    { "t5", T5, 0.0, 0.0 },
    { "mt5", T5, 0.0, 0.0 },
    { "transformer", SINUSOIDAL, 10000.0, 1.0 },
};
enum { N_TYPES = sizeof model_types / sizeof *model_types };

__attribute__((format(printf, 2, 3))) static int refuse(char error[MODEL_ERROR],
                                                        const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, MODEL_ERROR, format, list);
    va_end(list);
    return -1;
}

/* The first of several spellings (NULL-terminated) that is there and not null. */
static const json_t *key(const json_t *json, const char *const *names, const char **found)
{
    for (; *names; names++) {
        const json_t *value = json_object_get(json, *names);
        if (value && !json_is_null(value)) {
            *found = *names;
            return value;
        }
    }
    return NULL;
}

/* No dimension or length of a model is larger; heads as far as the library takes them. */
enum { MOST = 1 << 24, MOST_HEADS = 65536, MOST_BUCKETS = 4096 };

/* A whole number from 1 to `most`; `otherwise` where absent, and 0 for `otherwise` makes it
 * required. */
static int whole(const json_t *json, const char *const *names, int64_t most, int64_t otherwise,
                 int64_t *value, char error[MODEL_ERROR])
{
    const char *name = names[0];
    const json_t *j = key(json, names, &name);
    *value = otherwise;
    if (!j)
        return otherwise ? 0 : refuse(error, "%s is missing: a whole number is needed", name);
    if (!json_is_number(j))
        return refuse(error, "%s is no number: a whole number from 1 to %lld is needed", name,
                      (long long)most);
    double d = json_number_value(j);
    if (!(d >= 1.0 && d <= (double)most) || d != floor(d))
        return refuse(error, "%s is %.10g: a whole number from 1 to %lld is needed", name, d,
                      (long long)most);
    *value = (int64_t)d;
    return 0;
}

/* A number in [least, most]; unchanged where absent. */
static int real(const json_t *json, const char *name, double least, double most, double *value,
                char error[MODEL_ERROR])
{
    const json_t *j = json_object_get(json, name);
    if (!j || json_is_null(j))
        return 0;
    if (!json_is_number(j))
        return refuse(error, "%s is no number: a number from %g to %g is needed", name, least,
                      most);
    double d = json_number_value(j);
    if (!(d >= least && d <= most))
        return refuse(error, "%s is %.9g: a number from %g to %g is needed", name, d, least,
                      most);
    *value = d;
    return 0;
}

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static int find_encoding(const json_t *json, const json_t *ours, const struct model_type **type,
                         enum encoding *encoding, char error[MODEL_ERROR])
{
    const char *model_type = json_string_value(json_object_get(json, "model_type"));
    const char *named = json_string_value(json_object_get(ours, "encoding"));
    *type = NULL;
    for (int i = 0; model_type && i < N_TYPES; i++)
        if (strcmp(model_types[i].name, model_type) == 0)
            *type = &model_types[i];
    for (int i = 0; named && i < N_ENCODINGS; i++)
        if (strcmp(encoding_name[i], named) == 0) {
            *encoding = (enum encoding)i;
            return 0;
        }
    if (named)
        return refuse(
            error,
            "_posenc.encoding '%s' is unknown; known: sinusoidal, learned, rope_half, "
            "rope_interleaved, alibi, t5",
            named);
    if (*type) {
        *encoding = (*type)->encoding;
        return 0;
    }
    char known[300] = "";
    for (int i = 0; i < N_TYPES; i++) {
        strcat(known, i ? ", " : "");
        strcat(known, model_types[i].name);
    }
    return refuse(
        error,
        "model_type '%s' is unknown; known: %s.  Or say how it encodes positions: \"_posenc\": "
        "{\"encoding\": \"rope_half\"}",
        model_type ? model_type : "(none)", known);
}

static int yarn(const json_t *scaling, int64_t length, struct posenc_freqs_spec *spec,
                char error[MODEL_ERROR])
{
    if (spec->original_max_position_embeddings <= 0.0)
        spec->original_max_position_embeddings = (double)length;
    const json_t *truncate = json_object_get(scaling, "truncate");
    if (json_is_boolean(truncate))
        spec->truncate = json_is_true(truncate);
    if (real(scaling, "beta_fast", 1e-3, 1e6, &spec->beta_fast, error) ||
        real(scaling, "beta_slow", 1e-3, 1e6, &spec->beta_slow, error) ||
        real(scaling, "attention_factor", 1e-6, 1e6, &spec->attention_factor, error) ||
        real(scaling, "mscale", 0.0, 1e6, &spec->mscale, error) ||
        real(scaling, "mscale_all_dim", 0.0, 1e6, &spec->mscale_all_dim, error))
        return -1;
    spec->scaling = POSENC_SCALING_YARN;
    return 0;
}

/* As real(), of a rule of scaling that cannot do without. */
static int needed(const json_t *scaling, const char *type, const char *name, double least,
                  double most, double *value, char error[MODEL_ERROR])
{
    const json_t *j = json_object_get(scaling, name);
    if (!j || json_is_null(j))
        return refuse(error,
                      "%s is missing: rope_scaling of type %s needs it, a number from %g to %g",
                      name, type, least, most);
    return real(scaling, name, least, most, value, error);
}

/* rope_scaling (or rope_parameters, as later releases of that library call it). */
static int read_scaling(const json_t *scaling, int64_t length, struct posenc_freqs_spec *spec,
                        char error[MODEL_ERROR])
{
    const char *found = NULL;
    const json_t *named = key(scaling, NAMES("rope_type", "type"), &found);
    const char *type = json_string_value(named);
    if (!named)
        return refuse(error,
                      "rope_scaling has no rope_type; known: default, linear, llama3, yarn");
    if (!type)
        return refuse(error,
                      "%s of rope_scaling is no text; known: default, linear, llama3, yarn",
                      found);
    if (strcmp(type, "default") == 0)
        return 0;
    bool linear = strcmp(type, "linear") == 0, llama3 = strcmp(type, "llama3") == 0;
    if (!linear && !llama3 && strcmp(type, "yarn") != 0)
        return refuse(
            error, "rope_type '%s' is not supported; supported: default, linear, llama3, yarn",
            type);
    if (needed(scaling, type, "factor", 1.0, 1e6, &spec->factor, error) ||
        (llama3 ? needed(scaling, type, "original_max_position_embeddings", 1.0, 1e9,
                         &spec->original_max_position_embeddings, error)
                : real(scaling, "original_max_position_embeddings", 1.0, 1e9,
                       &spec->original_max_position_embeddings, error)))
        return -1;
    if (linear)
        spec->scaling = POSENC_SCALING_LINEAR;
    if (linear || !llama3)
        return linear ? 0 : yarn(scaling, length, spec, error);
    spec->scaling = POSENC_SCALING_LLAMA3;
    if (needed(scaling, type, "low_freq_factor", 1e-6, 1e6, &spec->low_freq_factor, error) ||
        needed(scaling, type, "high_freq_factor", 1e-6, 1e6, &spec->high_freq_factor, error))
        return -1;
    return 0;
}

/* Heads, their width and how much of it is rotated. */
static int read_heads(const json_t *json, const json_t *rope, const struct model_type *type,
                      struct config *c, char error[MODEL_ERROR])
{
    if (whole(json, NAMES("qk_rope_head_dim"), MOST, -1, &c->head_dim, error))
        return -1;
    if (c->head_dim > 0) { /* multi-head latent attention: one rotary key for all heads */
        c->key_heads = 1;
        c->rotary_dim = c->head_dim;
        return 0;
    }
    if (whole(json, NAMES("num_key_value_heads"), c->heads, c->heads, &c->key_heads, error) ||
        whole(json, NAMES("head_dim"), MOST, c->width / c->heads, &c->head_dim, error))
        return -1;
    if (c->heads % c->key_heads)
        return refuse(error,
                      "num_key_value_heads is %lld: a divisor of the %lld heads is needed",
                      (long long)c->key_heads, (long long)c->heads);
    if (json_object_get(json, "rotary_dim"))
        return whole(json, NAMES("rotary_dim"), MOST, 0, &c->rotary_dim, error);
    double share = type ? type->rotary : 1.0;
    if (real(rope, "partial_rotary_factor", 0.0, 1.0, &share, error) ||
        real(json, "partial_rotary_factor", 0.0, 1.0, &share, error) ||
        real(json, "rotary_pct", 0.0, 1.0, &share, error))
        return -1;
    if (share <= 0.0)
        return refuse(error,
                      "how much of a head is rotated is missing: rotary_dim, rotary_pct or "
                      "partial_rotary_factor is needed");
    c->rotary_dim = (int64_t)((double)c->head_dim * share);
    return 0;
}

static int read_rope(const json_t *json, const struct model_type *type, struct config *c,
                     struct model *m, char error[MODEL_ERROR])
{
    const char *found = NULL;
    const json_t *rope = key(json, NAMES("rope_scaling", "rope_parameters"), &found);
    struct posenc_freqs_spec *spec = &m->freqs;
    *spec = (struct posenc_freqs_spec)POSENC_FREQS_SPEC;
    m->has_freqs = true;
    spec->rope_theta = type ? type->rope_theta : 0.0;
    if (real(rope, "rope_theta", 1e-6, 1e30, &spec->rope_theta, error) ||
        real(json, "rotary_emb_base", 1e-6, 1e30, &spec->rope_theta, error) ||
        real(json, "rope_theta", 1e-6, 1e30, &spec->rope_theta, error))
        return -1;
    if (spec->rope_theta <= 0.0)
        return refuse(error, "rope_theta is missing: a number above 0 is needed");
    if (rope && !json_is_object(rope))
        return refuse(
            error,
            "%s is no object: one such as {\"rope_type\": \"linear\", \"factor\": 2}, "
            "or null, is needed",
            found);
    if (rope && read_scaling(rope, c->length, spec, error))
        return -1;
    if (c->encoding == SINUSOIDAL) {
        spec->dim = c->width;
        return 0;
    }
    if (read_heads(json, rope, type, c, error))
        return -1;
    if (c->rotary_dim > c->head_dim)
        return refuse(error, "rotary_dim is %lld: at most head_dim, %lld, is possible",
                      (long long)c->rotary_dim, (long long)c->head_dim);
    if (c->rotary_dim < 2 || c->rotary_dim % 2)
        return refuse(error, "rotary_dim is %lld: an even number from 2 is needed",
                      (long long)c->rotary_dim);
    spec->dim = c->rotary_dim;
    return 0;
}

/* A plan is the last judge of its own parameters. */
static int try_freqs(const struct model *m, char error[MODEL_ERROR])
{
    struct posenc_freqs *freqs;
    struct posenc_error why = { 0 };
    enum posenc_status status = posenc_freqs_create(&m->freqs, &freqs, &why);
    if (status == POSENC_OK) {
        posenc_freqs_destroy(freqs);
        return 0;
    }
    char range[64] = "";
    if (why.least <= why.most)
        snprintf(range, sizeof range, "; from %g to %g is possible", why.least, why.most);
    return refuse(error, "its frequencies cannot be made: %s (%s is %.10g%s)",
                  posenc_status_string(status), why.what ? why.what : "a parameter", why.value,
                  range);
}

/* The library judges buckets, too: its encoder's, in both directions, and its decoder's. */
static int try_buckets(const struct config *c, char error[MODEL_ERROR])
{
    int32_t thresholds[MOST_BUCKETS];
    enum posenc_status status =
        posenc_t5_thresholds(c->num_buckets, c->max_distance, true, thresholds);
    if (status == POSENC_OK)
        status = posenc_t5_thresholds(c->num_buckets, c->max_distance, false, thresholds);
    if (status == POSENC_ERR_SHAPE)
        return refuse(error,
                      "relative_attention_num_buckets is %lld: an even number from 4 to %d is "
                      "needed",
                      (long long)c->num_buckets, MOST_BUCKETS);
    if (status != POSENC_OK)
        return refuse(error,
                      "relative_attention_max_distance is %lld: a whole number from %lld (more "
                      "than half of the buckets) to 16777215 is needed",
                      (long long)c->max_distance, (long long)(c->num_buckets / 2 + 1));
    return 0;
}

/* What is there and not empty, on one line, cut between characters; else `otherwise`. */
static void text(const json_t *json, const char *name, const char *otherwise, char *into,
                 size_t bytes)
{
    const char *s = json_string_value(json_object_get(json, name));
    if (!s || !*s)
        s = otherwise;
    size_t n = strlen(s);
    if (n >= bytes)
        for (n = bytes - 1; n && ((unsigned char)s[n] & 0xc0) == 0x80;)
            n--;
    for (size_t i = 0; i < n; i++)
        into[i] = (unsigned char)s[i] < ' ' || s[i] == 0x7f ? ' ' : s[i];
    into[n] = 0;
}

/* Sizes.  Heads are needed wherever an encoding is given or used per head. */
static int read_sizes(const json_t *json, struct config *c, char error[MODEL_ERROR])
{
    bool headless = c->encoding == LEARNED || c->encoding == SINUSOIDAL;
    if (whole(json,
              NAMES("max_position_embeddings", "n_positions", "seq_length", "max_seq_len"),
              MOST, c->encoding == T5 ? 512 : 0, &c->length, error) ||
        whole(json, NAMES("hidden_size", "n_embd", "n_embed", "d_model"), MOST, 0, &c->width,
              error) ||
        whole(json, NAMES("num_attention_heads", "n_head", "n_heads", "num_heads"), MOST_HEADS,
              headless ? 1 : 0, &c->heads, error))
        return -1;
    int64_t head_dim = c->width / c->heads ? c->width / c->heads : 1;
    return whole(json, NAMES("d_kv"), MOST, head_dim, &c->head_dim, error) ||
                   whole(json, NAMES("relative_attention_num_buckets"), MOST, 32,
                         &c->num_buckets, error) ||
                   whole(json, NAMES("relative_attention_max_distance"), MOST, 128,
                         &c->max_distance, error)
               ? -1
               : 0;
}

int config_read(const json_t *json, struct config *c, struct model *m, char error[MODEL_ERROR])
{
    *c = (struct config){ .alibi_bias_max = 8.0, .num_buckets = 32, .max_distance = 128 };
    if (!json_is_object(json))
        return refuse(error, "it holds %s: an object, {\"model_type\": ...}, is needed",
                      json_is_array(json) ? "an array" : "no object");
    const json_t *ours = json_object_get(json, "_posenc");
    const struct model_type *type;
    if (find_encoding(json, ours, &type, &c->encoding, error))
        return -1;
    c->decodes = !json_is_false(json_object_get(ours, "decodes")) &&
                 !(type && strcmp(type->name, "bert") == 0);
    char title[sizeof m->title]; /* the file's name, until something says more */
    text(json, "_name_or_path", m->title, title, sizeof title);
    text(ours, "title", title, m->title, sizeof m->title);
    text(ours, "source", "the configuration given", m->source, sizeof m->source);
    text(ours, "checked", "", m->checked, sizeof m->checked);
    text(ours, "trained_profile", "", m->trained_profile, sizeof m->trained_profile);
    snprintf(m->encoding, sizeof m->encoding, "%s", encoding_name[c->encoding]);

    if (read_sizes(json, c, error) || (c->encoding == T5 && try_buckets(c, error)))
        return -1;
    m->max_position_embeddings = c->length;
    const json_t *attention = json_object_get(json, "attn_config");
    if (c->encoding == ALIBI && attention && json_is_false(json_object_get(attention, "alibi")))
        return refuse(
            error,
            "attn_config.alibi is false: such a model has no ALiBi, and this loader knows no "
            "other encoding of its type");
    if (real(attention, "alibi_bias_max", 1e-3, 64.0, &c->alibi_bias_max, error))
        return -1;
    if (c->encoding == ROPE_HALF || c->encoding == ROPE_INTERLEAVED ||
        c->encoding == SINUSOIDAL)
        if (read_rope(json, type, c, m, error) || try_freqs(m, error))
            return -1;
    return 0;
}
