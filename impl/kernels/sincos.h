/*
 * Cosines and sines of position * frequency, a vector of pairs at a time. Used by table.c through run.h.
 *
 * Numerics mode exact. A frequency is stored as a fraction of a turn with 128 binary digits (turn_hi, turn_lo).
 * Position * frequency mod 1 is then an integer product that wraps around: an exact range reduction at any position.
 *
 * Sines are cheap because few are evaluated. Positions form blocks of 64 (POSENC_BLOCK) and groups of 8 (POSENC_GROUP):
 *   anchor        cos and sin at the first position of a block, evaluated from the phase in f64
 *   middle rows   positions 3 and 4 of each group: the anchor, rotated by angles that the frequencies hold
 *   outer rows    the six others, outward from the middle by the recurrence below, v being cos or sin
 *     v(p + 1) = 2 cos(omega) v(p) - v(p - 1),   v(p - 1) = 2 cos(omega) v(p) - v(p + 1)
 * This costs one fused operation per value. Blocks and groups are those of absolute positions, so a value depends on
 * its position alone, and not on where a batch was cut.
 *
 * Error, for a scale of 1. An anchor and its rotation are off by at most 2^-51. k steps multiply that by at most 2 k +
 * 1, and add k (k + 1) / 2 times their own error, which is below 2^-52.4 including that of 2 cos(omega). After the
 * three steps the error is below 2^-47.6, which is below 0.1 ulp of f32 for results down to 2^-21, where an ulp is
 * 2^-44. Smaller results, next to a zero, are evaluated from the phase itself (small_sine).
 *
 * The f32 numerics modes differ in how they form an f32 angle. It is reduced by pi/2, in two f64 parts with fma,
 * evaluated in f64 and rounded once.
 */
#ifndef POSENC_KERNELS_SINCOS_H
#define POSENC_KERNELS_SINCOS_H

#include "kernel.h"

/* Returns cos and sin of r, |r| <= pi/4 (1 + 2^-40), by the Taylor series with coefficients 1/k! rounded to f64.
 * The first term that is left out is below 2^-56 of the result. */
SIMD_INLINE void sincos_reduced(vd r, vd *cosine, vd *sine)
{
    vd z = vd_mul(r, r);
    vd s = vd_set1(1.0 / 355687428096000.0), c = vd_set1(1.0 / 20922789888000.0); /* 17!, 16! */

    s = vd_fma(s, z, vd_set1(-1.0 / 1307674368000.0));
    c = vd_fma(c, z, vd_set1(-1.0 / 87178291200.0));
    s = vd_fma(s, z, vd_set1(1.0 / 6227020800.0));
    c = vd_fma(c, z, vd_set1(1.0 / 479001600.0));
    s = vd_fma(s, z, vd_set1(-1.0 / 39916800.0));
    c = vd_fma(c, z, vd_set1(-1.0 / 3628800.0));
    s = vd_fma(s, z, vd_set1(1.0 / 362880.0));
    c = vd_fma(c, z, vd_set1(1.0 / 40320.0));
    s = vd_fma(s, z, vd_set1(-1.0 / 5040.0));
    c = vd_fma(c, z, vd_set1(-1.0 / 720.0));
    s = vd_fma(s, z, vd_set1(1.0 / 120.0));
    c = vd_fma(c, z, vd_set1(1.0 / 24.0));
    s = vd_fma(s, z, vd_set1(-1.0 / 6.0));
    *sine = vd_fma(vd_mul(r, z), s, r);
    *cosine = vd_fma(vd_mul(z, z), c, vd_fma(vd_set1(-0.5), z, vd_set1(1.0)));
}

/* Return cos and sin of r + q pi/2 from those of r, in f64 or already rounded. Bit 0 of q swaps them, the cosine
 * becoming the negative sine; bit 1 flips both signs. */
SIMD_INLINE void vd_quadrant(vq q, vd c, vd s, vd *cosine, vd *sine)
{
    *cosine = vd_flip_bit1(vd_select_bit0(q, vd_mul(s, vd_set1(-1.0)), c), q);
    *sine = vd_flip_bit1(vd_select_bit0(q, c, s), q);
}

SIMD_INLINE void vf_quadrant(vq q, vf c, vf s, vf *cosine, vf *sine)
{
    *cosine = vf_flip_bit1(vf_select_bit0(q, vf_mul(s, vf_set1(-1.0f)), c), q);
    *sine = vf_flip_bit1(vf_select_bit0(q, c, s), q);
}

