/*
 * What llama.cpp does with the positions of a model, from the metadata of its GGUF file (gguf.h):
 * ggml-org/llama.cpp, src/llama-model.cpp, src/llama-context.cpp and src/models.  architectures.txt
 * says what the file does not, keys.txt which of its keys are which quantities.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/columns.h"
#include "conformance/problem/fields.h"
#include "config_gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct architecture architectures[] = {
#include "architectures.inc"
};
enum { N_ARCHITECTURES = sizeof architectures / sizeof *architectures, WORDS = 192 };

bool model_architecture_at(size_t index, struct model_kind *kind)
{
    if (index >= N_ARCHITECTURES)
        return false;
    const struct architecture *a = &architectures[index];
    *kind = (struct model_kind){ a->name, a->what, a->note, strcmp(a->what, "refused") == 0 };
    return true;
}

static int find_architecture(struct gguf *g, const char *name)
{
    char known[MODEL_ERROR - 256] = "";
    size_t at = 0;
    for (const struct architecture *a = architectures; a < architectures + N_ARCHITECTURES;
         a++) {
        if (strcmp(a->name, name) == 0)
            g->a = a;
        if (strcmp(a->what, "refused") != 0)
            at = append(known, sizeof known, at, "%s%s", at ? ", " : "", a->name);
    }
    if (!g->a)
        return refuse(&g->f, "general.architecture '%.60s' is unknown; known: %s", name, known);
    return strcmp(g->a->what, "refused") == 0
               ? refuse(&g->f, "general.architecture '%s' is not read: %s", name, g->a->note)
               : 0;
}

/* ---- keys that are there and do not count ---- */

/* Of rope: who reads them, "" everybody; a flag, or a question of sections or of sliding. */
static const struct {
    const char *name, *readers;
} rope_keys[] = { { "freq_base", "" },
                  { "dimension_count", "" },
                  { "scale_linear", "" },
                  { "freq_base_swa", "slides slides_if" },
                  { "dimension_count_swa", "slides slides_if" },
                  { "dimension_sections", "mrope imrope mrope_or_norm mrope_or_neox" },
                  { "scaling.type", "" },
                  { "scaling.factor", "" },
                  { "scaling.attn_factor", "" },
                  { "scaling.original_context_length", "" },
                  { "scaling.finetuned", "" },
                  { "scaling.alpha", "alpha" },
                  { "scaling.yarn_log_multiplier", "log10 log1" },
                  { "scaling.yarn_ext_factor", "grok" },
                  { "scaling.yarn_attn_factor", "grok" },
                  { "scaling.yarn_beta_fast", "betas" },
                  { "scaling.yarn_beta_slow", "betas" } };

static int check_rope_key(const struct gguf *g, const char *name)
{
    const struct architecture *a = g->a;
    for (size_t i = 0; i < sizeof rope_keys / sizeof *rope_keys; i++) {
        const char *readers = rope_keys[i].readers;
        if (strcmp(rope_keys[i].name, name) != 0)
            continue;
        bool read = !*readers || lists(readers, a->what) || lists(readers, a->name);
        for (const char *flag = a->flags; *flag && !read; flag += strspn(flag, " ")) {
            const size_t n = strcspn(flag, " ");
            read = has_word(readers, ' ', flag, n);
            flag += n;
        }
        if (!read)
            note(&g->f, "llama.cpp does not read rope.%s of such a model", name);
        return 0;
    }
    return refuse(
        &g->f, "rope.%.60s is a key that this reader does not know: it may change the numbers",
        name);
}

static int check_rope_keys(const struct gguf *g, const json_t *object, const char *before)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        char name[128];
        snprintf(name, sizeof name, "%s%.100s", before, key);
        if (json_is_object(value) && !*before) {
            strcat(name, ".");
            if (check_rope_keys(g, value, name))
                return -1;
        } else if (check_rope_key(g, name))
            return -1;
    }
    return 0;
}

static void note_attention_keys(const struct gguf *g)
{
    static const char known[] =
        "head_count head_count_kv key_length value_length key_length_swa value_length_swa "
        "head_count_kv_sliding key_length_mla value_length_mla layer_norm_epsilon "
        "layer_norm_rms_epsilon "
        "group_norm_epsilon group_norm_groups causal clamp_kqv max_alibi_bias q_lora_rank "
        "kv_lora_rank relative_buckets_count sliding_window sliding_window_pattern scale "
        "output_scale value_scale temperature_length temperature_scale shared_kv_layers";
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(g->f.file, "attention"), key, value)
    {
        if (!lists(known, key))
            note(&g->f, "attention.%.60s is not covered", key);
    }
}

