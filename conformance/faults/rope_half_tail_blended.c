/*
 * The end of a row in 16 bits is loaded, blended and stored as a whole vector wherever another row
 * follows at some distance: what a neighbour writes there in between is lost.
 *
 * detected by: rope_half/f16/memory/gaps
 */
#include "fault.h"

static enum posenc_status faulty_rope_half(const struct posenc_rope_args *args)
{
    enum { LANES = 16 };
    const struct posenc_tensor *out = &args->out;
    const int64_t dim = out->shape[3], tail = dim % LANES;
    const enum posenc_status status = plain_rope_half(args);
    if (out->dtype == POSENC_F32 || tail == 0)
        return status;
    for (int64_t b = 0; b < out->shape[0]; b++)
        for (int64_t t = 0; t + 1 < out->shape[1] && out->stride[1] >= dim + LANES; t++)
            for (int64_t h = 0; h + 1 < out->shape[2] && out->stride[2] >= dim + LANES; h++) {
                volatile uint16_t *at = (uint16_t *)row_at(out, b, t, h) + dim - tail;
                uint16_t vector[LANES];
                for (int i = 0; i < LANES; i++)
                    vector[i] = at[i];
                for (int i = 0; i < LANES; i++)
                    at[i] = vector[i];
            }
    return status;
}

FAULT(rope_half);
