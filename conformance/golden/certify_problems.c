/*
 * Problems of every kernel with parameters at random, by the oracle and by MPFR: types of
 * storage, special values, windows of a head, axes, xPos, indices of every kind.
 */
#include "certify.h"

#include <stdio.h>
#include <stdlib.h>

enum { PROBLEMS = 40, MOST_TOKENS = 24 };

/* Numbers of a problem, one after the other. */
struct draws {
    uint64_t seed, next;
    int64_t positions[MOST_TOKENS];
};

/* From least to most, both included. */
static int64_t draw(struct draws *d, int64_t least, int64_t most)
{
    return least + (int64_t)(mix64(d->seed, d->next++) % (uint64_t)(most - least + 1));
}

static enum posenc_dtype draw_dtype(struct draws *d)
{
    return (enum posenc_dtype)draw(d, POSENC_F32, POSENC_BF16);
}

static void draw_rows(struct draws *d, struct problem *p, int64_t rows)
{
    p->rows = rows;
    p->tokens = draw(d, 1, MOST_TOKENS);
    p->position_kind = POSENC_POSITIONS_I64;
    for (int64_t t = 0; t < p->tokens; t++)
        d->positions[t] = draw(d, 0, rows - 1);
    p->positions = d->positions;
}

static void draw_scores(struct draws *d, struct problem *p)
{
    p->heads = draw(d, 1, 3);
    p->queries = draw(d, 1, 9);
    p->keys = draw(d, 1, 40);
    p->query_offset = draw(d, -700, 700);
}

/* ---- Plans ---- */

/* A picture, its sections restarted. */
static void draw_axes(struct draws *d, struct problem *p)
{
    const int64_t axes = draw(d, 1, 3);
    for (int64_t a = 0; a < axes; a++) {
        p->freqs.mrope_section[a] = draw(d, 1, 9);
        p->freqs.dim += 2 * p->freqs.mrope_section[a];
    }
    p->freqs.mrope_layout = POSENC_MROPE_RESTARTED;
    p->layout = (enum posenc_layout)draw(d, POSENC_INTERLEAVED, POSENC_COS_SIN);
    p->position_kind = draw(d, 0, 1) ? POSENC_POSITIONS_I64 : POSENC_POSITIONS_F32;
    p->time_step = 1.0 / 3.0;
    p->first = draw(d, -5000, 5000);
    p->mrope_grid = 3;
    p->tokens = 7;
}

/* As far from the centre as an f32 holds 3.5^(distance / scale_base). */
static void draw_xpos(struct draws *d, struct problem *p)
{
    const int64_t base = draw(d, 1, 1024);
    p->freqs.dim = 2 * draw(d, 1, 48);
    p->freqs.xpos_scale_base = (double)base;
    p->freqs.xpos_centre = (double)draw(d, -40, 40) / 2;
    p->freqs.xpos_inverse = draw(d, 0, 1) != 0;
    p->freqs.attention_factor = draw(d, 0, 1) ? 0.0 : 1.1;
    p->position_kind = draw(d, 0, 1) ? POSENC_POSITIONS_I64 : POSENC_POSITIONS_F32;
    p->time_step = 1.0 / 3.0;
    p->tokens = 6;
    for (int64_t t = 0; t < p->tokens; t++)
        d->positions[t] = t == 0 ? 0 : draw(d, -40 * base, 40 * base) - 3;
    p->positions = d->positions;
}

/* ---- Rotations, biases, terms ---- */

static void draw_rotation(struct draws *d, struct problem *p)
{
    p->rotary_dim = 2 * draw(d, 1, 12);
    p->rotary_offset = draw(d, 0, 9);
    p->dim = p->rotary_offset + p->rotary_dim + draw(d, 0, 9);
    p->table_dtype = draw_dtype(d);
    p->heads = draw(d, 1, 3);
    p->transpose = draw(d, 0, 1) != 0;
    draw_rows(d, p, 50);
}

static void draw_buckets(struct draws *d, struct problem *p)
{
    static const int64_t sizes[][2] = { { 32, 128 }, { 64, 128 }, { 320, 800 }, { 4, 9 } };
    const int64_t *size = sizes[draw(d, 0, 3)];
    draw_scores(d, p);
    p->num_buckets = size[0];
    p->max_distance = size[1];
    p->bidirectional = draw(d, 0, 1) != 0;
}

