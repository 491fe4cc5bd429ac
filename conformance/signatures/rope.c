/*
 * rope: rotation of the channels of each head by rows of cosines and sines (Su et al. 2104.09864). A pair (x0, x1) of a
 * head becomes
 *
 *   y0 = x0 cos - x1 sin,   y1 = x1 cos + x0 sin
 *
 * First the signature of the calls (signature.h), then their expected rows (oracle/rows.h).
 */
#include "conformance/oracle/rows.h"

#include <math.h>
#include <string.h>

/* Returns the error limit in ulp of the larger product. Fused: 0.5 for the product, and 1 for the fma, which is half an
 * ulp of a result that may be twice the larger product. Otherwise 0.5 for each product and 1 for the sum. */
static double error_limit(const struct problem *p, bool fused)
{
    (void)p;
    return fused ? 1.5 : 2.0;
}

/* Counts only rotated channels in place, as the others need not be read or written. */
static int64_t moved_elements(const struct problem *p)
{
    return p->batch * p->tokens * p->heads * (p->in_place ? p->rotary_dim : p->dim);
}

bool signature_check_rotation(struct call *call)
{
    const struct problem *p = &call->problem;
    const enum posenc_status odd = p->rotary_dim % 2 ? POSENC_ERR_ODD : POSENC_OK;
    const int64_t most = p->dim - (p->dim & 1);
    return call_check_range(call, POSENC_ERR_SHAPE, "head_dim", p->dim, 2, INT32_MAX) &&
           call_check(call, odd, "rotary_dim", p->rotary_dim, 2, most) &&
           call_check_range(call, POSENC_ERR_ROTARY_DIM, "rotary_dim", p->rotary_dim, 2, most);
}

#define ACTIVATIONS                                                                            \
    .dims = { DIM_BATCH, DIM_TOKEN, DIM_HEAD, DIM_CHANNEL }, .moved = moved_elements

const struct signature signature_rope = {
    BLANK(rope),
    .tensors = { ANGLES(rope, cos, STREAM_COS),
                 ANGLES(rope, sin, STREAM_SIN),
                 { OUT(rope, out), ACTIVATIONS },
                 { X(rope), ACTIVATIONS },
                 POSITIONS(rope) },
    .parameters = { PARAMETER(rope, transpose), PARAMETER(rope, rotary_offset) },
    .channels = MEMBER(dim),
    .rotary = MEMBER(rotary_dim),
    .error_limit = error_limit,
    .copies = true, /* channels that do not rotate */
    .fields =
        FIELDS_TOKENS "values_dtype table_dtype heads head_dim rotary_dim rotary_offset rows "
                      "transpose recipe",
    .cuts = { DIM_HEAD, DIM_TOKEN, DIM_BATCH },
    .shares = { DIM_TOKEN, DIM_HEAD },
    .work = WORK_ROTATION,
    .check = signature_check_rotation,
};

/* ---- Expected rows ---- */

/* Pair i of a row: its channels a and b, their values, and the cosine and sine of the rotation. */
struct rotated_pair {
    int64_t a, b;
    double x0, x1, c, s;
};

static struct rotated_pair pair_of(const struct call *call, int64_t r, int64_t i)
{
    const struct problem *p = &call->problem;
    const int64_t from = p->rotary_offset, half = p->rotary_dim / 2;
    const bool adjacent = kernel_pairs_adjacent(p->kernel);
    const int64_t a = from + (adjacent ? 2 * i : i), b = a + (adjacent ? 1 : half);
    const int64_t angle = oracle_row_position(p, r, p->heads) * half + i;
    const float *x = call->x + r * p->dim;
    const double s = (double)call->sin[angle];
    return (struct rotated_pair){
        a, b, (double)x[a], (double)x[b], (double)call->cos[angle], p->transpose ? -s : s
    };
}

static void row_rope(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const struct call *call = oracle->call;
    const int64_t width = call->outputs[o].width;
    for (int64_t k = 0; k < width; k++)
        want[k] = (double)call->x[r * width + k];
    for (int64_t i = 0; i < call->problem.rotary_dim / 2; i++) {
        const struct rotated_pair pair = pair_of(call, r, i);
        want[pair.a] = exact_add_to_odd(pair.x0 * pair.c, -(pair.x1 * pair.s));
        want[pair.b] = exact_add_to_odd(pair.x1 * pair.c, pair.x0 * pair.s);
    }
}

/* Sets the magnitude of each rotated channel to its larger product. */
static void magnitudes_rope(const struct oracle *oracle, int64_t r, double *magnitudes)
{
    const struct call *call = oracle->call;
    for (int64_t i = 0; i < call->problem.rotary_dim / 2; i++) {
        const struct rotated_pair pair = pair_of(call, r, i);
        magnitudes[pair.a] = fmax(fabs(pair.x0 * pair.c), fabs(pair.x1 * pair.s));
        magnitudes[pair.b] = fmax(fabs(pair.x1 * pair.c), fabs(pair.x0 * pair.s));
    }
}

/* Returns a b + c d of f32 values in f32 arithmetic. Computing in f64 and rounding gives the same results, and the
 * casts keep a compiler from contracting. */
static float add_products_unfused(double a, double b, double c, double d)
{
    const float ab = (float)(a * b), cd = (float)(c * d);
    return (float)((double)ab + (double)cd);
}

/* For golden vectors that were published in plain f32 arithmetic (suites/vectors.c). */
void oracle_compute_row_unfused(const struct call *call, int64_t r, float *out)
{
    const int64_t dim = call->problem.dim;
    memcpy(out, call->x + r * dim, (size_t)dim * sizeof *out);
    for (int64_t i = 0; i < call->problem.rotary_dim / 2; i++) {
        const struct rotated_pair pair = pair_of(call, r, i);
        out[pair.a] = add_products_unfused(pair.x0, pair.c, -pair.x1, pair.s);
        out[pair.b] = add_products_unfused(pair.x1, pair.c, pair.x0, pair.s);
    }
}

const struct oracle_functions oracle_rope = { .row = row_rope, .magnitudes = magnitudes_rope };
