/*
 * Cosines in f16 are widened by moving their bits: a subnormal becomes another number.
 *
 * detected by: rope_half/f32/memory/values
 * detected by: rope_half/f32/random*
 */
#include "fault.h"

static enum posenc_status faulty_rope_half(const struct posenc_rope_args *args)
{
    const enum posenc_status status = plain_rope_half(args);
    const enum posenc_dtype type = args->out.dtype;
    const int64_t half = args->cos.shape[1], first = args->rotary_offset;
    if (args->cos.dtype != POSENC_F16 || args->x.data == args->out.data)
        return status;
    for (int64_t b = 0; b < args->x.shape[0]; b++)
        for (int64_t t = 0; t < args->x.shape[1]; t++)
            for (int64_t h = 0; h < args->x.shape[2]; h++)
                for (int64_t i = first; i < first + half; i++) {
                    const int64_t id = posenc_position(&args->positions, b, t);
                    const float sign = args->transpose ? -1.0f : 1.0f,
                                c = posenc_get(POSENC_F16, input_at(&args->cos, id, 0, 0),
                                               i - first),
                                s = posenc_get(POSENC_F16, input_at(&args->sin, id, 0, 0),
                                               i - first);
                    const void *x = input_at(&args->x, b, t, h);
                    if (c != 0.0f && fabsf(c) < 0x1p-14f)
                        posenc_put(type, row_at(&args->out, b, t, h), i,
                                   posenc_get(type, x, i) * 0.0f -
                                       posenc_get(type, x, i + half) * sign * s);
                }
    return status;
}

FAULT(rope_half);
