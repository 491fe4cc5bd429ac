/*
 * Laws of the rotations.  A rotation of a pair of norm |x| given cos and sin has components
 * within
 *
 *     2 ulp of the larger product (pair_ulp 2, the unfused bound)    <= 2 2^-23 |x|
 *     and, cos and sin being correctly rounded, 2^-25 (|x0| + |x1|)  <= 2^-24.5 |x|
 *
 * of the real rotation by the row's angle; their sum is below D |x|, D = 2^-21.5.  The vector
 * of two components is then within sqrt(2) D |x|, which every bound below starts from.
 *
 * Su et al. 2104.09864: q_m . k_n depends on m - n alone.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/inputs.h"
#include "laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define D     0x1.6a09e667f3bcdp-22 /* 2^-21.5 */
#define ROOT2 1.4142135623730951

static struct problem rope_problem(enum posenc_kernel kernel, int64_t rotary_dim, int64_t tail,
                                   int64_t first, int64_t tokens)
{
    struct problem p = problem_default(kernel);
    p.rotary_dim = rotary_dim;
    p.dim = rotary_dim + tail;
    p.first = first;
    p.tokens = tokens;
    p.rows = 64;
    return p;
}

struct place {
    int64_t a, b;
};

static struct place place_of(const struct problem *p, int64_t i)
{
    int64_t half = p->rotary_dim / 2;
    return p->kernel == POSENC_KERNEL_rope_half ? (struct place){ i, i + half }
                                                : (struct place){ 2 * i, 2 * i + 1 };
}

static double pair_norm(const struct problem *p, const float *row, int64_t i)
{
    struct place at = place_of(p, i);
    return hypot((double)row[at.a], (double)row[at.b]);
}

static const int64_t rotary_dims[] = { 2, 6, 64, 130 };
enum { ROTARY_DIMS = sizeof rotary_dims / sizeof rotary_dims[0] };

/* ---- q . k depends on m - n ---- */

static double dot_pairs(const struct problem *p, const float *q, const float *k, double *mass)
{
    double sum = 0.0;
    *mass = 0.0;
    for (int64_t i = 0; i < p->rotary_dim / 2; i++) {
        struct place at = place_of(p, i);
        sum += (double)q[at.a] * (double)k[at.a] + (double)q[at.b] * (double)k[at.b];
        *mass += pair_norm(p, q, i) * pair_norm(p, k, i);
    }
    return sum;
}

/* Every token as the first, head by head. */
static void edit_same_tokens(struct call *call, const void *user)
{
    (void)user;
    struct posenc_tensor *x = call_x(call);
    int64_t heads = call->problem.heads;
    for (int64_t r = heads, n = tensor_rows(x); r < n; r++)
        memcpy(tensor_row(x, r), tensor_row(x, r % heads),
               (size_t)call->problem.dim * sizeof(float));
}

/* Head 0 is q, head 1 is k, the same at every token.  Each product of pairs is within
 * 2 sqrt(2) D |q_i| |k_i| (+ D^2) of the real one, and two are compared:
 * 6 D sum |q_i| |k_i|. */
static void law_relative(struct tally *t, enum posenc_kernel kernel)
{
    for (int d = 0; d < ROTARY_DIMS; d++) {
        struct problem p = rope_problem(kernel, rotary_dims[d], 0, 0, 24);
        struct copy y;
        p.heads = 2;
        if (run_problem(t, &p, edit_same_tokens, NULL, &y))
            for (int64_t m = 0; m < p.tokens; m++)
                for (int64_t n = 0; n < p.tokens; n++) {
                    int64_t m0 = m > n ? m - n : 0, n0 = m > n ? 0 : n - m;
                    double mass, mass0;
                    double got = dot_pairs(&p, copy_row(&y, 0, 2 * m),
                                           copy_row(&y, 0, 2 * n + 1), &mass);
                    double want = dot_pairs(&p, copy_row(&y, 0, 2 * m0),
                                            copy_row(&y, 0, 2 * n0 + 1), &mass0);
                    require_within(t, got, want, 6 * D * fmax(mass, mass0),
                                   "q(m) . k(n) and q(m-n) . k(0)");
                }
        copy_free(&y);
        t->problem = NULL;
    }
}

