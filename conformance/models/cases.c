/*
 * What a configuration says -> the calls the model makes: at prefill, and decoding one token at
 * its last position.
 */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PREFILL = 512, CHECKED_TOKENS = 8 };

__attribute__((format(printf, 5, 6))) static void add_case(struct model *m, const char *profile,
                                                           const char *shape, struct problem p,
                                                           const char *label, ...)
{
    if (m->n_cases == MODEL_MAX_CASES)
        return;
    struct model_case *c = &m->cases[m->n_cases++];
    char name[sizeof m->name]; /* a copy: the id lies in the model, too */
    memcpy(name, m->name, sizeof name);
    snprintf(c->bench.id, sizeof c->bench.id, "%s/f32/%s/%s-%s", posenc_kernel_name(p.kernel),
             profile, name, shape);
    c->bench.footprint = NULL;
    c->bench.problem = p;
    va_list list;
    va_start(list, label);
    vsnprintf(c->label, sizeof c->label, label, list);
    va_end(list);
}

static void add_check(struct model *m, struct problem p)
{
    if (m->n_verify < MODEL_MAX_CASES)
        m->verify[m->n_verify++] = p;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Few tokens, at the first and at the last positions. */
static void check_both_ends(struct model *m, struct problem p)
{
    p.tokens = least(CHECKED_TOKENS, m->max_position_embeddings);
    p.first = 0;
    add_check(m, p);
    p.first = m->max_position_embeddings - p.tokens;
    add_check(m, p);
}

/* cos and sin of the angles: both profiles, prefill and decode. */
static void rope_tables(struct model *m)
{
    static const struct {
        enum posenc_profile profile;
        const char *name;
    } profiles[] = { { POSENC_EXACT, "exact" }, { POSENC_HF_F32, "hf_f32" } };
    int64_t tokens = least(PREFILL, m->max_position_embeddings);
    for (int i = 0; i < 2; i++) {
        struct problem p = problem_default(POSENC_KERNEL_rope_table);
        p.freqs = m->freqs;
        p.freqs.profile = profiles[i].profile;
        p.tokens = tokens;
        p.first = 0;
        add_case(m, profiles[i].name, "prefill", p, "prefill, %d tokens, %d pairs", (int)tokens,
                 (int)(p.freqs.dim / 2));
        check_both_ends(m, p);
        p.tokens = 1;
        p.first = m->max_position_embeddings - 1;
        add_case(m, profiles[i].name, "decode", p, "decode, position %lld, %d pairs",
                 (long long)p.first, (int)(p.freqs.dim / 2));
    }
}

static void rope(const struct config *c, struct model *m)
{
    struct problem p = problem_default(
        c->encoding == ROPE_HALF ? POSENC_KERNEL_rope_half : POSENC_KERNEL_rope_interleaved);
    p.heads = c->heads + c->key_heads;
    p.dim = c->head_dim;
    p.rotary_dim = c->rotary_dim;
    p.in_place = true;
    p.tokens = p.rows = least(PREFILL, c->length);
    char heads[40], part[24] = "";
    snprintf(heads, sizeof heads, "%d + %d heads of %d", (int)c->heads, (int)c->key_heads,
             (int)c->head_dim);
    if (c->rotary_dim < c->head_dim)
        snprintf(part, sizeof part, ", %d rotated", (int)c->rotary_dim);
    add_case(m, "given", "prefill", p, "prefill, %d tokens, %s%s", (int)p.tokens, heads, part);
    p.tokens = p.rows = 1;
    add_case(m, "given", "decode", p, "decode, 1 token, %s%s", heads, part);
    p.tokens = p.rows = least(CHECKED_TOKENS, c->length);
    add_check(m, p);
    rope_tables(m);
}

static void sinusoidal(const struct config *c, struct model *m)
{
    struct problem p = problem_default(POSENC_KERNEL_sinusoidal_add);
    p.freqs = m->freqs;
    p.x_scale = (float)sqrt((double)c->width);
    p.in_place = true;
    p.tokens = least(PREFILL, c->length);
    int tokens = (int)p.tokens, width = (int)c->width;
    add_case(m, "exact", "prefill", p, "prefill, %d tokens, d_model %d", tokens, width);
    check_both_ends(m, p);
    p.tokens = 1;
    p.first = c->length - 1;
    add_case(m, "exact", "decode", p, "decode, position %lld, d_model %d", (long long)p.first,
             width);

    p = problem_default(POSENC_KERNEL_sinusoidal);
    p.freqs = m->freqs;
    p.tokens = tokens;
    add_case(m, "exact", "table", p, "table, %d tokens, d_model %d", tokens, width);
    check_both_ends(m, p);
    p.tokens = tokens;
    p.freqs.profile = POSENC_HF_F32;
    add_case(m, "hf_f32", "table", p, "table, %d tokens, d_model %d", tokens, width);
    check_both_ends(m, p);
}

static void learned(const struct config *c, struct model *m)
{
    struct problem p = problem_default(POSENC_KERNEL_learned_add);
    p.dim = c->width;
    p.rows = c->length;
    p.in_place = true;
    p.tokens = least(PREFILL, c->length);
    add_case(m, "given", "prefill", p, "prefill, %d tokens, width %d", (int)p.tokens,
             (int)c->width);
    check_both_ends(m, p);
    p.tokens = 1;
    p.first = c->length - 1;
    if (c->decodes)
        add_case(m, "given", "decode", p, "decode, row %lld, width %d", (long long)p.first,
                 (int)c->width);
}

/* Biases onto scores: both as the fused addition and as a tensor of its own. */
static void bias(const struct config *c, struct model *m, struct problem add,
                 struct problem build)
{
    int64_t n = least(PREFILL, c->length);
    add.in_place = true;
    add.heads = build.heads = c->heads;
    add.queries = add.keys = build.queries = build.keys = n;
    add.query_offset = build.query_offset = 0;
    add_case(m, "given", "prefill", add, "prefill, %d heads, %d x %d scores", (int)c->heads,
             (int)n, (int)n);
    struct problem decode = add;
    decode.queries = 1;
    decode.keys = c->length;
    decode.query_offset = c->length - 1;
    decode.bidirectional = false; /* a decoder sees no later keys */
    add_case(m, "given", "decode", decode, "decode, %d heads, 1 x %d scores", (int)c->heads,
             (int)c->length);
    add_case(m, "given", "tensor", build, "as a tensor, %d heads, %d x %d", (int)c->heads,
             (int)n, (int)n);
    add_check(m, decode);
    add.queries = build.queries = CHECKED_TOKENS;
    add.query_offset = build.query_offset = n / 2;
    add_check(m, add);
    add_check(m, build);
}

static void alibi(const struct config *c, struct model *m)
{
    struct problem add = problem_default(POSENC_KERNEL_alibi_add),
                   build = problem_default(POSENC_KERNEL_alibi);
    add.causal = build.causal = true;
    add.alibi_bias_max = build.alibi_bias_max = c->alibi_bias_max;
    add.x_scale = (float)(1.0 / sqrt((double)c->head_dim));
    bias(c, m, add, build);
}

static void t5(const struct config *c, struct model *m)
{
    struct problem add = problem_default(POSENC_KERNEL_t5_bias_add),
                   build = problem_default(POSENC_KERNEL_t5_bias);
    add.bidirectional = build.bidirectional = true;
    add.num_buckets = build.num_buckets = c->num_buckets;
    add.max_distance = build.max_distance = c->max_distance;
    bias(c, m, add, build);
}

void config_cases(const struct config *c, struct model *m)
{
    m->n_cases = m->n_verify = 0;
    switch (c->encoding) {
    case SINUSOIDAL:
        sinusoidal(c, m);
        break;
    case LEARNED:
        learned(c, m);
        break;
    case ROPE_HALF:
    case ROPE_INTERLEAVED:
        rope(c, m);
        break;
    case ALIBI:
        alibi(c, m);
        break;
    case T5:
        t5(c, m);
        break;
    }
}
