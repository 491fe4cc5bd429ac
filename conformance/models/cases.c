/*
 * What a configuration says -> the calls the model makes: at prefill, and decoding one token at
 * its last position.
 */
#include "cases.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void case_add(struct model *m, const struct part *part, const char *profile, const char *shape,
              struct problem p, const char *label, ...)
{
    assert(m->n_cases < MODEL_MAX_CASES);
    struct model_case *c = &m->cases[m->n_cases++];
    char name[sizeof m->name]; /* a copy: the id lies in the model, too */
    memcpy(name, m->name, sizeof name);
    snprintf(c->id, sizeof c->id, "%s/f32/%s/%s%s%s-%s", posenc_kernel_name(p.kernel), profile,
             name, *part->name ? "-" : "", part->name, shape);
    c->problem = p;
    va_list list;
    va_start(list, label);
    size_t at = (size_t)snprintf(c->label, sizeof c->label, "%s%s", part->name,
                                 *part->name ? ": " : "");
    vsnprintf(c->label + at, sizeof c->label - at, label, list);
    va_end(list);
}

void case_check(struct model *m, struct problem p)
{
    assert(m->n_verify < MODEL_MAX_CASES);
    m->verify[m->n_verify++] = p;
}

/* Few tokens that end before position `end`, frequencies those of a sequence of that length. */
static void check_end(struct model *m, struct problem p, int64_t end)
{
    p.tokens = case_least(CASE_CHECKED, end);
    p.first = end - p.tokens;
    p.freqs.seq_len = end;
    case_check(m, p);
}

/* The first positions and the last. */
static void check_both_ends(struct model *m, const struct part *part, struct problem p)
{
    check_end(m, p, case_least(CASE_CHECKED, part->length));
    check_end(m, p, part->length);
}

/* ---- rotation ---- */

static void table_case(struct model *m, const struct part *part, const char *profile,
                       const char *shape, struct problem p, int64_t tokens, int64_t end)
{
    p.tokens = tokens;
    p.first = end - tokens;
    p.freqs.seq_len = end;
    const int pairs = (int)(p.freqs.dim / 2);
    if (p.first == 0 && tokens > 1)
        case_add(m, part, profile, shape, p, "prefill, %d tokens, %d pairs", (int)tokens,
                 pairs);
    else
        case_add(m, part, profile, shape, p, "%s, position %lld, %d pairs", shape,
                 (long long)p.first, pairs);
}

/* A picture after the prompt, or from position 0 on where there is no text.  Checked are its
 * first row with the beginning of the second, and a narrow one at the last positions. */
static void picture(struct model *m, const struct part *part, const char *profile,
                    struct problem p)
{
    const int64_t side = case_least(part->picture, part->length),
                  narrow = case_least(3, part->length);
    char after[40] = "";
    p.position_kind = POSENC_POSITIONS_I64;
    p.mrope_grid = side;
    p.tokens = side * side;
    p.first = case_least(CASE_PREFILL, part->length - side);
    p.freqs.seq_len = p.first + side;
    if (!part->tower)
        snprintf(after, sizeof after, " after %d of text", (int)p.first);
    case_add(m, part, profile, "image", p, "image, %d x %d%s, %d pairs", (int)side, (int)side,
             after, (int)(p.freqs.dim / 2));
    p.tokens = case_least(side + CASE_CHECKED, p.tokens);
    case_check(m, p);
    p.mrope_grid = narrow;
    p.tokens = narrow * narrow;
    p.first = part->length - narrow;
    p.freqs.seq_len = part->length;
    case_check(m, p);
}

/* cos and sin of the angles: both profiles, at every length at which the frequencies change. */
static void rope_tables(struct model *m, const struct part *part)
{
    static const enum posenc_profile profiles[] = { POSENC_EXACT, POSENC_HF_F32 };
    const int64_t length = part->length, prefill = case_least(CASE_PREFILL, length),
                  original = (int64_t)part->freqs.original_max_position_embeddings;
    const bool switches = part->freqs.scaling == POSENC_SCALING_LONGROPE && original < length;
    for (int i = 0; i < 2; i++) {
        if (!scaling_in_profile(part->freqs.scaling, profiles[i]))
            continue;
        const char *profile = profile_names[profiles[i]];
        struct problem p = problem_default(POSENC_KERNEL_rope_table);
        p.freqs = part->freqs;
        p.freqs.profile = profiles[i];
        if (part->picture)
            picture(m, part, profile, p);
        if (part->tower)
            continue;
        table_case(m, part, profile, "prefill", p, prefill, prefill);
        if (part->decodes)
            table_case(m, part, profile, "decode", p, 1, length);
        check_both_ends(m, part, p);
        if (switches) {
            table_case(m, part, profile, "original", p, 1, original);
            check_end(m, p, original);
            check_end(m, p, original + 1);
        }
        if (part->freqs.scaling == POSENC_SCALING_DYNAMIC) {
            table_case(m, part, profile, "beyond", p, 1, 2 * length);
            check_end(m, p, length + 1);
            check_end(m, p, 2 * length);
        }
    }
}

/* Types of layers that rotate the same channels of the same heads make the same call. */
static bool rotates_alike(const struct part *a, const struct part *b)
{
    return a->tower == b->tower && a->heads == b->heads && a->key_heads == b->key_heads &&
           a->head_dim == b->head_dim && a->rotary_dim == b->rotary_dim;
}

