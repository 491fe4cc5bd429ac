/*
 * Small problems at every length: see lengths.h.
 */
#include "lengths.h"

static void problem_tokens(struct problem *p, int64_t n, int v)
{
    static const int64_t tokens[MEMORY_VARIANTS] = { 3, 2, 5, 1 };
    p->tokens = tokens[v];
    p->layout = (enum posenc_layout)((n + v) % 3);
    p->freqs.convention = (enum posenc_convention)(v & 1);
    p->freqs.profile = v == 2 ? (enum posenc_profile)(POSENC_HF_F32 + n % 3) : POSENC_EXACT;
    p->position_kind = (enum posenc_position_kind)(v % 3);
    p->batch_shift = p->position_kind == POSENC_OFFSET ? 0 : 1;
}

/* Tables beyond one integer a token: in every other length times with a fraction, in every
 * fourth pairs shared between the axes of a picture, in others xPos. */
static void problem_places(struct problem *p, int64_t n, int v)
{
    bool rotary = kernel_signature(p->kernel) == SIGNATURE_rope_table;
    struct posenc_freqs_spec *f = &p->freqs;
    if (v == 2 && n % 2) {
        p->position_kind = POSENC_POSITIONS_F32;
        p->time_step = 0.37;
    }
    f->xpos_scale_base = rotary && v == 3 && n % 2 ? 512.0 : 0.0;
    if (v != 1 || n < 4 || n % 4 != (rotary ? 1 : 2))
        return;
    p->mrope_grid = 2;
    if (rotary) {
        f->mrope_layout = n % 8 == 1 ? POSENC_MROPE_CHUNKED : POSENC_MROPE_INTERLEAVED;
        f->mrope_section[1] = f->mrope_section[2] = n / 4;
        f->mrope_section[0] = n - n / 4 * 2;
    } else { /* an even dim: sections of n/2 pairs together */
        f->convention = POSENC_EXPONENT;
        f->mrope_layout = POSENC_MROPE_RESTARTED;
        f->mrope_section[0] = n / 4;
        f->mrope_section[1] = n / 2 - n / 4;
    }
}

/* Columns of terms: DeBERTa's, Shaw's, Transformer-XL's, DeBERTa's of the keys alone. */
static void problem_relative(struct problem *p, int64_t n, int v)
{
    p->relative = v == 1 ? RELATIVE_SHAW : v == 2 ? RELATIVE_TRANSFORMER_XL : RELATIVE_DEBERTA;
    p->with_p2c = v == 0 || v == 3;
    p->without_c2p = v == 3;
    p->num_buckets = v == 0 ? 8 : 0;
    p->max_distance = v == 3 ? 5 : 20;
    p->scale = v == 2 ? 0.5 : 1.0;
    p->query_offset = v == 2 ? n - p->queries : p->query_offset;
}

/* Sums of n keys, or into n columns, or n + 1. */
static void problem_sums(struct problem *p, int64_t n, int v)
{
    bool square = v % 2 == 0;
    p->keys = square ? n : 9;
    p->relative = square ? RELATIVE_TRANSFORMER_XL : RELATIVE_SHAW;
    p->max_distance = square || n < 2 ? 1 : n / 2;
    p->query_offset = square ? n - p->queries : 3 - n / 4;
}

static void problem_scores(struct problem *p, int64_t n, int v)
{
    enum signature_id s = kernel_signature(p->kernel);
    p->heads = 3;
    p->keys = n;
    p->queries = 1 + v;
    p->query_offset = v == 3 ? -2 : n - p->queries;
    p->causal = v & 1;
    p->bidirectional = !(v & 1);
    p->num_buckets = 8;
    p->max_distance = 20;
    if (s == SIGNATURE_relative)
        problem_relative(p, n, v);
    if (s == SIGNATURE_relative_sum)
        problem_sums(p, n, v);
    p->slopes_by_batch = s == SIGNATURE_alibi && v == 1;
    p->window_height = 1;
    p->window_class = v == 1 && n > 1;
    p->window_width = n - p->window_class;
    p->distances = v == 3 ? problem_distances(p->queries, n) + 2 : 0;
    if (s == SIGNATURE_window)
        p->queries = p->keys;
    if (!kernel_takes_x(p->kernel) && s != SIGNATURE_relative && !p->slopes_by_batch)
        p->batch = 1;
}

static void problem_rope(struct problem *p, int64_t n, int v)
{
    static const int64_t tails[MEMORY_VARIANTS] = { 0, 3, 1, 0 };
    p->rotary_dim = 2 * n;
    p->rotary_offset = v == 2 ? n % 3 : 0;
    p->dim = p->rotary_offset + 2 * n + tails[v];
    p->heads = 1 + v % 3;
    p->transpose = v == 1;
}

struct problem memory_problem(enum posenc_kernel kernel, int64_t n, int v)
{
    struct problem p = problem_default(kernel);
    static const int64_t pads[MEMORY_VARIANTS] = { 0, 5, 0, 3 };
    p.pad = pads[v];
    p.in_place = kernel_in_place(kernel) && v >= 2;
    p.special = v == 3;
    p.x_scale = v == 1 ? 0.5f : 1.0f;
    p.scale = v == 1 ? 0.5 : 1.0;
    p.batch = 1 + (v & 1);
    p.token_major = v & 1;
    p.accumulate = v & 1;
    problem_tokens(&p, n, v);
    if (kernel_on_scores(kernel)) {
        problem_scores(&p, n, v);
        return p;
    }
    if (kernel_has_plan(kernel)) {
        bool rotary = kernel_signature(kernel) == SIGNATURE_rope_table;
        p.freqs.dim = rotary ? 2 * n : n;
        p.freqs.convention = rotary ? POSENC_EXPONENT : p.freqs.convention;
        p.first = v == 1 ? 63 : -1;
        problem_places(&p, n, v);
        return p;
    }
    p.dim = n;
    p.rows = p.tokens + 3;
    p.first = 1;
    if (kernel_turns(kernel))
        problem_rope(&p, n, v);
    return p;
}

/* Plain C may have been vectorised to anything up to 16 lanes; one lane may be unrolled by
 * four. */
int64_t memory_lanes(const struct posenc_backend *backend)
{
    int64_t lanes = backend->lanes ? backend->lanes() : 16;
    return lanes < 4 ? 4 : lanes;
}
