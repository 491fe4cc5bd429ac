/*
 * Cosines are stored by eights once the sines of their row are: where the sines follow at once, in
 * [tokens, 2, half], there is room behind the cosines, which the sines are thought to fill later.
 *
 * detected by: rope_table/f32/properties/layouts
 */
#include "fault.h"

static enum posenc_status faulty_rope_table(const struct posenc_rope_table_args *args)
{
    const enum posenc_status status = plain_rope_table(args);
    const int64_t half = args->cos.shape[3], size = (int64_t)posenc_dtype_size(args->cos.dtype);
    if ((char *)args->sin.data - (char *)args->cos.data != half * size)
        return status;
    for (int64_t b = 0; b < args->cos.shape[0]; b++)
        for (int64_t t = 0; t < args->cos.shape[1]; t++) {
            void *row = row_at(&args->cos, b, t, 0);
            for (int64_t i = half; i < 2 * half && i < (half + 7) / 8 * 8; i++)
                posenc_put(args->cos.dtype, row, i, 1.0f);
        }
    return status;
}

FAULT(rope_table);