/* ---- Norms ---- */

static void law_norms(struct tally *t, enum posenc_kernel kernel)
{
    for (int d = 0; d < ROTARY_DIMS; d++) {
        struct problem p = rope_problem(kernel, rotary_dims[d], 3, 1, 40);
        struct copy y = { .n = 0 };
        struct call pristine;
        if (run_problem(t, &p, NULL, NULL, &y) &&
            call_create(&pristine, &p, &memory_plain) == POSENC_OK) {
            for (int64_t r = 0; r < y.rows[0]; r++)
                for (int64_t i = 0; i < p.rotary_dim / 2; i++) {
                    double want = pair_norm(&p, pristine.x + r * p.dim, i);
                    require_within(t, pair_norm(&p, copy_row(&y, 0, r), i), want,
                                   ROOT2 * D * want, "norm of a pair");
                }
            call_destroy(&pristine);
        }
        copy_free(&y);
        t->problem = NULL;
    }
}

/* ---- Composition and transpose ---- */

/* The rows of x are those of a copy. */
static void edit_take(struct call *call, const void *user)
{
    const struct copy *from = user;
    for (int64_t r = 0; r < from->rows[0]; r++)
        memcpy(tensor_row(call_x(call), r), copy_row(from, 0, r),
               (size_t)from->width[0] * sizeof(float));
}

/* Components of y within `bound` of z's, relative to the norm of z's pair. */
static void require_near_pairs(struct tally *t, const struct problem *p, const float *y,
                               const float *z, double bound, const char *what)
{
    for (int64_t i = 0; i < p->rotary_dim / 2; i++) {
        struct place at = place_of(p, i);
        double norm = pair_norm(p, z, i);
        require_within(t, (double)y[at.a], (double)z[at.a], bound * norm, what);
        require_within(t, (double)y[at.b], (double)z[at.b], bound * norm, what);
    }
}

/* Token t at position a + t is rotated again by position b + t, against once by a + b + 2t.
 * Two rotations are within D + sqrt(2) D of the real one per component, the single one within
 * D: 4 D. */
static void law_compose(struct tally *t, enum posenc_kernel kernel)
{
    static const int64_t first[][2] = { { 0, 0 }, { 5, 7 }, { 1, 30 } };
    for (int d = 0; d < ROTARY_DIMS; d++)
        for (int k = 0; k < 3; k++) {
            struct problem p = rope_problem(kernel, rotary_dims[d], 0, first[k][0], 9), q = p,
                           both = p;
            int64_t sums[9];
            for (int64_t i = 0; i < 9; i++)
                sums[i] = first[k][0] + first[k][1] + 2 * i;
            q.first = first[k][1];
            both.position_kind = POSENC_POSITIONS_I64;
            both.positions = sums;
            struct copy once = { .n = 0 }, twice = { .n = 0 }, want = { .n = 0 };
            if (run_problem(t, &p, NULL, NULL, &once) &&
                run_problem(t, &q, edit_take, &once, &twice) &&
                run_problem(t, &both, NULL, NULL, &want))
                for (int64_t r = 0; r < want.rows[0]; r++)
                    require_near_pairs(t, &p, copy_row(&twice, 0, r), copy_row(&want, 0, r),
                                       4 * D, "R(a) R(b) x");
            copy_free(&once);
            copy_free(&twice);
            copy_free(&want);
            t->problem = NULL;
        }
}