/* ---- heads ---- */

static bool is_full(const json_t *pattern, size_t layer)
{
    const json_t *one = json_array_get(pattern, layer);
    return !(json_is_true(one) || json_integer_value(one) > 0);
}

/* Where the list of key heads differs by what slides: one number for each. */
static int settle_types(struct gguf *g)
{
    json_t *attention = json_object_get(g->f.file, "attention"),
           *list = json_object_get(attention, "head_count_kv"), *one;
    const json_t *pattern = json_object_get(attention, "sliding_window_pattern");
    int64_t heads[2] = { 0, 0 };
    size_t i;
    json_object_del(attention, "head_count_kv_sliding");
    if (!gguf_is(g, "by_type") || !json_is_array(list))
        return 0;
    if (json_array_size(list) > json_array_size(pattern))
        return refuse(&g->f,
                      "attention.head_count_kv has %zu numbers, and "
                      "attention.sliding_window_pattern %zu: as many are needed",
                      json_array_size(list), json_array_size(pattern));
    json_array_foreach(list, i, one)
    {
        int64_t *own = &heads[!is_full(pattern, i)];
        *own = i == 0 || *own == 0 ? json_integer_value(one) : *own;
        if (*own != json_integer_value(one))
            return refuse(&g->f,
                          "attention.head_count_kv is %lld of layer %zu and %lld of others "
                          "of its kind: they must agree",
                          (long long)json_integer_value(one), i, (long long)*own);
    }
    json_object_set_new(attention, "head_count_kv_sliding", json_integer(heads[1]));
    json_object_set_new(attention, "head_count_kv", json_integer(heads[0]));
    return 0;
}

/* Numbers of heads may be lists, one for each layer: those of the first that has any stand for all
 * that are alike, and the others are noted.  Returns how many are alike, 0: all, or -1. */
static int64_t settle_heads(struct gguf *g)
{
    static const char *const names[] = { "head_count", "head_count_kv" };
    json_t *attention = json_object_get(g->f.file, "attention"), *lists_of[2];
    const int64_t blocks = json_integer_value(member_value(&g->f, "block_count"));
    int64_t first[2] = { 0, 0 }, alike = 0, none = 0, n = 0;
    for (int k = 0; k < 2; k++) {
        lists_of[k] = json_object_get(attention, names[k]);
        if (json_is_array(lists_of[k]) && (int64_t)json_array_size(lists_of[k]) < blocks)
            return refuse(&g->f,
                          "attention.%s has %zu numbers: one for each of %lld layers is "
                          "needed",
                          names[k], json_array_size(lists_of[k]), (long long)blocks);
        n = json_is_array(lists_of[k]) ? blocks : n;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t heads[2];
        for (int k = 0; k < 2; k++) {
            const json_t *one = json_is_array(lists_of[k])
                                    ? json_array_get(lists_of[k], (size_t)i)
                                    : lists_of[k];
            heads[k] = one ? json_integer_value(one) : heads[0];
        }
        const bool any = heads[0] > 0 && heads[1] > 0;
        if (any && first[0] == 0)
            memcpy(first, heads, sizeof first);
        none += !any;
        alike += any && heads[0] == first[0] && heads[1] == first[1];
    }
    if (n && alike + none < n)
        note(&g->f,
             "%lld of %lld layers have other numbers of heads than the first: not covered",
             (long long)(n - alike - none), (long long)n);
    for (int k = 0; n && k < 2; k++)
        if (lists_of[k])
            json_object_set_new(attention, names[k], json_integer(first[k]));
    return alike;
}

/* ---- axes ---- */

static int read_sections(struct gguf *g, struct part *p)
{
    const struct member m = member_find(&g->f, "rope.dimension_sections");
    const bool turns = strcmp(g->a->what, "imrope") == 0, maybe = strchr(g->a->what, '_');
    int64_t s[4] = { 0 }, sum = 0;
    for (size_t i = 0; i < json_array_size(m.value) && i < 4; i++)
        sum += s[i] = json_integer_value(json_array_get(m.value, i));
    if (maybe && (s[0] <= 0 || s[1] <= 0))
        return 0;
    if (!json_is_array(m.value) || s[0] < 1 || s[1] < 1 || s[2] < 1 || s[3] != 0 ||
        sum != p->rotary_dim / 2)
        return refuse(&g->f,
                      "%s is %s: three numbers of pairs and a 0 are needed, which add up to "
                      "%lld, half of rope.dimension_count",
                      m.name, m.value ? "of other numbers" : "missing",
                      (long long)(p->rotary_dim / 2));
    int64_t past = 0;
    for (int64_t i = 0; turns && i < sum; i++)
        past += i >= 3 * s[i % 3];
    if (past)
        note(&g->f,
             "ggml turns %lld pairs past the sections by a fourth axis, which is 0 for text: "
             "here they turn with the first",
             (long long)past);
    memcpy(p->freqs.mrope_section, s, 3 * sizeof *s);
    p->freqs.mrope_layout = turns ? POSENC_MROPE_INTERLEAVED : POSENC_MROPE_CHUNKED;
    p->picture = CONFIG_PICTURE;
    p->encoding = ROPE_HALF;
    return 0;
}

