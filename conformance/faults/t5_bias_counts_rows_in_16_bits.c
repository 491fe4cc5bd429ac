/*
 * Heads and queries are one loop, whose counter has 16 bits.
 *
 * detected by: t5_bias/f32/memory/sizes
 */
#include "fault.h"

static enum posenc_status faulty_t5_bias(const struct posenc_t5_args *args)
{
    const enum posenc_status status = plain_t5_bias(args);
    const int64_t heads = args->out.shape[1], queries = args->out.shape[2];
    for (int64_t r = UINT16_MAX + 1; r < heads * queries; r++)
        for (int64_t j = 0; j < args->out.shape[3]; j++)
            posenc_put(args->out.dtype, row_at(&args->out, 0, r / queries, r % queries), j,
                       0.0f);
    return status;
}

FAULT(t5_bias);