/* Applying cos and sin: to a prompt and to one token, or to a picture. */
static void rotation(struct model *m, const struct part *part)
{
    struct problem p = problem_default(
        part->encoding == ROPE_HALF ? POSENC_KERNEL_rope_half : POSENC_KERNEL_rope_interleaved);
    p.heads = part->heads + part->key_heads;
    p.dim = part->head_dim;
    p.rotary_dim = part->rotary_dim;
    p.in_place = true;
    char share[24] = "", heads[64];
    if (part->rotary_dim < part->head_dim)
        snprintf(share, sizeof share, ", %d rotated", (int)part->rotary_dim);
    snprintf(heads, sizeof heads, "%d + %d heads of %d%s", (int)part->heads,
             (int)part->key_heads, (int)part->head_dim, share);
    if (part->tower) {
        p.tokens = p.rows = part->picture * part->picture;
        case_add(m, part, "given", "image", p, "image, %d patches, %s", (int)p.tokens, heads);
    } else {
        p.tokens = p.rows = case_least(CASE_PREFILL, part->length);
        case_add(m, part, "given", "prefill", p, "prefill, %d tokens, %s", (int)p.tokens,
                 heads);
    }
    p.tokens = p.rows = 1;
    if (part->decodes)
        case_add(m, part, "given", "decode", p, "decode, 1 token, %s", heads);
    p.tokens = p.rows = case_least(CASE_CHECKED, part->length);
    case_check(m, p);
}

static void rope(const struct config *c, size_t at, struct model *m)
{
    struct part whole = c->parts[at];
    const struct part *part = &c->parts[at];
    bool alike = !part->tower, again = false;
    for (size_t i = 0; i < c->n_parts; i++) {
        alike &= rotates_alike(part, &c->parts[i]) || c->parts[i].tower;
        again |= i < at && rotates_alike(part, &c->parts[i]);
    }
    if (alike)
        whole.name = "";
    if (!again)
        rotation(m, &whole);
    rope_tables(m, part);
}

/* ---- what is added to embeddings ---- */

static void sinusoidal(const struct part *part, struct model *m)
{
    struct problem p = problem_default(POSENC_KERNEL_sinusoidal_add);
    p.freqs = part->freqs;
    p.layout = part->layout;
    p.x_scale = (float)part->x_scale;
    p.in_place = true;
    p.tokens = case_least(CASE_PREFILL, part->length);
    int tokens = (int)p.tokens, width = (int)part->width;
    case_add(m, part, "exact", "prefill", p, "prefill, %d tokens, d_model %d", tokens, width);
    check_both_ends(m, part, p);
    p.tokens = 1;
    p.first = part->length - 1;
    if (part->decodes)
        case_add(m, part, "exact", "decode", p, "decode, position %lld, d_model %d",
                 (long long)p.first, width);

    p = problem_default(POSENC_KERNEL_sinusoidal);
    p.freqs = part->freqs;
    p.layout = part->layout;
    p.tokens = tokens;
    case_add(m, part, "exact", "table", p, "table, %d tokens, d_model %d", tokens, width);
    check_both_ends(m, part, p);
    p.tokens = tokens;
    p.freqs.profile = POSENC_HF_F32;
    case_add(m, part, "hf_f32", "table", p, "table, %d tokens, d_model %d", tokens, width);
    check_both_ends(m, part, p);
}

static void learned(const struct part *part, struct model *m)
{
    struct problem p = problem_default(POSENC_KERNEL_learned_add);
    p.dim = part->width;
    p.rows = part->rows;
    p.x_scale = (float)part->x_scale;
    p.in_place = true;
    p.tokens = case_least(CASE_PREFILL, part->length);
    p.first = part->first;
    char from[32] = "";
    if (part->first)
        snprintf(from, sizeof from, " from row %d", (int)part->first);
    case_add(m, part, "given", "prefill", p, "prefill, %d tokens%s, width %d", (int)p.tokens,
             from, (int)part->width);
    p.tokens = case_least(CASE_CHECKED, part->length);
    case_check(m, p);
    p.first = part->first + part->length - p.tokens;
    case_check(m, p);
    p.tokens = 1;
    p.first = part->first + part->length - 1;
    if (part->decodes)
        case_add(m, part, "given", "decode", p, "decode, row %lld, width %d",
                 (long long)p.first, (int)part->width);
}

void config_cases(const struct config *c, struct model *m)
{
    m->n_cases = m->n_verify = 0;
    for (size_t i = 0; i < c->n_parts; i++) {
        const struct part *part = &c->parts[i];
        switch (part->encoding) {
        case SINUSOIDAL:
            sinusoidal(part, m);
            break;
        case LEARNED:
            learned(part, m);
            break;
        case ROPE_HALF:
        case ROPE_INTERLEAVED:
            rope(c, i, m);
            break;
        case ALIBI:
            cases_alibi(part, m);
            break;
        case T5:
            cases_t5(part, m);
            break;
        case DEBERTA:
        case TRANSFORMER_XL:
            cases_relative(part, m);
            break;
        case WINDOW:
            cases_window(part, m);
            break;
        }
    }
}