/* Forward, then transpose: two rotations against the input itself, D + sqrt(2) D. */
static void law_transpose(struct tally *t, enum posenc_kernel kernel)
{
    for (int d = 0; d < ROTARY_DIMS; d++) {
        struct problem p = rope_problem(kernel, rotary_dims[d], 5, 3, 30), back = p;
        struct copy y = { .n = 0 }, x = { .n = 0 };
        struct call pristine;
        back.transpose = true;
        if (run_problem(t, &p, NULL, NULL, &y) && run_problem(t, &back, edit_take, &y, &x) &&
            call_create(&pristine, &p, &memory_plain) == POSENC_OK) {
            for (int64_t r = 0; r < x.rows[0]; r++) {
                const float *want = pristine.x + r * p.dim;
                require_near_pairs(t, &p, copy_row(&x, 0, r), want, 3 * D,
                                   "transpose of the rotated");
                require_same_bits(t, copy_row(&x, 0, r) + p.rotary_dim, want + p.rotary_dim, 5,
                                  "tail");
            }
            call_destroy(&pristine);
        }
        copy_free(&y);
        copy_free(&x);
        t->problem = NULL;
    }
}

/* ---- The gradient ---- */

/* Cosines and sines of no angle, about 1 in magnitude: then the transpose is no inverse. */
static void edit_any_angles(struct call *call, const void *user)
{
    (void)user;
    for (int64_t r = 0; r < call->problem.rows; r++)
        for (int64_t i = 0; i < call->problem.rotary_dim / 2; i++) {
            const uint64_t z = mix64((uint64_t)r, (uint64_t)i);
            tensor_row(owned(&call->args.rope.cos), r)[i] = 0.5f + (float)(z >> 40) * 0x1p-24f;
            tensor_row(owned(&call->args.rope.sin), r)[i] =
                (float)(z & 0xffffff) * 0x1p-24f - (z >> 32 & 1 ? 1.0f : 0.0f);
        }
}

/* The magnitudes that errors of both sides are relative to: for each pair of x, and of g. */
static double pair_mass(const struct problem *p, const float *x, const float *g)
{
    double mass = 0.0;
    for (int64_t i = 0; i < p->rotary_dim / 2; i++) {
        struct place at = place_of(p, i);
        const float *xs = x + p->rotary_offset, *gs = g + p->rotary_offset;
        mass += (fabs((double)xs[at.a]) + fabs((double)xs[at.b])) *
                (fabs((double)gs[at.a]) + fabs((double)gs[at.b]));
    }
    return mass;
}

/* <R x, g> = <x, R^T g>: R is linear in x and the transpose its gradient.  A component of
 * either side is within 2 ulp of the larger product, 2 2^-23 1.5 |x|; two of them meet each of
 * g. */
static void require_adjoint(struct tally *t, const struct problem *p, const struct copy *y,
                            const float *x, const struct copy *dx, const float *g)
{
    double forward = 0.0, backward = 0.0, mass = 0.0;
    for (int64_t i = 0; i < y->rows[0] * p->dim; i++) {
        forward += (double)y->data[0][i] * (double)g[i];
        backward += (double)x[i] * (double)dx->data[0][i];
    }
    for (int64_t r = 0; r < y->rows[0]; r++)
        mass += pair_mass(p, x + r * p->dim, g + r * p->dim);
    require_within(t, backward, forward, 6.0 * 0x1p-23 * mass, "<x, R^T g> and <R x, g>");
}

static void law_gradient(struct tally *t, enum posenc_kernel kernel)
{
    for (int d = 0; d < ROTARY_DIMS; d++) {
        struct problem p = rope_problem(kernel, rotary_dims[d], 5, 3, 30), back;
        struct copy y = { .n = 0 }, dx = { .n = 0 };
        struct call of_x, of_g;
        p.rotary_offset = d;
        back = p;
        back.transpose = true;
        back.seed = 77;
        if (run_problem(t, &p, edit_any_angles, NULL, &y) &&
            run_problem(t, &back, edit_any_angles, NULL, &dx) &&
            call_create(&of_x, &p, &memory_plain) == POSENC_OK) {
            if (call_create(&of_g, &back, &memory_plain) == POSENC_OK) {
                require_adjoint(t, &p, &y, of_x.x, &dx, of_g.x);
                call_destroy(&of_g);
            }
            call_destroy(&of_x);
        }
        copy_free(&y);
        copy_free(&dx);
        t->problem = NULL;
    }
}

