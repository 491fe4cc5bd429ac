/*
 * Sine and cosine by SLEEF for the kernels of table.c, which reduce the phase as in sincos.h. The functions "finz" are
 * deterministic: they give the same bits on each ISA with FMA. The error is at most 2 ulp: 1 of SLEEF, and the rest
 * from rounding the reduced angle to f32.
 *
 * SLEEF: Shibata and Petrogalli, IEEE TPDS 31(6), 2020.
 */
#ifndef POSENC_PLUGINS_SINCOS_SLEEF_H
#define POSENC_PLUGINS_SINCOS_SLEEF_H

#include <sleef.h>

#include "impl/kernels/sincos.h"

SIMD_INLINE void sleef_sincos(vf angle, vf *cosine, vf *sine)
{
#if defined(__AVX512F__)
    Sleef___m512_2 both = Sleef_finz_sincosf16_u10avx512f(angle);
#elif defined(__AVX2__)
    Sleef___m256_2 both = Sleef_finz_sincosf8_u10avx2(angle);
#else
    Sleef_float32x4_t_2 both = Sleef_finz_sincosf4_u10advsimd(angle);
#endif
    *cosine = both.y;
    *sine = both.x;
}

/* Computes cos and sin of the angles of an f32 numerics mode, times `scale`. */
SIMD_INLINE void sleef_f32(vf angles, double scale, vf *cosine, vf *sine)
{
    vf c, s, m = vf_set1((float)scale);

    sleef_sincos(angles, &c, &s);
    *cosine = vf_mul(c, m);
    *sine = vf_mul(s, m);
}

/* Computes cos and sin of q quarter turns and r radians, times `scale`. */
SIMD_INLINE void sleef_reduced(vd r, vq q, vd scale, vf *cosine, vf *sine)
{
    vf c, s;

    sleef_sincos(vf_from_vd(r), &c, &s);
    vf_quadrant(q, c, s, &c, &s);
    *cosine = vf_from_vd(vd_mul(vd_from_vf(c), scale));
    *sine = vf_from_vd(vd_mul(vd_from_vf(s), scale));
}
#define POSENC_SINCOS_F32     sleef_f32
#define POSENC_SINCOS_REDUCED sleef_reduced

#endif
