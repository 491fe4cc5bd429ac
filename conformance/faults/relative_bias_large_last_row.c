/*
 * The last query takes the row of the one before it from 256 x 256 scores on.
 *
 * detected by: relative_bias/f32/memory/sizes
 * detected by: relative_bias/f32/accuracy/presets
 */
#include "fault.h"

static enum posenc_status faulty_relative_bias(const struct posenc_relative_args *args)
{
    const struct posenc_tensor *out = &args->out;
    const int64_t queries = out->shape[2], keys = out->shape[3];
    const enum posenc_status status = plain_relative_bias(args);
    for (int64_t b = 0; b < out->shape[0] && queries >= 256 && keys >= 256; b++)
        for (int64_t h = 0; h < out->shape[1]; h++)
            memcpy(row_at(out, b, h, queries - 1), row_at(out, b, h, queries - 2),
                   (size_t)keys * posenc_dtype_size(out->dtype));
    return status;
}

FAULT(relative_bias);
