/*
 * Angles at positions with a fraction (times), in numerics mode exact.
 *
 * A time is m / 2^k with a whole m < 2^24. Its phase is (m * frequency) / 2^k, in integers: the frequency has 14 bits
 * of whole turns and a fraction of 128 bits, so the product has 166 bits. The fraction of the phase keeps 128 bits, so
 * that an angle close to a quarter turn keeps its relative accuracy. Very small angles are computed as a product in
 * f64.
 */
#include "freqs.h"

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

uint32_t posenc_whole_turns(struct dd omega, struct turn turn)
{
    double turns = dd_div(omega, dd_scale(posenc_dd_pi, 2.0)).hi;
    return (uint32_t)floor(turns - (double)turn.hi * 0x1p-64 + 0.5);
}

/* Returns m times the frequency of pair i, divided by 2^k, modulo 1. */
static struct turn time_phase(const struct posenc_freqs *freqs, int64_t i, uint32_t m, int k)
{
    u128 low = (u128)m * freqs->view.turn_lo[i];
    u128 high = (u128)m * freqs->view.turn_hi[i] + (uint64_t)(low >> 64);
    uint64_t limb[4] = { (uint64_t)low, (uint64_t)high,
                         (uint64_t)m * freqs->whole_turns[i] + (uint64_t)(high >> 64), 0 };

    for (; k >= 64; k -= 64) {
        limb[0] = limb[1];
        limb[1] = limb[2];
        limb[2] = 0;
    }
    for (int n = 0; k > 0 && n < 2; n++)
        limb[n] = limb[n] >> k | limb[n + 1] << (64 - k);
    return (struct turn){ limb[1], limb[0] };
}

void posenc_time_angles(const struct posenc_freqs *freqs, float time, int64_t i, int64_t n,
                        double *r, uint64_t *q)
{
    int exponent;
    uint32_t m = (uint32_t)ldexpf(frexpf(time, &exponent), 24);

    for (int64_t k = 0; k < n; k++) {
        double angle = (double)time * freqs->view.omega[i + k];
        q[k] = 0;
        r[k] = angle;
        if (angle < 0x1p-30)
            continue;
        struct turn phase = time_phase(freqs, i + k, m, 24 - exponent);
        q[k] = (phase.hi + (UINT64_C(1) << 61)) >> 62;
        s128 rest = (s128)(((u128)(phase.hi - (q[k] << 62)) << 64) | phase.lo);
        r[k] = (double)rest * (0x1.921fb54442d18p+2 * 0x1p-128); /* 2 pi 2^-128 */
        /* With a whole wavelength, a remainder this small is only the rounding of the frequency: the angle is a
         * multiple of a quarter turn. A tiny r of this sign makes the zero positive. */
        if (freqs->whole && fabs(r[k]) < 0x1p-90)
            r[k] = q[k] % 4 == 1 || q[k] % 4 == 2 ? -0x1p-200 : 0x1p-200;
    }
}
