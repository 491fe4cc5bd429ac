/*
 * sinusoidal: a table of sines and cosines, or activations and that table (Vaswani et al.
 * 1706.03762).
 */
#include "shared.h"

/* A picture, its sections restarted. */
static void draw_axes(struct draws *d, struct problem *p)
{
    const int64_t axes = draw(d, 1, 3);
    p->freqs.dim = 0;
    for (int64_t a = 0; a < axes; a++) {
        p->freqs.mrope_section[a] = draw(d, 1, 9);
        p->freqs.dim += 2 * p->freqs.mrope_section[a];
    }
    p->freqs.mrope_layout = POSENC_MROPE_RESTARTED;
    p->layout = (enum posenc_layout)draw(d, POSENC_INTERLEAVED, POSENC_COS_SIN);
    p->position_kind = draw(d, 0, 1) ? POSENC_POSITIONS_I64 : POSENC_POSITIONS_F32;
    p->time_step = 1.0 / 3.0;
    p->first = draw(d, -5000, 5000);
    p->mrope_grid = 3;
    p->tokens = 7;
}

/* In every other length times with a fraction, in every fourth places in a picture, which an even
 * dim has: sections of n/2 pairs together. */
static void length(struct problem *p, int64_t n, int v)
{
    p->freqs.dim = n;
    p->first = v == 1 ? 63 : -1;
    if (v == 2 && n % 2) {
        p->position_kind = POSENC_POSITIONS_F32;
        p->time_step = 0.37;
    }
    if (v != 1 || n < 4 || n % 4 != 2)
        return;
    p->mrope_grid = 2;
    p->freqs.convention = POSENC_EXPONENT;
    p->freqs.mrope_layout = POSENC_MROPE_RESTARTED;
    p->freqs.mrope_section[0] = n / 4;
    p->freqs.mrope_section[1] = n / 2 - n / 4;
}

#define ACTIVATIONS .dims = { DIM_BATCH, DIM_TOKEN, DIM_CHANNEL }, .moved = tensor_elements

const struct signature signature_sinusoidal = {
    BLANK(sinusoidal),
    .tensors = { { OUT(sinusoidal, out), ACTIVATIONS },
                 { X(sinusoidal), ACTIVATIONS },
                 POSITIONS(sinusoidal) },
    .parameters = { PARAMETER(sinusoidal, layout), PARAMETER(sinusoidal, scale),
                    PARAMETER(sinusoidal, x_scale) },
    .freqs = ARGUMENT(sinusoidal, freqs),
    .channels = MEMBER(freqs.dim),
    .fields = FIELDS_PLAN "dim values_dtype layout scale x_scale",
    .cuts = { DIM_TOKEN, DIM_BATCH },
    .shares = { DIM_TOKEN },
    .draw = draw_axes,
    .length = length,
};
