/*
 * Properties of the rotations. When a kernel rotates a pair of norm |x| by given cos and sin, both components are
 * within
 *
 *     2 ulp of the larger product (pair_ulp 2, the unfused bound)    <= 2 2^-23 |x|
 *     and, cos and sin being correctly rounded, 2^-25 (|x0| + |x1|)  <= 2^-24.5 |x|
 *
 * of the real rotation by the row's angle. The sum of these is below D |x|, D = 2^-21.5, so the vector of both
 * components is within sqrt(2) D |x|. The bounds of the properties follow from D:
 *
 *   relative                q_m . k_n depends on m - n alone (Su et al. 2104.09864)
 *   compose                 a rotation by a, then by b, is one by a + b
 *   transpose-is-gradient   <R x, g> = <x, R^T g>
 *   pairings-agree          rope_half and rope_interleaved rotate permuted channels alike
 *   partial-copies-tail     channels past rotary_dim are copies of the input's bits, NaN included
 *
 * Properties of rope_qk_norm, which normalises each head first:
 *
 *   scale        x times a power of two gives the same bits, if epsilon is negligible
 *   one-weight   a weight of rank 1 gives the bits of one with stride 0 between heads
 */
#include "properties.h"

#include <math.h>
#include <string.h>

#define ROTATION_ERROR 0x1.6a09e667f3bcdp-22 /* D above, 2^-21.5 */

/* ---- q . k depends on m - n ---- */

/* Returns the inner product of two rows, and adds the products of the norms of their pairs. */
static double dot_pairs(const struct call *y, int64_t q, int64_t k, double *magnitudes)
{
    double sum = 0.0;
    for (int64_t i = 0; i < pair_count(&y->problem); i++) {
        const double complex a = pair_from_output(y, q, i), b = pair_from_output(y, k, i);
        sum += creal(a * conj(b));
        *magnitudes += cabs(a) * cabs(b);
    }
    return sum;
}

/* Makes every token equal the first, head by head. */
static void edit_same_tokens(struct call *call, const void *user)
{
    (void)user;
    tensor_repeat_rows(call_x(call), call->problem.heads);
}

/* Head 0 is q and head 1 is k, the same at every token. Each product of pairs is within 2 sqrt(2) D |q_i| |k_i| of
 * the real one, plus a term in D^2. Two sums of products are compared, so the bound is 6 D sum |q_i| |k_i|. */
static void check_relative(struct tally *t, const struct call *y)
{
    enum { COMPARED = 24 };
    const int64_t heads = y->problem.heads;
    for (int64_t m = 0; m < COMPARED; m++)
        for (int64_t n = 0; n < COMPARED; n++) {
            const int64_t m0 = m > n ? m - n : 0, n0 = m > n ? 0 : n - m;
            double norms = 0.0, norms0 = 0.0;
            const double got = dot_pairs(y, heads * m, heads * n + 1, &norms),
                         want = dot_pairs(y, heads * m0, heads * n0 + 1, &norms0);
            require_within(t, got, want, 6 * ROTATION_ERROR * fmax(norms, norms0),
                           "q(m) . k(n) and q(m-n) . k(0)");
        }
}

/* ---- Composition ---- */

/* Makes the output of another call the input of this one. */
static void edit_rotated_x(struct call *call, const void *from)
{
    for (EACH_TENSOR_ELEMENT(at, call_x(call)))
        tensor_element_put(at, call_row(from, 0, at.row)[at.column]);
}

/* Compares two rotations of token t, by positions a + t and b + t, with one by a + b + 2t, the position of the
 * problem. A component of the two is within D + sqrt(2) D of the real rotation, that of the single one within D. The
 * bound of their difference is 4 D. */
static void compare_compose(struct tally *t, const struct call *once, const struct call *first)
{
    struct problem second = first->problem;
    second.first = once->problem.positions[0] - second.first;
    const struct call *twice = tally_run(t, &second, edit_rotated_x, first);
    for (EACH_PAIR(at, twice)) {
        const double complex want = pair_from_output(once, at.row, at.i);
        pair_require(t, &at, want, 4 * ROTATION_ERROR * cabs(want), "R(a) R(b) x");
    }
}

/* ---- The gradient ---- */

static uint64_t random_at(struct tensor_element at)
{
    return rng_u64((uint64_t)at.row, (uint64_t)at.column);
}

/* Draws cosines and sines that belong to no angle, so that the transpose is not the inverse. */
static void edit_any_angles(struct call *call, const void *user)
{
    (void)user;
    for (EACH_TENSOR_ELEMENT(at, storage_as_writable(&call->args.rope.cos)))
        tensor_element_put(at, 0.5f + (float)(random_at(at) >> 40) * 0x1p-24f);
    for (EACH_TENSOR_ELEMENT(at, storage_as_writable(&call->args.rope.sin)))
        tensor_element_put(at, (float)(random_at(at) & 0xffffff) * 0x1p-24f -
                                   (float)(random_at(at) >> 32 & 1));
}

static double norm_1(double complex z) { return fabs(creal(z)) + fabs(cimag(z)); }

/* Compares <R x, g> with <x, R^T g>: R is linear in x, and its transpose is its gradient. A component of either
 * output is within 2 ulp of the larger product, 2 2^-23 1.5 |x|, and is multiplied by two components of g. */
