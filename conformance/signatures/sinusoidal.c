/* sinusoidal: sines and cosines, alone or added to activations (Vaswani et al. 1706.03762). */
#include "shared.h"

#define ACTIVATIONS .dims = { DIM_BATCH, DIM_TOKEN, DIM_CHANNEL }

const struct signature signature_sinusoidal = {
    BLANK(sinusoidal),
    .tensors = { { OUT(sinusoidal, out), ACTIVATIONS },
                 { X(sinusoidal), ACTIVATIONS },
                 POSITIONS(sinusoidal) },
    .parameters = { PARAMETER(sinusoidal, layout), PARAMETER(sinusoidal, scale),
                    PARAMETER(sinusoidal, x_scale) },
    .freqs = ARGUMENT(sinusoidal, freqs),
    .channels = MEMBER(freqs.dim),
    .fields = FIELDS_FREQS "dim values_dtype layout scale x_scale",
    .cuts = { DIM_TOKEN, DIM_BATCH },
    .shares = { DIM_TOKEN },
    .work = WORK_ANGLES,
};
