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

SIMD_INLINE void sleef_element(const struct posenc_freqs *freqs, uint32_t position, int64_t i,
                               double scale, vf *cosine, vf *sine)
{
    vf m = vf_set1((float)scale), c, s;

    if (freqs->view.profile == POSENC_HF_F32) {
        vf angle = vf_mul(vf_set1((float)position), vf_load(freqs->view.omega_f32 + i));
        SLEEF_SINCOS(angle, &c, &s);
    } else {
        vf c0, s0;
        vq q;
        vd r = phase_reduced(freqs, position, i, &q);
        SLEEF_SINCOS(vf_from_vd(r), &c0, &s0);
        vf_quadrant(q, c0, s0, &c, &s);
    }
    *cosine = vf_mul(c, m);
    *sine = vf_mul(s, m);
}
#define POSENC_SINCOS_ELEMENT sleef_element
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
    .sinusoidal = sinusoidal,
    .sinusoidal_add = sinusoidal_add,
    .rope_table = rope_table,
};
