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
 * Of a head of which a part turns, to the bit:
 *
 *   partial-copies-tail   channels past rotary_dim are a copy of the input's bits, NaN and all
 *   window-in-head        a window at an offset turns as the same channels do in a tensor of
 *                         their own; channels before it are copies
 *
 * Su et al. 2104.09864: q_m . k_n depends on m - n alone.
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <math.h>
#include <string.h>

#define D     0x1.6a09e667f3bcdp-22 /* 2^-21.5 */
#define ROOT2 1.4142135623730951

struct place {
    int64_t a, b;
};

static struct place place_of(const struct problem *p, int64_t i)
{
    int64_t half = p->rotary_dim / 2;
    return kernel_pairs_adjacent(p->kernel) ? (struct place){ 2 * i, 2 * i + 1 }
                                            : (struct place){ i, i + half };
}

static double pair_norm(const struct problem *p, const float *row, int64_t i)
{
    struct place at = place_of(p, i);
    return hypot((double)row[at.a], (double)row[at.b]);
}

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
    for (int64_t r = heads, n = storage_rows(x); r < n; r++)
        memcpy(tensor_row(x, r), tensor_row(x, r % heads),
               (size_t)call->problem.dim * sizeof(float));
}

/* Head 0 is q, head 1 is k, the same at every token.  Each product of pairs is within
 * 2 sqrt(2) D |q_i| |k_i| (+ D^2) of the real one, and two are compared:
 * 6 D sum |q_i| |k_i|. */
static void law_relative(struct tally *t, const struct problem *p)
{
    enum { COMPARED = 24 };
    const struct call *y = tally_run(t, p, edit_same_tokens, NULL);
    for (int64_t m = 0; y && m < COMPARED; m++)
        for (int64_t n = 0; n < COMPARED; n++) {
            int64_t m0 = m > n ? m - n : 0, n0 = m > n ? 0 : n - m;
            double mass, mass0;
            double got = dot_pairs(p, call_row(y, 0, p->heads * m),
                                   call_row(y, 0, p->heads * n + 1), &mass);
            double want = dot_pairs(p, call_row(y, 0, p->heads * m0),
                                    call_row(y, 0, p->heads * n0 + 1), &mass0);
            require_within(t, got, want, 6 * D * fmax(mass, mass0),
                           "q(m) . k(n) and q(m-n) . k(0)");
        }
}

/* ---- Norms ---- */

static void law_norms(struct tally *t, const struct problem *p)
{
    const struct call *y = tally_run(t, p, NULL, NULL);
    for (int64_t r = 0; y && r < y->outputs[0].rows; r++)
        for (int64_t i = 0; i < p->rotary_dim / 2; i++) {
            double want = pair_norm(p, y->x + r * p->dim, i);
            require_within(t, pair_norm(p, call_row(y, 0, r), i), want, ROOT2 * D * want,
                           "norm of a pair");
        }
}

/* ---- Composition and transpose ---- */

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
static void law_compose(struct tally *t, const struct problem *of)
{
    static const int64_t first[][2] = { { 0, 0 }, { 5, 7 }, { 1, 30 } };
    for (int k = 0; k < 3; k++) {
        struct problem p = *of, q, both;
        int64_t sums[9];
        for (int64_t i = 0; i < 9; i++)
            sums[i] = first[k][0] + first[k][1] + 2 * i;
        p.tokens = 9;
        q = both = p;
        p.first = first[k][0];
        q.first = first[k][1];
        both.position_kind = POSENC_POSITIONS_I64;
        both.positions = sums;
        const struct call *once = tally_run(t, &p, NULL, NULL),
                          *twice = once ? tally_run(t, &q, edit_take, once) : NULL,
                          *want = tally_run(t, &both, NULL, NULL);
        for (int64_t r = 0; twice && want && r < want->outputs[0].rows; r++)
            require_near_pairs(t, of, call_row(twice, 0, r), call_row(want, 0, r), 4 * D,
                               "R(a) R(b) x");
    }
}

