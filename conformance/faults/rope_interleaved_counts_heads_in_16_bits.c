/*
 * Tokens and heads are one loop, whose counter has 16 bits; the rows after that are those of its
 * remainder, in another place.
 *
 * detected by: rope_interleaved memory
 */
#include "fault.h"

static enum posenc_status faulty_rope_interleaved(const struct posenc_rope_args *args)
{
    const enum posenc_status status = plain_rope_interleaved(args);
    const int64_t tokens = args->x.shape[1], heads = args->x.shape[2];
    for (int64_t b = 0; b < args->x.shape[0]; b++)
        for (int64_t t = 0; t < tokens; t++)
            for (int64_t h = 0; h < heads; h++)
                if (t * heads + h > UINT16_MAX)
                    posenc_put(args->out.dtype, row_at(&args->out, b, t, h),
                               args->rotary_offset, 0.0f);
    return status;
}

FAULT(rope_interleaved);