/* ---- layers that slide ---- */

/* How many layers have full attention, by the file's list or number, or the table's. */
static int64_t count_full(const struct gguf *g, int64_t layers)
{
    const json_t *own = member_value(&g->f, "attention.sliding_window_pattern"), *one;
    const bool first = strncmp(g->a->pattern, "first ", 6) == 0;
    int64_t every = strtoll(g->a->pattern + 6 * first, NULL, 10), full = 0;
    size_t i;
    if (json_is_array(own)) {
        json_array_foreach(own, i, one) full += (int64_t)i < layers && is_full(own, i);
        return full;
    }
    every = own ? json_integer_value(own) : every;
    return every < 1 ? 0 : (layers + (first ? every - 1 : 0)) / every;
}

static bool slides(const struct gguf *g, int64_t layers)
{
    const json_t *window = member_value(&g->f, "attention.sliding_window");
    if (gguf_is(g, "by_layers"))
        return gguf_is(g, "slides_if") && layers == 64;
    return gguf_is(g, "slides") || (gguf_is(g, "slides_if") && json_number_value(window) > 0.0);
}

static int slide(struct gguf *g, const struct part *full, struct part *p)
{
    *p = *full;
    p->name = "sliding";
    if (gguf_is(g, "plain") || gguf_is(g, "unscaled")) {
        p->freqs.scaling = POSENC_SCALING_NONE;
        p->freqs.factor = p->freqs.partial_rotary_factor = 1.0;
        p->freqs.attention_factor = 1.0;
    }
    if (gguf_is(g, "plain")) {
        const json_t *by = member_value(&g->f, "rope.scaling.attn_factor");
        p->freqs.attention_factor = by ? json_number_value(by) : 1.0;
        p->freqs.rope_theta = 10000.0;
        origin_say(p, "rope_theta", "llama.cpp's constant for layers that slide");
    }
    if (members_read(&g->f, "gguf_sliding", p))
        return -1;
    p->freqs.dim = p->rotary_dim;
    if (gguf_is(g, "unscaled"))
        p->freqs.rope_theta = full->freqs.rope_theta;
    return config_try_freqs(&g->f, p);
}

static bool turn_alike(const struct part *a, const struct part *b)
{
    return a->head_dim == b->head_dim && a->rotary_dim == b->rotary_dim &&
           memcmp(&a->freqs, &b->freqs, sizeof a->freqs) == 0;
}

static int add_layers(struct gguf *g, struct part *like)
{
    struct config *c = g->config;
    const bool some = slides(g, like->layers);
    if (some && !*g->a->pattern && !member_value(&g->f, "attention.sliding_window_pattern"))
        return refuse(&g->f,
                      "attention.sliding_window_pattern is missing: a list that says which "
                      "layers slide is needed");
    const int64_t full = some ? count_full(g, like->layers) : like->layers;
    const int64_t every =
        strtoll(g->a->pattern + strcspn(g->a->pattern, "0123456789"), NULL, 10);
    const bool first = *g->a->pattern == 'f';
    like->name = "";
    if (gguf_is(g, "rests") || (gguf_is(g, "rests_if") && some)) {
        const json_t *own = member_value(&g->f, "rope.freq_base_swa");
        if (own && fabs(json_number_value(own) - like->freqs.rope_theta) > 0.0)
            return refuse(&g->f,
                          "rope.freq_base_swa is %g beside a base of %g: one base is "
                          "known of a model whose layers do not all turn",
                          json_number_value(own), like->freqs.rope_theta);
        const int64_t rest = (like->layers + (first ? every - 1 : 0)) / every;
        note(&g->f, "%lld of %lld layers do not turn", (long long)rest,
             (long long)like->layers);
        like->layers -= rest;
        c->parts[c->n_parts++] = *like;
        return 0;
    }
    if (some && gguf_is(g, "alone")) {
        note(&g->f, "%lld of %lld layers do not turn: those of full attention", (long long)full,
             (long long)like->layers);
        like->layers -= full;
        c->parts[c->n_parts++] = *like;
        return 0;
    }
    c->parts[c->n_parts++] = *like;
    struct part *sliding = &c->parts[c->n_parts];
    if (!some || slide(g, like, sliding))
        return some ? -1 : 0;
    if (turn_alike(like, sliding))
        return 0;
    c->n_parts++;
    c->parts[0].name = "full";
    c->parts[0].layers = full;
    sliding->layers = like->layers - full;
    for (int i = 0; i < 2; i++)
        origin_say(&c->parts[i], "layers", "%s, and which of them slide",
                   origin_key(&like->origins[OF_layers]));
    note(&g->f, "%lld of %lld layers have full attention, the others slide", (long long)full,
         (long long)like->layers);
    return 0;
}