/* ---- Known angles: the sense of the rotation ---- */

struct angle {
    float cosine, sine;
};

static void edit_angle(struct call *call, const void *user)
{
    const struct angle *a = user;
    for (int64_t r = 0; r < call->problem.rows; r++)
        for (int64_t i = 0; i < call->problem.rotary_dim / 2; i++) {
            tensor_row(owned(&call->args.rope.cos), r)[i] = a->cosine;
            tensor_row(owned(&call->args.rope.sin), r)[i] = a->sine;
        }
}

/* cos, sin = (1,0), (0,1), (-1,0), (0,-1): products are exact, so is the result; (x0, x1) a
 * quarter further is (-x1, x0). */
static void law_quarter_turns(struct tally *t, enum posenc_kernel kernel)
{
    static const struct angle quarters[4] = { { 1, 0 }, { 0, 1 }, { -1, 0 }, { 0, -1 } };
    for (int d = 0; d < ROTARY_DIMS; d++)
        for (int k = 0; k < 8; k++) {
            struct problem p = rope_problem(kernel, rotary_dims[d], d, 0, 3);
            struct copy y = { .n = 0 };
            struct call pristine;
            p.transpose = k >= 4;
            const struct angle *a = &quarters[k % 4];
            float sine = p.transpose ? -a->sine : a->sine;
            if (run_problem(t, &p, edit_angle, a, &y) &&
                call_create(&pristine, &p, &memory_plain) == POSENC_OK) {
                for (int64_t r = 0; r < y.rows[0]; r++)
                    for (int64_t i = 0; i < p.rotary_dim / 2; i++) {
                        struct place at = place_of(&p, i);
                        const float *x = pristine.x + r * p.dim, *got = copy_row(&y, 0, r);
                        float y0 = a->cosine * x[at.a] - sine * x[at.b],
                              y1 = a->cosine * x[at.b] + sine * x[at.a];
                        require(t, got[at.a] == y0 && got[at.b] == y1,
                                "pair %lld (%.9g, %.9g) by %d quarter turns is (%.9g, %.9g)",
                                (long long)i, (double)x[at.a], (double)x[at.b],
                                p.transpose ? -k % 4 : k % 4, (double)got[at.a],
                                (double)got[at.b]);
                    }
                call_destroy(&pristine);
            }
            copy_free(&y);
            t->problem = NULL;
        }
}

/* ---- Half and interleaved ---- */

/* Channels in the other pairing's order: i to 2i, i + half to 2i + 1. */
static void edit_interleave(struct call *call, const void *user)
{
    (void)user;
    int64_t half = call->problem.rotary_dim / 2;
    for (int64_t r = 0, n = tensor_rows(call_x(call)); r < n; r++) {
        float *x = tensor_row(call_x(call), r);
        const float *from = call->x + r * call->problem.dim;
        for (int64_t i = 0; i < half; i++) {
            x[2 * i] = from[i];
            x[2 * i + 1] = from[i + half];
        }
    }
}

/* The two are one rotation of permuted channels.  The template is written once for both, so
 * there the bits agree; a compiler that contracts each loop in its own way may differ by
 * 2 D. */
