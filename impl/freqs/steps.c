/*
 * The rotation tables of a plan: 2 cos omega, and cos and sin of (8 b + 3) omega and
 * (8 b + 4) omega for b in 0 ... 7, rounded correctly to f64.
 *
 *   cos(a + b) = cos a cos b - sin a sin b,   sin(a + b) = sin a cos b + cos a sin b
 *
 * One evaluation per pair; the others by these formulas in double-double, which lose nothing
 * unless a sum cancels. Then, as for the first, the phase itself is evaluated.
 */
#include "plan.h"

struct rotation {
    struct dd cosine, sine;
};

/* a + b, and whether more than ten bits cancelled. */
static struct dd checked_sum(struct dd a, struct dd b, bool *cancelled)
{
    struct dd sum = dd_add(a, b);
    *cancelled |= fabs(sum.hi) < 0x1p-10 * fabs(a.hi);
    return sum;
}

/* The rotation by `times` turns, whose summands are a and b. */
static struct rotation compose(struct rotation a, struct rotation b, struct turn turn,
                               uint32_t times)
{
    bool cancelled = false;
    struct rotation r;
    r.cosine =
        checked_sum(dd_mul(a.cosine, b.cosine), dd_neg(dd_mul(a.sine, b.sine)), &cancelled);
    r.sine = checked_sum(dd_mul(a.sine, b.cosine), dd_mul(a.cosine, b.sine), &cancelled);
    if (cancelled)
        posenc_dd_cossin(posenc_turn_times(turn, times), &r.cosine, &r.sine);
    return r;
}

/* Cos and sin of `row` positions and of 8, 16, ... more: two columns of a table, one behind the
 * other. */
static void fill(struct rotation first, uint32_t row, struct rotation group, struct turn turn,
                 int64_t stride, double *column)
{
    struct rotation r = first;
    for (int64_t b = 0; b < POSENC_GROUPS; b++, column += 4 * stride) {
        column[0] = r.cosine.hi;
        column[stride] = r.sine.hi;
        row += POSENC_GROUP;
        r = compose(r, group, turn, row);
    }
}

void posenc_fill_steps(struct posenc_freqs *freqs)
{
    for (int64_t i = 0; i < freqs->view.n_pairs; i++) {
        struct turn turn = { freqs->view.turn_hi[i], freqs->view.turn_lo[i] };
        struct rotation one, lower, upper, group;
        posenc_dd_cossin(turn, &one.cosine, &one.sine);
        lower = compose(compose(one, one, turn, 2), one, turn, 3);
        upper = compose(lower, one, turn, POSENC_GROUP / 2);
        group = compose(upper, upper, turn, POSENC_GROUP);
        freqs->twice_cos[i] = 2.0 * one.cosine.hi;
        fill(lower, POSENC_GROUP / 2 - 1, group, turn, freqs->stride, freqs->middle + i);
        fill(upper, POSENC_GROUP / 2, group, turn, freqs->stride,
             freqs->middle + 2 * freqs->stride + i);
    }
}