static void draw_terms(struct draws *d, struct problem *p)
{
    static const int64_t sizes[][2] = {
        { 256, 512 }, { 32, 128 }, { 4, 6 }, { 8, 257 }, { 0, 20 }
    };
    const int64_t *size = sizes[draw(d, 0, 4)];
    draw_scores(d, p);
    p->relative = (enum relative)draw(d, RELATIVE_DEBERTA, RELATIVE_TRANSFORMER_XL);
    p->num_buckets = p->relative == RELATIVE_DEBERTA ? size[0] : 0;
    p->max_distance = p->relative == RELATIVE_DEBERTA ? size[1] : draw(d, 1, 20);
    if (p->relative == RELATIVE_SHAW)
        p->query_offset /= 40;
    if (p->relative == RELATIVE_TRANSFORMER_XL)
        p->query_offset = p->keys - p->queries;
    if (kernel_signature(p->kernel) == SIGNATURE_relative_sum)
        return;
    p->with_p2c = draw(d, 0, 1) != 0;
    p->without_c2p = p->with_p2c && draw(d, 0, 1) != 0;
    p->scale = draw(d, 0, 1) ? 0x1p-20 : 0.0721687824;
}

static void draw_window(struct draws *d, struct problem *p)
{
    p->heads = draw(d, 1, 3);
    p->window_height = draw(d, 1, 4);
    p->window_width = draw(d, 1, 4);
    p->window_class = draw(d, 0, 1) != 0;
}

/* ---- All ---- */

static void draw_parameters(struct draws *d, struct problem *p)
{
    switch (kernel_signature(p->kernel)) {
    case SIGNATURE_sinusoidal:
        draw_axes(d, p);
        break;
    case SIGNATURE_rope_table:
        draw_xpos(d, p);
        break;
    case SIGNATURE_rope:
        draw_rotation(d, p);
        break;
    case SIGNATURE_learned_grad:
        p->accumulate = draw(d, 0, 1) != 0;
        /* fall through */
    case SIGNATURE_learned:
        p->dim = draw(d, 1, 9);
        draw_rows(d, p, draw(d, 1, 5));
        break;
    case SIGNATURE_alibi:
        draw_scores(d, p);
        p->slopes_by_batch = draw(d, 0, 1) != 0;
        p->causal = draw(d, 0, 1) != 0;
        break;
    case SIGNATURE_t5:
        draw_buckets(d, p);
        break;
    case SIGNATURE_distance:
        draw_scores(d, p);
        p->distances = draw(d, 0, 1) * 60;
        break;
    case SIGNATURE_window:
        draw_window(d, p);
        break;
    case SIGNATURE_relative:
    case SIGNATURE_relative_sum:
        draw_terms(d, p);
        break;
    }
}

static struct problem any_problem(enum posenc_kernel kernel, struct draws *d)
{
    struct problem p = problem_blank(kernel);
    p.seed = d->seed;
    p.dtype = draw_dtype(d);
    p.values = draw_dtype(d);
    p.special = draw(d, 0, 2) == 0;
    p.x_scale = draw(d, 0, 1) ? 1.0f : 0.088388346f;
    draw_parameters(d, &p);
    if (kernel_takes_x(kernel) || p.slopes_by_batch)
        p.batch = draw(d, 1, 3);
    return p;
}

static bool certify_problem(const struct problem *p, uint64_t *values)
{
    struct call call;
    const char *name = posenc_kernel_name(p->kernel);
    if (call_create(&call, p, &memory_plain) != POSENC_OK) {
        fprintf(stderr, "golden: a problem of %s: %s\n", name, call.error.what);
        return false;
    }
    bool good = true;
    for (int o = 0; o < call.n_outputs && good; o++) {
        const int64_t n = call.outputs[o].rows * call.outputs[o].width;
        double *want = malloc((size_t)n * sizeof *want);
        if (!want)
            abort();
        reference_output(&call, o, want);
        good = certify_output(&call, o, want, name);
        *values += (uint64_t)n;
        free(want);
    }
    call_destroy(&call);
    return good;
}

bool certify_problems(uint64_t *values)
{
    for (int kernel = 0; kernel < POSENC_KERNEL_COUNT; kernel++)
        for (uint64_t k = 0; k < PROBLEMS; k++) {
            struct draws d = { .seed = mix64((uint64_t)kernel, k) >> 1 };
            const struct problem p = any_problem((enum posenc_kernel)kernel, &d);
            if (!certify_problem(&p, values)) {
                fprintf(stderr, "golden: that is problem %d of the kernel\n", (int)k);
                return false;
            }
        }
    return true;
}
