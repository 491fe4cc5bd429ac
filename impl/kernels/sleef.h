/*
 * A backend of the family sleef: the table kernels with SLEEF's deterministic f32 sine and
 * cosine ("finz": the same bits on every ISA with fma) on a phase reduced as in sincos.tmpl.h.
 * At most 2 ulp: 1 from SLEEF, the rest from rounding the reduced angle to f32.  What needs no
 * sine is left to the templates.  The file that includes this defines POSENC_SIMD, the
 * TEMPLATE_ words and SLEEF_SINCOS(angle, &cosine, &sine).
 *
 * SLEEF: Shibata and Petrogalli, IEEE TPDS 31(6), 2020.
 */
#include "sincos.tmpl.h"

SIMD_INLINE void sleef_f32(vf angles, double scale, vf *cosine, vf *sine)
{
    vf c, s, m = vf_set1((float)scale);

    SLEEF_SINCOS(angles, &c, &s);
    *cosine = vf_mul(c, m);
    *sine = vf_mul(s, m);
}

SIMD_INLINE void sleef_reduced(vd r, vq q, vd scale, vf *cosine, vf *sine)
{
    vf c, s;

    SLEEF_SINCOS(vf_from_vd(r), &c, &s);
    vf_quadrant(q, c, s, &c, &s);
    *cosine = vf_from_vd(vd_mul(vd_from_vf(c), scale));
    *sine = vf_from_vd(vd_mul(vd_from_vf(s), scale));
}
#define POSENC_SINCOS_F32     sleef_f32
#define POSENC_SINCOS_REDUCED sleef_reduced
#include "table.tmpl.h"

static int32_t lanes(void) { return (int32_t)vf_lanes(); }

const struct posenc_backend TEMPLATE_BACKEND = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = TEMPLATE_NAME,
    .family = "sleef",
    .description = TEMPLATE_DESCRIPTION,
    .needs = TEMPLATE_NEEDS,
    .lanes = lanes,
    .fused = true,
    .f16_bf16 = true,
    .sinusoidal = sinusoidal,
    .sinusoidal_add = sinusoidal_add,
    .rope_table = rope_table,
};
