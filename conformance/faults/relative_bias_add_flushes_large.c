/*
 * Flushes to zero while it works on more than a megabyte, and puts the mode back.
 *
 * detected by: relative_bias_add/f32/memory/subnormals
 */
#include "fault.h"

static enum posenc_status faulty_relative_bias_add(const struct posenc_relative_args *args)
{
    const struct posenc_tensor *out = &args->out;
    const int64_t n = out->shape[3], rows = out->shape[0] * out->shape[1] * out->shape[2];
    const enum posenc_status status = plain_relative_bias_add(args);
    if (out->dtype != POSENC_F32 || rows * n <= 1 << 18)
        return status;
    for (int64_t r = 0; r < rows; r++) {
        float *row = row_at(out, r / out->shape[2] / out->shape[1],
                            r / out->shape[2] % out->shape[1], r % out->shape[2]);
        for (int64_t i = 0; i < n; i++)
            row[i] = fabsf(row[i]) < 0x1p-126f ? copysignf(0.0f, row[i]) : row[i];
    }
    return status;
}

FAULT(relative_bias_add);