/* Reduces the phase of position * (pairs i, i + 1, ...). Returns the rest in radians, with the nearest quarter turn
 * in q. The rest has 96 bits before it is rounded to f64, so that a small angle keeps its relative accuracy. */
SIMD_INLINE vd phase_reduced(const struct posenc_freqs *freqs, uint32_t position, int64_t i,
                             vq *q)
{
    vq hi = vq_load(freqs->view.turn_hi + i), lo = vq_load(freqs->view.turn_lo + i);
    vq p = vq_set1(position);
    vq carry = vq_add(vq_mul32(p, vq_shr(lo, 32)), vq_shr(vq_mul32(p, lo), 32));
    vq upper = vq_shl(vq_mul32(p, vq_shr(hi, 32)), 32);
    vq phase = vq_add(vq_add(vq_mul32(p, hi), upper), vq_shr(carry, 32));

    *q = vq_shr(vq_add(phase, vq_set1(UINT64_C(1) << 61)), 62);
    vd rest = vd_from_i64(vq_sub(phase, vq_shl(*q, 62)));
    rest = vd_fma(vd_from_u32(vq_shr(vq_shl(carry, 32), 32)), vd_set1(0x1p-32), rest);
    return vd_mul(rest, vd_set1(0x1.921fb54442d18p+2 * 0x1p-64)); /* 2 pi 2^-64 */
}

/* Returns scale * sin(2 pi position turn), or the cosine, for a result next to zero: the exact distance of the
 * 128-bit phase to the nearest half turn, then sin x = x - x^3/6. The error is below 2^-86 of it for |x| < 2^-20. */
static inline float small_sine(uint64_t turn_hi, uint64_t turn_lo, uint32_t position,
                               bool cosine, double scale)
{
    uint64_t low = position * (turn_lo & 0xffffffffu);
    uint64_t mid = position * (turn_lo >> 32) + (low >> 32);
    uint64_t lo = mid << 32 | (low & 0xffffffffu);
    uint64_t hi = position * turn_hi + (mid >> 32) + (cosine ? UINT64_C(1) << 62 : 0);
    uint64_t half = (hi + (UINT64_C(1) << 62)) >> 63;
    bool negative = half;

    hi -= half << 63;
    if (hi >> 63) {
        negative = !negative;
        hi = ~hi + (lo == 0);
        lo = ~lo + 1;
    }
    double turn = fma((double)lo, 0x1p-64, (double)hi);
    double x = turn * (0x1.921fb54442d18p+2 * 0x1p-64);
    double value = scale * fma(x * x, x * (-1.0 / 6.0), x);
    return (float)(negative ? -value : value);
}

/* Results below this magnitude, times |scale|, are evaluated from the phase, as explained above. */
#define POSENC_SMALL 0x1p-21

/* Returns this bound. It is never 0, so that all zeros are below it. */
static inline float small_limit(double scale)
{
    float limit = (float)(POSENC_SMALL * fabs(scale));
    return limit < 0x1p-149f ? 0x1p-149f : limit;
}

/* Evaluates again those of n pairs from i on whose cosine or sine is small. Their scale is each[k], or `all` without
 * `each`. About one value in 10^7 comes here, hence not inlined. It is plain C, so its bits are those of every ISA. */
static __attribute__((noinline)) void fix_small(const struct posenc_freqs *freqs,
                                                uint32_t position, int64_t i, int64_t n,
                                                double all, const double *each, float *cosine,
                                                float *sine)
{
    for (int64_t k = 0; k < n; k++) {
        double scale = each ? each[k] : all;
        if (position == 0) {
            cosine[k] = (float)scale;
            sine[k] = (float)(0.0 * scale);
            continue;
        }
        float limit = small_limit(scale);
        uint64_t hi = freqs->view.turn_hi[i + k], lo = freqs->view.turn_lo[i + k];
        if (fabsf(cosine[k]) < limit)
            cosine[k] = small_sine(hi, lo, position, true, scale);
        if (fabsf(sine[k]) < limit)
            sine[k] = small_sine(hi, lo, position, false, scale);
        if (freqs->whole) {
            double omega = freqs->view.omega[i + k];
            if (posenc_whole_zero((double)cosine[k], omega, scale))
                cosine[k] = (float)(0.0 * scale);
            if (posenc_whole_zero((double)sine[k], omega, scale))
                sine[k] = (float)(0.0 * scale);
        }
    }
}