static void compare_gradient(struct tally *t, const struct call *y, const struct call *dx)
{
    double norms = 0.0, unused = 0.0;
    for (EACH_PAIR(at, y))
        norms += norm_1(pair_from_x(y, at.row, at.i)) * norm_1(pair_from_x(dx, at.row, at.i));
    require_within(t, element_inner_product(dx, y->x, &unused),
                   element_inner_product(y, dx->x, &unused), 6.0 * 0x1p-23 * norms,
                   "<x, R^T g> and <R x, g>");
}

/* ---- Half and interleaved ---- */

/* Permutes channels to the order of the other pairing. */
static void edit_pairing(struct call *call, const void *other)
{
    for (EACH_PAIR(at, other)) {
        const double complex x = pair_from_x(other, at.row, at.i);
        const struct pair_columns to = pair_columns(&call->problem, at.i);
        storage_row_f32(call_x(call), at.row)[to.real] = (float)creal(x);
        storage_row_f32(call_x(call), at.row)[to.imaginary] = (float)cimag(x);
    }
}

/* Native backends have one template for both pairings, so their bits agree. In other backends, the compiler may
 * contract each loop differently, which makes a difference of up to 2 D. */
static void compare_pairings(struct tally *t, const struct call *inter, const struct call *half)
{
    const char *family = t->run->backend->family;
    const bool is_native = family && strcmp(family, "native") == 0;
    for (EACH_PAIR(at, inter)) {
        const double complex want = pair_from_output(half, at.row, at.i);
        pair_require(t, &at, want, is_native ? 0.0 : 2 * ROTATION_ERROR * cabs(want),
                     "interleaved, and by half");
    }
}

/* ---- Channels past rotary_dim ---- */

/* Returns bits that a copy keeps and arithmetic may change: NaN with payloads, -0, a subnormal. */
static uint32_t tail_bits(int64_t r, int64_t c)
{
    static const uint32_t kinds[] = { 0x7fc12345u, 0xffa00001u, 0x80000000u,
                                      0x00000001u, 0x7f812345u, 0xff800000u };
    return kinds[(r + c) % 6];
}

static void edit_tail(struct call *call, const void *user)
{
    (void)user;
    for (EACH_TENSOR_ELEMENT(at, call_x(call)))
        if (at.column >= call->problem.rotary_dim)
            memcpy(storage_row_f32(at.in, at.row) + at.column,
                   &(uint32_t){ tail_bits(at.row, at.column) }, sizeof(float));
}

static void check_partial(struct tally *t, const struct call *y)
{
    for (EACH_ELEMENT(at, y))
        require(t,
                at.column < y->problem.rotary_dim ||
                    memcmp(&at.values[at.column], &(uint32_t){ tail_bits(at.row, at.column) },
                           sizeof(float)) == 0,
                "the channels past rotary_dim are not a copy of the input's bits");
}

/* ---- Norms of heads ---- */

/* Less than half an ulp of the mean of x^2, which is at least 2^-8, and 2^-28 at the smallest scale. */
static const float negligible_epsilon = 0x1p-64f;

static void edit_scaled(struct call *call, const void *scale)
{
    for (EACH_TENSOR_ELEMENT(at, call_x(call)))
        tensor_element_put(at, tensor_element_get(at) * *(const float *)scale);
    call->args.rope_qk_norm.epsilon = negligible_epsilon;
}

static void property_scale(struct tally *t, const struct problem *p)
{
    static const float scales[] = { 0x1p-10f, 0x1p1f, 0x1p7f, 0x1p40f };
    const struct call *want = tally_run(t, p, edit_scaled, &plus_one);
    for (size_t s = 0; want && s < sizeof scales / sizeof *scales; s++) {
        const struct call *got = tally_run(t, p, edit_scaled, &scales[s]);
        if (got)
            require_same_outputs(t, got, want, "x times a power of two");
    }
}

static void edit_stride(struct call *call, const void *user)
{
    (void)user;
    call->args.rope_qk_norm.weight.stride[0] = 0;
}

static void edit_rank(struct call *call, const void *user)
{
    struct posenc_const_tensor *weight = &call->args.rope_qk_norm.weight;
    (void)user;
    *weight = posenc_const_tensor_strided(POSENC_DTYPE_F32, weight->data, 1,
                                          (const int64_t[]){ call->problem.dim }, NULL);
}

const struct property properties_rope[] = {
    { "relative", .check_output = check_relative, .problems = "rotations",
      .edit = edit_same_tokens },
    { "compose", .compare_outputs = compare_compose, .twin = "position_kind=offset" },
    { "transpose-is-gradient", .compare_outputs = compare_gradient, .problems = "gradients",
      .edit = edit_any_angles, .twin = "transpose=true seed=77" },
    { "pairings-agree", .compare_outputs = compare_pairings, .twin = "rope_half",
      .twin_edit = edit_pairing },
    { "partial-copies-tail", .check_output = check_partial, .edit = edit_tail },
    { "scale", .check_problem = property_scale, .problems = "norms", .by_bits = true },
    { "one-weight", .twin = "", .problems = "norms", .edit = edit_stride,
      .twin_edit = edit_rank },
    { 0 },
};
