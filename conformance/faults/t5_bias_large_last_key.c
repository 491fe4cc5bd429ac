/*
 * The last key has the bucket of the one before it from 128 x 128 scores on.
 *
 * detected by: t5_bias/f32/memory/sizes
 * detected by: t5_bias/f32/accuracy/presets
 * detected by: t5_bias/f32/random*
 */
#include "fault.h"

static enum posenc_status faulty_t5_bias(const struct posenc_t5_args *args)
{
    const struct posenc_tensor *out = &args->out;
    const int64_t queries = out->shape[2], keys = out->shape[3];
    const enum posenc_status status = plain_t5_bias(args);
    for (int64_t b = 0; b < out->shape[0] && queries >= 128 && keys >= 128; b++)
        for (int64_t h = 0; h < out->shape[1]; h++)
            for (int64_t i = 0; i < queries; i++) {
                void *row = row_at(out, b, h, i);
                posenc_put(out->dtype, row, keys - 1, posenc_get(out->dtype, row, keys - 2));
            }
    return status;
}

FAULT(t5_bias);