/* ---- parts ---- */

static int add_rotation(struct gguf *g, struct part *p)
{
    const struct member on = member_find(&g->f, "rope.scaling.finetuned");
    if (gguf_is(g, "switch") && json_is_false(on.value))
        return refuse(&g->f, "%s is false: such a model then encodes no positions", on.name);
    note(&g->f, "It forms its angles as profile ggml_f32 does");
    p->freqs.dim = p->rotary_dim;
    if (strstr(g->a->what, "mrope") && read_sections(g, p))
        return -1;
    return gguf_scale(g, p) || config_try_freqs(&g->f, p) || add_layers(g, p) ? -1 : 0;
}

/* Which encoding it is; Baichuan's by how many layers there are. */
static int find_encoding(struct gguf *g, struct part *p, const char **word)
{
    const int64_t layers = json_integer_value(member_value(&g->f, "block_count"));
    const char *what = g->a->what;
    const bool by_layers = gguf_is(g, "by_layers") && !gguf_is(g, "slides_if");
    if (by_layers && layers != 32 && layers != 40)
        return refuse(&g->f,
                      "block_count is %lld: of a baichuan model 32 (a rotation) or 40 "
                      "(ALiBi) is needed to know its encoding",
                      (long long)layers);
    origin_say(p, "encoding", "%s", by_layers ? "block_count" : "general.architecture");
    p->encoding = strcmp(what, "learned") == 0                                ? LEARNED
                  : strcmp(what, "t5") == 0                                   ? T5
                  : strcmp(what, "alibi") == 0 || (by_layers && layers == 40) ? ALIBI
                  : strstr(what, "norm")                                      ? ROPE_INTERLEAVED
                                                                              : ROPE_HALF;
    *word = p->encoding == LEARNED ? "gguf_learned"
            : p->encoding == T5    ? "gguf_t5"
            : p->encoding == ALIBI
                ? (by_layers || gguf_is(g, "eight") ? "gguf_alibi8" : "gguf_alibi")
                : "gguf_rope";
    return 0;
}

static int read_parts(struct gguf *g)
{
    struct part like = { .name = "", .freqs = posenc_freqs_spec_init(), .decodes = true };
    const char *word = "";
    char words[WORDS];
    const int64_t alike = settle_types(g) ? -1 : settle_heads(g);
    if (alike < 0 || find_encoding(g, &like, &word))
        return -1;
    const bool turns = strcmp(word, "gguf_rope") == 0;
    snprintf(words, sizeof words, "gguf %s %s", word, g->a->flags);
    if (check_rope_keys(g, turns ? json_object_get(g->f.file, "rope") : NULL, "") ||
        members_read(&g->f, words, &like))
        return -1;
    if (alike)
        like.layers = alike;
    note_attention_keys(g);
    if (turns)
        return add_rotation(g, &like);
    g->config->parts[g->config->n_parts++] = like;
    return 0;
}

int config_gguf(json_t *json, struct config *c, struct model *m, char error[MODEL_ERROR])
{
    struct gguf g = { .f = { .root = json, .file = json, .error = error, .notes = m->notes },
                      .config = c,
                      .model = m };
    char title[sizeof m->title], before[sizeof c->type + 1];
    *c = (struct config){ .type_from = "general.architecture" };
    field_text(json, "architecture", "(none)", c->type, sizeof c->type);
    snprintf(before, sizeof before, "%s.", c->type);
    g.f.before = before;
    memcpy(title, m->title, sizeof title);
    field_text(json, "name", title, m->title, sizeof m->title);
    snprintf(m->source, sizeof m->source, "the GGUF file given");
    note(&g.f, "As llama.cpp reads it");
    if (find_architecture(&g, json_string_value(json_object_get(json, "architecture"))))
        return -1;
    if (*g.a->note)
        note(&g.f, "%s", g.a->note);
    return read_parts(&g);
}