static void law_pairings(struct tally *t, enum posenc_kernel kernel)
{
    (void)kernel;
    bool bits = t->run->backend->family && strcmp(t->run->backend->family, "template") == 0;
    if (!law_needs(t, POSENC_KERNEL_rope_half))
        return;
    for (int d = 0; d < ROTARY_DIMS; d++) {
        struct problem half = rope_problem(POSENC_KERNEL_rope_half, rotary_dims[d], 3, 2, 17),
                       inter = half;
        struct copy a = { .n = 0 }, b = { .n = 0 };
        inter.kernel = POSENC_KERNEL_rope_interleaved;
        if (run_problem(t, &half, NULL, NULL, &a) &&
            run_problem(t, &inter, edit_interleave, NULL, &b))
            for (int64_t r = 0; r < a.rows[0]; r++)
                for (int64_t i = 0; i < rotary_dims[d] / 2; i++) {
                    const float *h = copy_row(&a, 0, r), *n = copy_row(&b, 0, r);
                    struct place at = place_of(&half, i);
                    double norm = pair_norm(&half, h, i);
                    bool ok =
                        bits ? bits_of(h[at.a]) == bits_of(n[2 * i]) &&
                                   bits_of(h[at.b]) == bits_of(n[2 * i + 1])
                             : fabs((double)h[at.a] - (double)n[2 * i]) <= 2 * D * norm &&
                                   fabs((double)h[at.b] - (double)n[2 * i + 1]) <= 2 * D * norm;
                    require(t, ok,
                            "pair %lld is (%.9g, %.9g) by half, (%.9g, %.9g) interleaved",
                            (long long)i, (double)h[at.a], (double)h[at.b], (double)n[2 * i],
                            (double)n[2 * i + 1]);
                }
        copy_free(&a);
        copy_free(&b);
        t->problem = NULL;
    }
}

/* ---- NaN ---- */

/* A NaN in a pair makes both of its results NaN, whatever cos and sin are; no other pair is
 * one. */
static void law_nan(struct tally *t, enum posenc_kernel kernel)
{
    for (int d = 0; d < ROTARY_DIMS; d++) {
        struct problem p = rope_problem(kernel, rotary_dims[d], 0, 0, 9);
        struct copy y = { .n = 0 };
        struct call pristine;
        p.special = true;
        if (run_problem(t, &p, NULL, NULL, &y) &&
            call_create(&pristine, &p, &memory_plain) == POSENC_OK) {
            for (int64_t r = 0; r < y.rows[0]; r++)
                for (int64_t i = 0; i < p.rotary_dim / 2; i++) {
                    struct place at = place_of(&p, i);
                    const float *x = pristine.x + r * p.dim, *got = copy_row(&y, 0, r);
                    bool in = isnan(x[at.a]) || isnan(x[at.b]),
                         finite = isfinite(x[at.a]) && isfinite(x[at.b]);
                    require(t, !in || (isnan(got[at.a]) && isnan(got[at.b])),
                            "the NaN of pair %lld is gone", (long long)i);
                    require(t, !finite || (isfinite(got[at.a]) && isfinite(got[at.b])),
                            "pair %lld was finite and is not", (long long)i);
                }
            call_destroy(&pristine);
        }
        copy_free(&y);
        t->problem = NULL;
    }
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_rope[] = {
    { "relative", law_relative, KERNELS(K(rope_half), K(rope_interleaved)) },
    { "norms", law_norms, KERNELS(K(rope_half), K(rope_interleaved)) },
    { "compose", law_compose, KERNELS(K(rope_half), K(rope_interleaved)) },
    { "transpose-undoes", law_transpose, KERNELS(K(rope_half), K(rope_interleaved)) },
    { "transpose-is-gradient", law_gradient, KERNELS(K(rope_half), K(rope_interleaved)) },
    { "quarter-turns", law_quarter_turns, KERNELS(K(rope_half), K(rope_interleaved)) },
    { "pairings-agree", law_pairings, KERNELS(K(rope_interleaved)) },
    { "nan-propagates", law_nan, KERNELS(K(rope_half), K(rope_interleaved)) },
};
const int n_laws_rope = sizeof laws_rope / sizeof laws_rope[0];
