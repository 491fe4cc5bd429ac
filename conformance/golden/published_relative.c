/*
 * Two checks of the generator: products of xPos rows depend on the distance alone, as
 * published; and the golden cases of sums depend on the order of summation, without which a
 * kernel that sums in another order would pass them.
 */
#include "published.h"

#include <math.h>
#include <string.h>

/* Of a query at m and a key at n: zeta^((m - n) / scale_base) cos((m - n) omega). */
static void xpos_product(const struct reference_plan *query, const struct reference_plan *key,
                         int64_t pair, int64_t m, int64_t n)
{
    const struct posenc_freqs_spec *spec = query->spec;
    const double d = (double)spec->dim, zeta = (2 * (double)pair + 0.4 * d) / (1.4 * d);
    double qs, qc, ks, kc;
    reference_sincos(query, pair, (double)m, 1, &qs, &qc);
    reference_sincos(key, pair, (double)n, 1, &ks, &kc);
    const double scale = pow(zeta, (double)(m - n) / spec->xpos_scale_base);
    const double angle = (double)(m - n) * mpfr_get_d(query->omega[pair], MPFR_RNDN);
    require_near((qc * kc + qs * ks) / scale, cos(angle), 1e-12, "product of xPos rows");
    require_near((qs * kc - qc * ks) / scale, sin(angle), 1e-12, "product of xPos rows");
}

static void check_xpos(void)
{
    struct posenc_freqs_spec queries = posenc_freqs_spec_init(), keys;
    struct reference_plan query, key;
    queries.dim = 64;
    queries.xpos_scale_base = 512;
    queries.xpos_centre = 1024;
    keys = queries;
    keys.xpos_inverse = true;
    reference_plan_init(&query, &queries);
    reference_plan_init(&key, &keys);
    for (int64_t pair = 0; pair < 32; pair++)
        for (int64_t m = 0; m < 2048; m += 500)
            xpos_product(&query, &key, pair, m, 3 * m % 2048);
    reference_plan_clear(&query);
    reference_plan_clear(&key);
}

/* ---- Order of sums ---- */

/* A sum of the inputs that `row` takes, from the last to the first. */
static double descending(const struct call *call, int64_t row, int64_t column)
{
    const struct problem *p = &call->problem;
    const int64_t width = call->outputs[0].width;
    const bool gradient = kernel_signature(p->kernel) == SIGNATURE_learned_grad;
    double sum = p->accumulate ? (double)call->table[row * width + column] : 0;
    if (gradient) {
        for (int64_t t = p->batch * p->tokens - 1; t >= 0; t--)
            if (problem_position(p, t / p->tokens, t % p->tokens) == row)
                sum = reference_add_f32(sum, (double)call->x[t * width + column]);
        return sum;
    }
    for (int64_t j = p->keys - 1; j >= 0; j--)
        if (reference_column(p, row % p->queries, j) == column)
            sum = reference_add_f32(sum, (double)call->x[row * p->keys + j]);
    return sum;
}

static void order_matters(const struct vector_case *c)
{
    struct call call;
    int64_t other = 0;
    if (call_create(&call, &c->problem, &memory_plain) != POSENC_OK)
        return;
    for (int64_t i = 0; i < c->rows[0] * c->width[0]; i++)
        other += descending(&call, i / c->width[0], i % c->width[0]) != c->want[0][i];
    require_that(other > 0, "a sum that depends on its order", c->id);
    call_destroy(&call);
}

void check_relative(const struct vectors *vectors)
{
    check_xpos();
    for (size_t i = 0; i < vectors->n; i++)
        if (strstr(vectors->cases[i].flags, "Order"))
            order_matters(&vectors->cases[i]);
}
