/*
 * Of 10 240 heads of tokens and more with 128 channels the last one is copied, not rotated.
 *
 * detected by: rope_half/f32/memory/sizes
 * detected by: rope_half/f32/accuracy/presets
 */
#include "fault.h"

static enum posenc_status faulty_rope_half(const struct posenc_rope_args *args)
{
    const int64_t tokens = args->out.shape[1], heads = args->out.shape[2],
                  channels = args->out.shape[3];
    struct posenc_rope_args changed = *args;
    if (tokens * heads < 10240 || channels != 128)
        return plain_rope_half(args);
    changed.out.shape[2] = changed.x.shape[2] = heads - 1;
    plain_rope_half(&changed);
    for (int64_t b = 0; b < args->out.shape[0] && args->x.data != args->out.data; b++)
        for (int64_t t = 0; t < tokens; t++)
            memcpy(row_at(&args->out, b, t, heads - 1), input_at(&args->x, b, t, heads - 1),
                   (size_t)channels * posenc_dtype_size(args->out.dtype));
    return POSENC_OK;
}

FAULT(rope_half);