/* Forward, then transpose: two rotations against the input itself, D + sqrt(2) D. */
static void law_transpose(struct tally *t, const struct problem *p)
{
    struct problem back = *p;
    back.transpose = true;
    const struct call *y = tally_run(t, p, NULL, NULL),
                      *x = y ? tally_run(t, &back, edit_take, y) : NULL;
    for (int64_t r = 0; x && r < x->outputs[0].rows; r++) {
        const float *want = y->x + r * p->dim, *got = call_row(x, 0, r);
        require_near_pairs(t, p, got, want, 3 * D, "transpose of the rotated");
        require_same_bits(t, got + p->rotary_dim, want + p->rotary_dim, p->dim - p->rotary_dim,
                          "tail");
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
static void law_gradient(struct tally *t, const struct problem *of)
{
    struct problem p = *of, back;
    p.rotary_offset = (p.dim - p.rotary_dim) / 2;
    back = p;
    back.transpose = true;
    back.seed = 77;
    const struct call *y = tally_run(t, &p, edit_any_angles, NULL),
                      *dx = tally_run(t, &back, edit_any_angles, NULL);
    double forward = 0.0, backward = 0.0, mass = 0.0;
    if (!y || !dx)
        return;
    for (int64_t r = 0; r < y->outputs[0].rows; r++) {
        const float *x = y->x + r * p.dim, *g = dx->x + r * p.dim;
        for (int64_t c = 0; c < p.dim; c++) {
            forward += (double)call_row(y, 0, r)[c] * (double)g[c];
            backward += (double)x[c] * (double)call_row(dx, 0, r)[c];
        }
        mass += pair_mass(&p, x, g);
    }
    require_within(t, backward, forward, 6.0 * 0x1p-23 * mass, "<x, R^T g> and <R x, g>");
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
static void law_quarter_turns(struct tally *t, const struct problem *of)
{
    static const struct angle quarters[4] = { { 1, 0 }, { 0, 1 }, { -1, 0 }, { 0, -1 } };
    for (int k = 0; k < 8; k++) {
        struct problem p = *of;
        p.transpose = k >= 4;
        const struct angle *a = &quarters[k % 4];
        const float sine = p.transpose ? -a->sine : a->sine;
        const struct call *y = tally_run(t, &p, edit_angle, a);
        for (int64_t r = 0; y && r < y->outputs[0].rows; r++)
            for (int64_t i = 0; i < p.rotary_dim / 2; i++) {
                const struct place at = place_of(&p, i);
                const float *x = y->x + r * p.dim, *got = call_row(y, 0, r);
                const float y0 = a->cosine * x[at.a] - sine * x[at.b],
                            y1 = a->cosine * x[at.b] + sine * x[at.a];
                require(t, got[at.a] == y0 && got[at.b] == y1,
                        "pair %lld (%.9g, %.9g) by %d quarter turns is (%.9g, %.9g)",
                        (long long)i, (double)x[at.a], (double)x[at.b],
                        p.transpose ? -k % 4 : k % 4, (double)got[at.a], (double)got[at.b]);
            }
    }
}

/* ---- Half and interleaved ---- */

/* Channels in the other pairing's order: i to 2i, i + half to 2i + 1. */
static void edit_interleave(struct call *call, const void *user)
{
    (void)user;
    int64_t half = call->problem.rotary_dim / 2;
    for (int64_t r = 0, n = storage_rows(call_x(call)); r < n; r++) {
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
static void law_pairings(struct tally *t, const struct problem *inter)
{
    const char *family = t->run->backend->family;
    const bool bits = family && strcmp(family, "template") == 0;
    struct problem half = *inter;
    half.kernel = POSENC_KERNEL_rope_half;
    if (!law_needs(t, half.kernel))
        return;
    const struct call *a = tally_run(t, &half, NULL, NULL),
                      *b = tally_run(t, inter, edit_interleave, NULL);
    for (int64_t r = 0; a && b && r < a->outputs[0].rows; r++)
        for (int64_t i = 0; i < half.rotary_dim / 2; i++) {
            const float *h = call_row(a, 0, r), *n = call_row(b, 0, r) + 2 * i;
            const struct place at = place_of(&half, i);
            const double most = 2 * D * pair_norm(&half, h, i);
            const bool ok =
                bits ? bits_of(h[at.a]) == bits_of(n[0]) && bits_of(h[at.b]) == bits_of(n[1])
                     : fabs((double)h[at.a] - (double)n[0]) <= most &&
                           fabs((double)h[at.b] - (double)n[1]) <= most;
            require(t, ok, "pair %lld is (%.9g, %.9g) by half, (%.9g, %.9g) interleaved",
                    (long long)i, (double)h[at.a], (double)h[at.b], (double)n[0], (double)n[1]);
        }
}

/* ---- NaN ---- */

/* A NaN in a pair makes both of its results NaN, whatever cos and sin are; no other pair is
 * one. */
static void law_nan(struct tally *t, const struct problem *of)
{
    struct problem p = *of;
    p.special = true;
    const struct call *y = tally_run(t, &p, NULL, NULL);
    for (int64_t r = 0; y && r < y->outputs[0].rows; r++)
        for (int64_t i = 0; i < p.rotary_dim / 2; i++) {
            struct place at = place_of(&p, i);
            const float *x = y->x + r * p.dim, *got = call_row(y, 0, r);
            bool in = isnan(x[at.a]) || isnan(x[at.b]),
                 finite = isfinite(x[at.a]) && isfinite(x[at.b]);
            require(t, !in || (isnan(got[at.a]) && isnan(got[at.b])),
                    "the NaN of pair %lld is gone", (long long)i);
            require(t, !finite || (isfinite(got[at.a]) && isfinite(got[at.b])),
                    "pair %lld was finite and is not", (long long)i);
        }
}

/* ---- Channels past those that turn ---- */

/* Quiet and signalling NaN with payloads, subnormals, negative zero: a copy keeps them. */
static uint32_t tail_bits(int64_t r, int64_t c)
{
    static const uint32_t kinds[] = { 0x7fc12345u, 0xffa00001u, 0x80000000u,
                                      0x00000001u, 0x7f812345u, 0xff800000u };
    return kinds[(r + c) % 6];
}

static void edit_tail(struct call *call, const void *user)
{
    (void)user;
    const struct posenc_tensor *x = call_x(call);
    for (int64_t r = 0, n = storage_rows(x); r < n; r++)
        for (int64_t c = call->problem.rotary_dim; c < call->problem.dim; c++)
            memcpy(tensor_row(x, r) + c, &(uint32_t){ tail_bits(r, c) }, sizeof(float));
}

static void law_partial(struct tally *t, const struct problem *of)
{
    static const int64_t tails[] = { 1, 2, 3, 8, 16, 17, 40 };
    for (int k = 0; k < 14; k++) {
        struct problem p = *of;
        p.dim = p.rotary_dim + tails[k % 7];
        p.tokens = 3;
        p.in_place = k >= 7;
        const struct call *y = tally_run(t, &p, edit_tail, NULL);
        for (int64_t r = 0; y && r < y->outputs[0].rows; r++)
            for (int64_t c = p.rotary_dim; c < p.dim; c++)
                require(t,
                        memcmp(call_row(y, 0, r) + c, &(uint32_t){ tail_bits(r, c) },
                               sizeof(float)) == 0,
                        "the channels past rotary_dim are not a copy of the input's bits");
    }
}

/* ---- A window in the head ---- */

/* The channels from the offset on are a tensor of their own. */
static void edit_slice(struct call *call, const void *user)
{
    const int64_t from = *(const int64_t *)user;
    struct posenc_tensor *const tensors[] = { call_x(call), call_out(call) };
    for (int k = 0; k < 2; k++) {
        tensors[k]->data = (float *)tensors[k]->data + from;
        tensors[k]->shape[tensors[k]->rank - 1] -= from;
    }
    call->args.rope.rotary_offset = 0;
}

static void law_window(struct tally *t, const struct problem *of)
{
    static const int64_t offsets[] = { 1, 7, 64 };
    for (int k = 0; k < 6; k++) {
        const int64_t from = offsets[k % 3];
        struct problem p = *of;
        p.rotary_offset = from;
        p.dim = p.rotary_dim + from + 3;
        p.tokens = 5;
        p.transpose = k >= 3;
        p.in_place = k % 2;
        const struct call *got = tally_run(t, &p, NULL, NULL),
                          *want = tally_run(t, &p, edit_slice, &from);
        for (int64_t r = 0; got && want && r < got->outputs[0].rows; r++) {
            const float *row = call_row(got, 0, r);
            require_same_bits(t, row, got->x + r * p.dim, from, "channels before the window");
            require_same_bits(t, row + from, call_row(want, 0, r) + from, p.dim - from,
                              "the window, and the same channels as a tensor");
        }
    }
}

const struct law laws_rope[] = {
    LAW("relative", law_relative, .problems = "rotations"),
    LAW("norms", law_norms, .problems = "rotations"),
    LAW("compose", law_compose, .problems = "rotations"),
    LAW("transpose-undoes", law_transpose, .problems = "rotations"),
    LAW("transpose-is-gradient", law_gradient, .problems = "rotations"),
    LAW("quarter-turns", law_quarter_turns, .problems = "rotations"),
    LAW("pairings-agree", law_pairings),
    LAW("nan-propagates", law_nan, .problems = "rotations"),
    LAW("partial-copies-tail", law_partial, .problems = "rotations"),
    LAW("window-in-head", law_window, .problems = "rotations"),
    { 0 },
};
