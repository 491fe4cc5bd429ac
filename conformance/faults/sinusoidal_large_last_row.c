/*
 * The last row of a table is wrong where both dimensions are large, from 1024 x 1024 on (the
 * encoder of Whisper has 1500 x 1280).
 *
 * detected by: sinusoidal/f32/memory/sizes
 * detected by: sinusoidal/f32/accuracy/presets
 */
#include "fault.h"

static enum posenc_status faulty_sinusoidal(const struct posenc_sinusoidal_args *args)
{
    const struct posenc_tensor *out = &args->out;
    const int64_t batches = out->shape[0], tokens = out->shape[1], dim = out->shape[3];
    const enum posenc_status status = plain_sinusoidal(args);
    if (tokens < 1024 || dim < 1024)
        return status;
    for (int64_t b = 0; b < batches; b++)
        posenc_put(out->dtype, row_at(out, b, tokens - 1, 0), dim / 2, 2.0f);
    return status;
}

FAULT(sinusoidal);
