/*
 * Sums, learned_grad and relative_sum, as promised: in f32, in the order of the tokens or keys,
 * from +0 or what is held on.
 */
#include "mistake.h"

#include "conformance/problem/storage.h"

/* Term k of element c of row r; NULL where that element does not get it. */
static const float *term_of(const struct entered *e, int64_t r, int64_t c, int64_t k)
{
    const struct posenc_tensor *x = e->parts.x;
    if (kernel_on_scores(e->kernel)) /* of a query: what it has for keys at a distance */
        return e->args.relative_sum.index[r % x->shape[2] - k + x->shape[3] - 1] == c
                   ? (const float *)storage_row(x, r) + k
                   : NULL;
    const int64_t b = k / x->shape[1], t = k % x->shape[1];
    return (int64_t)position_on(e->parts.positions, b, t, 0) == r ? row_at(x, b, t, 0) + c
                                                                  : NULL;
}

static float halves(const float *terms, int64_t n)
{
    return n == 0   ? 0.0f
           : n == 1 ? terms[0]
                    : halves(terms, n / 2) + halves(terms + n / 2, n - n / 2);
}

static float sum_of(const struct entered *e, const float *terms, int64_t n, float held)
{
    const bool accumulate = !kernel_on_scores(e->kernel) && e->args.learned_grad.accumulate;
    const bool onto = accumulate || SLIP(always_onto), apart = onto && SLIP(sum_apart);
    const float zero = SLIP(from_first_term) && n > 0 ? -0.0f : 0.0f; /* a lone -0 stays */
    double sum = (double)(onto && !apart ? held : zero);
    if (SLIP(empty_left_alone) && n == 0)
        return held;
    if (SLIP(last_term) && n > 0)
        return terms[n - 1];
    if (SLIP(pairwise_sum))
        return (float)sum + halves(terms, n);
    for (int64_t k = 0; k < n; k++) {
        sum += (double)terms[SLIP(descending_sum) ? n - 1 - k : k];
        if (!SLIP(f64_sum)) /* each addition is one of f32: f64 has more than twice its bits */
            sum = (double)storage_round(SLIP(sum_in_type_of_x) ? e->stored : POSENC_F32,
                                        (float)sum);
    }
    return apart ? held + (float)sum : (float)sum;
}

void enter_sum(struct entered *e)
{
    in_f32_open(e);
    const struct posenc_tensor *out = e->parts.out, *x = e->parts.x;
    const int64_t last = out->rank - 1;
    const int64_t most = kernel_on_scores(e->kernel) ? x->shape[3] : x->shape[0] * x->shape[1];
    float *terms = enter_keep(e, most, sizeof *terms);
    for (int64_t r = 0; r < storage_rows(out); r++)
        for (int64_t c = 0; c < out->shape[last]; c++) {
            float *sum = (float *)storage_row(out, r) + c;
            int64_t n = 0;
            for (int64_t k = 0; k < most; k++) {
                const float *term = term_of(e, r, c, k);
                if (term)
                    terms[n++] = *term;
                else if (n > 0 && SLIP(one_run))
                    break;
            }
            *sum = sum_of(e, terms, n, *sum);
        }
}
