/*
 * Laws of norms of heads, rope_qk_norm.
 *
 *   norm-then-rotation   the norm by the formula and in the order of posenc.h, then rope_half: the
 *                        same bits by family "native"; by others each is within its limit of
 *                        the truth
 *   scale                x times a power of two: the same bits, where epsilon is nothing
 *   one-weight           a weight of rank 1 is that of stride 0 between heads
 */
#include "laws.h"

#include "conformance/oracle/oracle.h"

#include <math.h>
#include <string.h>

/* ---- The norm apart ---- */

static float sum_of_squares(const float *x, int64_t n)
{
    float sums[64] = { 0.0f };
    for (int64_t i = 0; i < n; i++)
        sums[i % 64] = fmaf(x[i], x[i], sums[i % 64]);
    for (int half = 32; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            sums[i] += sums[half + i];
    return sums[0];
}

/* What row r of x is multiplied by. */
static float inverse_root(const struct call *norm, int64_t r)
{
    const struct problem *p = &norm->problem;
    const struct posenc_rope_qk_norm_args *args = &norm->args.rope_qk_norm;
    const int64_t heads = args->across_heads ? p->heads : 1;
    const float *x = norm->x + r / heads * heads * p->dim;
    float sum = 0.0f;
    for (int64_t h = 0; h < heads; h++)
        sum += sum_of_squares(x + h * p->dim, p->dim);
    const float mean = sum / (float)(heads * p->dim), root = sqrtf(mean + args->epsilon);
    return 1.0f / root;
}

/* x of a rotation: that of a call of the norm, normalised. */
static void edit_normed(struct call *call, const void *norm)
{
    const struct call *of = norm;
    const int64_t dim = of->problem.dim, heads = of->problem.heads;
    float scale = 0.0f;
    for (EACH_PLACE(at, call_x(call))) {
        scale = at.column == 0 ? inverse_root(of, at.row) : scale;
        const float value = of->x[at.row * dim + at.column] * scale;
        place_put(at, value * of->table[at.row % heads * dim + at.column]);
    }
}

/* How far two results may be from each other that are within the limit of the truth: its unit is
 * that of a product, which is no larger than the pair is long. */
static double reach(const struct problem *p, const float *row, int64_t k)
{
    const double length = hypot((double)row[k], (double)row[problem_rotation(p, k).partner]);
    return 2.0 * signature_of(p->kernel)->error_limit(p, false) *
           ulp_of(POSENC_F32, 2.0 * length);
}

static void compare_apart(struct tally *t, const struct call *got, const struct call *apart)
{
    const bool bits = strcmp(t->run->backend->family, "native") == 0;
    for (EACH_ELEMENT(at, apart)) {
        const float is = twin_of(&at, got);
        const bool near =
            fabs((double)is - (double)at.value) <= reach(&got->problem, at.values, at.column);
        require(t, bits ? float_to_bits(is) == float_to_bits(at.value) : near,
                "row %lld channel %lld is %a, by a norm and then rope_half %a",
                (long long)at.row, (long long)at.column, (double)is, (double)at.value);
    }
}

/* ---- Scale ---- */

static void edit_scaled(struct call *call, const void *scale)
{
    for (EACH_PLACE(at, call_x(call)))
        place_put(at, place_get(at) * *(const float *)scale);
    call->args.rope_qk_norm.epsilon = 0x1p-64f;
}

/* The mean of x^2 is from 2^-8 on, from 2^-28 of the smallest here, and 2^-64 below its last bit. */
static void law_scale(struct tally *t, const struct problem *p)
{
    static const float scales[] = { 0x1p-10f, 0x1p1f, 0x1p7f, 0x1p40f };
    const struct call *want = tally_run(t, p, edit_scaled, &one);
    for (int s = 0; want && s < 4; s++) {
        const struct call *got = tally_run(t, p, edit_scaled, &scales[s]);
        if (got)
            require_same_outputs(t, got, want, "x times a power of two");
    }
}

/* ---- One weight ---- */

static void edit_stride(struct call *call, const void *user)
{
    (void)user;
    call->args.rope_qk_norm.weight.stride[0] = 0;
}

static void edit_rank(struct call *call, const void *user)
{
    struct posenc_const_tensor *weight = &call->args.rope_qk_norm.weight;
    (void)user;
    *weight = posenc_const_dense(weight->data, 1, call->problem.dim, 0, 0, 0);
}

const struct law laws_norm[] = {
    { "norm-then-rotation", .compares = compare_apart, .problems = "norms", .twin = "rope_half",
      .twin_edit = edit_normed },
    { "scale", .check = law_scale, .problems = "norms" },
    { "one-weight", .twin = "", .problems = "norms", .edit = edit_stride,
      .twin_edit = edit_rank },
    { 0 },
};
