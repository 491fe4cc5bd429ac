/*
 * The rotation tables of a plan: cos and sin of c omega and 8 b omega for b, c in 0 ... 7,
 * rounded correctly to f64.
 *
 *   cos(a + b) = cos a cos b - sin a sin b,   sin(a + b) = sin a cos b + cos a sin b
 *
 * One evaluation per pair; the others by these formulas in double-double, which lose nothing
 * unless a sum cancels.  Then, as for the first, the phase itself is evaluated.
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

/* Rows 0 ... 7 of one table for pair i: angle = row * unit turns.  Returns row 8. */
static struct rotation fill(struct rotation first, struct turn turn, uint32_t unit,
                            int64_t stride, double *cosine, double *sine)
{
    struct rotation r = first;
    cosine[0] = 1.0;
    sine[0] = 0.0;
    for (uint32_t row = 1; row < POSENC_STEP; row++) {
        cosine[row * stride] = r.cosine.hi;
        sine[row * stride] = r.sine.hi;
        r = compose(r, first, turn, unit * (row + 1));
    }
    return r;
}

void posenc_fill_steps(struct posenc_freqs *freqs)
{
    for (int64_t i = 0; i < freqs->view.n_pairs; i++) {
        struct turn turn = { freqs->view.turn_hi[i], freqs->view.turn_lo[i] };
        struct rotation one;
        posenc_dd_cossin(turn, &one.cosine, &one.sine);
        struct rotation eight =
            fill(one, turn, 1, freqs->stride, freqs->step1_cos + i, freqs->step1_sin + i);
        fill(eight, turn, POSENC_STEP, freqs->stride, freqs->step8_cos + i,
             freqs->step8_sin + i);
    }
}