/* Returns cos and sin of r, |r| <= pi/4 (1 + 2^-39), accurate enough for f32 results: the relative error of these
 * minimax polynomials is below 2^-53 (cosine) and 2^-47.5 (sine), less than 2^-22 ulp of f32. */
SIMD_INLINE void sincos_short(vd r, vd *cosine, vd *sine)
{
    vd z = vd_mul(r, r);
    vd s = vd_set1(-0x1.a961a1e22a7ddp-26), c = vd_set1(0x1.1bbe8e238e79cp-29);

    s = vd_fma(s, z, vd_set1(0x1.71d76d17985b3p-19));
    c = vd_fma(c, z, vd_set1(-0x1.27e00b90feeeap-22));
    s = vd_fma(s, z, vd_set1(-0x1.a019f9396b03fp-13));
    c = vd_fma(c, z, vd_set1(0x1.a019fa5ffc4bep-16));
    s = vd_fma(s, z, vd_set1(0x1.1111110c8734fp-7));
    c = vd_fma(c, z, vd_set1(-0x1.6c16c16721126p-10));
    s = vd_fma(s, z, vd_set1(-0x1.5555555552239p-3));
    c = vd_fma(c, z, vd_set1(0x1.5555555552ddbp-5));
    *sine = vd_fma(vd_mul(r, z), s, r);
    *cosine = vd_fma(vd_mul(z, z), c, vd_fma(vd_set1(-0.5), z, vd_set1(1.0)));
}

/* The f32 numerics modes end with three steps: this one, sincos_short() and sincos_scaled(). This one reduces f32
 * angles by their nearest quarter turn q, and returns the rest in radians. */
SIMD_INLINE vd angles_reduced(vf angles, vq *q)
{
    /* pi/2 = 0x1.921fb54442d18p+0 + 0x1.1a62633145c07p-54 - 2^-109.04. An f32 angle other than 0 is at least 2^-30
     * from its multiples. Adding 1.5 * 2^52 (magic) rounds to an integer in the low bits. */
    const vd magic = vd_set1(0x1.8p52), two_over_pi = vd_set1(0x1.45f306dc9c883p-1);
    vd angle = vd_from_vf(angles);
    vd k = vd_fma(angle, two_over_pi, magic);

    *q = vq_from_bits(k);
    k = vd_sub(k, magic);
    vd r = vd_fnma(k, vd_set1(0x1.921fb54442d18p+0), angle);
    return vd_fnma(k, vd_set1(0x1.1a62633145c07p-54), r);
}

/* Rounds c and s, adds the quarter turn and multiplies by the scales. */
SIMD_INLINE void sincos_scaled(vq q, vd c, vd s, vf cosine_scale, vf sine_scale, vf *cosine,
                               vf *sine)
{
    vf_quadrant(q, vf_from_vd(c), vf_from_vd(s), cosine, sine);
    *cosine = vf_mul(*cosine, cosine_scale);
    *sine = vf_mul(*sine, sine_scale);
}

/* Returns ggml's running product at pair `from` of a row (see ggml_angles). */
SIMD_INLINE float ggml_phi(const struct posenc_freqs *freqs, float position, int64_t from)
{
    float phi = position, angles[POSENC_FREQS_PAD];

    for (int64_t i = 0, n; i < from; i += n) {
        n = from - i < POSENC_FREQS_PAD ? from - i : POSENC_FREQS_PAD;
        phi = posenc_ggml_f32_angles(freqs, phi, i, n, angles);
    }
    return phi;
}

/* Returns the angles of a vector of pairs from i on in mode ggml_f32. ggml multiplies one angle by a factor from
 * pair to pair; `phi` carries this product along the row, and begins as the position. */
SIMD_INLINE vf ggml_angles(const struct posenc_freqs *freqs, int64_t i, float *phi)
{
    _Alignas(64) float angles[POSENC_FREQS_PAD];
    *phi = posenc_ggml_f32_angles(freqs, *phi, i, vf_lanes(), angles);
    return vf_load(angles);
}

/* Returns the same in the other f32 modes. It reads whole vectors, as the arrays of frequencies are padded. */
SIMD_INLINE vf angles_f32(const struct posenc_freqs *freqs, float position, int64_t i)
{
    return vf_mul(vf_set1(position), vf_load(freqs->view.omega_f32 + i));
}

#endif
