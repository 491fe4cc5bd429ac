/*
 * Laws of norms of heads, rope_qk_norm.
 *
 *   norm-then-rotation   the norm by the formula and in the order of posenc.h, then rope_half: the
 *                        same bits by family "template"; by others each is within its limit of
 *                        the truth
 *   scale                x times a power of two: the same bits, where epsilon is nothing
 *   one-weight           a weight of rank 1 is that of stride 0 between heads
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include "conformance/oracle/oracle.h"

#include <math.h>
#include <string.h>

/* Of a problem, as the call has it. */
static const struct posenc_rope_qk_norm_args *args_of(const struct call *call)
{
    return &call->args.rope_qk_norm;
}

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
    const bool across = args_of(norm)->across_heads;
    const int64_t heads = across ? p->heads : 1;
    const float *x = norm->x + r / heads * heads * p->dim;
    float sum = 0.0f;
    for (int64_t h = 0; h < heads; h++)
        sum += sum_of_squares(x + h * p->dim, p->dim);
    const float mean = sum / (float)(heads * p->dim),
                root = sqrtf(mean + args_of(norm)->epsilon);
    return 1.0f / root;
}

/* x of a rotation: that of a call of the norm, normalised. */
static void edit_normed(struct call *call, const void *norm)
{
    const struct call *of = norm;
    const int64_t dim = of->problem.dim, heads = of->problem.heads;
    for (int64_t r = 0; r < storage_rows(call_x(call)); r++) {
        const float scale = inverse_root(of, r), *x = of->x + r * dim;
        const float *weight = of->table + r % heads * dim;
        for (int64_t k = 0; k < dim; k++) {
            const float value = x[k] * scale;
            tensor_row(call_x(call), r)[k] = value * weight[k];
        }
    }
}

/* How far two results may be from each other that are within the limit of the truth: its unit is
 * that of a product, which is no larger than the pair is long. */
static double reach(const struct problem *p, const float *row, int64_t k)
{
    const double length = hypot((double)row[k], (double)row[problem_turning(p, k).partner]);
    return 2.0 * signature_of(p->kernel)->most_error(p, false) *
           ulp_of(POSENC_F32, 2.0 * length);
}

static void law_apart(struct tally *t, const struct problem *p)
{
    const bool bits = strcmp(t->run->backend->family, "template") == 0;
    struct problem apart = *p;
    apart.kernel = POSENC_KERNEL_rope_half;
    if (!law_needs(t, apart.kernel))
        return;
    const struct call *got = tally_run(t, p, NULL, NULL),
                      *want = got ? tally_run(t, &apart, edit_normed, got) : NULL;
    for (int64_t r = 0; want && r < want->outputs[0].rows; r++)
        for (int64_t k = 0; k < p->dim; k++) {
            const float *row = call_row(want, 0, r), is = call_row(got, 0, r)[k];
            const bool near = fabs((double)is - (double)row[k]) <= reach(p, row, k);
            require(t, bits ? bits_of(is) == bits_of(row[k]) : near,
                    "row %lld channel %lld is %a, by a norm and then rope_half %a",
                    (long long)r, (long long)k, (double)is, (double)row[k]);
        }
}

/* ---- Scale ---- */

static void edit_scaled(struct call *call, const void *scale)
{
    for (int64_t r = 0; r < storage_rows(call_x(call)); r++)
        for (int64_t k = 0; k < call->problem.dim; k++)
            tensor_row(call_x(call), r)[k] *= *(const float *)scale;
    call->args.rope_qk_norm.epsilon = 0x1p-64f;
}

/* The mean of x^2 is from 2^-8 on, from 2^-28 of the smallest here, and 2^-64 below its last bit. */
static void law_scale(struct tally *t, const struct problem *p)
{
    static const float scales[] = { 1.0f, 0x1p-10f, 0x1p1f, 0x1p7f, 0x1p40f };
    const struct call *want = tally_run(t, p, edit_scaled, &scales[0]);
    for (int s = 1; want && s < 5; s++) {
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

static void law_one_weight(struct tally *t, const struct problem *p)
{
    const struct call *want = tally_run(t, p, edit_stride, NULL),
                      *got = tally_run(t, p, edit_rank, NULL);
    if (got && want)
        require_same_outputs(t, got, want, "a weight of rank 1");
}

const struct law laws_norm[] = {
    LAW("norm-then-rotation", law_apart, .problems = "norms"),
    LAW("scale", law_scale, .problems = "norms"),
    LAW("one-weight", law_one_weight, .problems = "norms"),
    { 0 },
};
