/*
 * The rotation tables of frequencies (`middle` and `twice_cos` of struct posenc_freqs): 2 cos omega, and cos and sin of
 * (8 b + 3) omega and (8 b + 4) omega for b = 0 ... 7, correctly rounded to f64.
 *
 *   cos(a + b) = cos a cos b - sin a sin b,   sin(a + b) = sin a cos b + cos a sin b
 *
 * Only cos omega and sin omega are evaluated from their phase; these formulas in double-double give the others. If a
 * sum cancels, that value is evaluated from its phase, too.
 */
#include "freqs.h"

struct dd_rotation {
    struct dd cosine, sine;
};

/* Returns a + b, and sets *cancelled if more than ten bits cancel. */
static struct dd checked_sum(struct dd a, struct dd b, bool *cancelled)
{
    struct dd sum = dd_add(a, b);
    *cancelled |= fabs(sum.hi) < 0x1p-10 * fabs(a.hi);
    return sum;
}

/* Returns the product of two rotations, which is that by `times` positions. */
static struct dd_rotation compose(struct dd_rotation a, struct dd_rotation b, struct turn turn,
                                  uint32_t times)
{
    bool cancelled = false;
    struct dd_rotation r;
    r.cosine =
        checked_sum(dd_mul(a.cosine, b.cosine), dd_neg(dd_mul(a.sine, b.sine)), &cancelled);
    r.sine = checked_sum(dd_mul(a.sine, b.cosine), dd_mul(a.cosine, b.sine), &cancelled);
    if (cancelled)
        posenc_dd_cossin(posenc_turn_times(turn, times), &r.cosine, &r.sine);
    return r;
}

/* Fills one pair of a row of each group: cos and sin of `row`, row + 8, row + 16, ... positions. */
static void fill_groups(struct dd_rotation first, uint32_t row, struct dd_rotation group,
                        struct turn turn, int64_t stride, double *middle)
{
    struct dd_rotation r = first;
    for (int64_t b = 0; b < POSENC_GROUPS; b++, middle += 4 * stride) {
        middle[0] = r.cosine.hi;
        middle[stride] = r.sine.hi;
        row += POSENC_GROUP;
        r = compose(r, group, turn, row);
    }
}

void posenc_freqs_fill_rotations(struct posenc_freqs *freqs)
{
    for (int64_t i = 0; i < freqs->view.n_pairs; i++) {
        struct turn turn = { freqs->view.turn_hi[i], freqs->view.turn_lo[i] };
        struct dd_rotation one, lower, upper, group;
        posenc_dd_cossin(turn, &one.cosine, &one.sine);
        lower = compose(compose(one, one, turn, 2), one, turn, 3);
        upper = compose(lower, one, turn, POSENC_GROUP / 2);
        group = compose(upper, upper, turn, POSENC_GROUP);
        freqs->twice_cos[i] = 2.0 * one.cosine.hi;
        fill_groups(lower, POSENC_GROUP / 2 - 1, group, turn, freqs->stride, freqs->middle + i);
        fill_groups(upper, POSENC_GROUP / 2, group, turn, freqs->stride,
                    freqs->middle + 2 * freqs->stride + i);
    }
}
