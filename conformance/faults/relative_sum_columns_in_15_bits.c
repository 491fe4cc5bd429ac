/*
 * Columns are kept as int16_t: one from 32 768 on has no sum.
 *
 * detected by: relative_sum/f32/memory/sizes
 */
#include "fault.h"

static enum posenc_status faulty_relative_sum(const struct posenc_relative_sum_args *args)
{
    const enum posenc_status status = plain_relative_sum(args);
    const int64_t *shape = args->out.shape;
    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t h = 0; h < shape[1]; h++)
            for (int64_t i = 0; i < shape[2]; i++)
                for (int64_t c = INT16_MAX + 1; c < shape[3]; c++)
                    posenc_put(args->out.dtype, row_at(&args->out, b, h, i), c, 0.0f);
    return status;
}

FAULT(relative_sum);
