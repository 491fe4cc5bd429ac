/*
 * One array of cosines and sines, row by row, is taken to be dense: batches follow one another
 * without a gap.
 *
 * detected by: rope_table/f32/properties/layouts
 * detected by: rope_table/f32/random*
 */
#include "fault.h"

static enum posenc_status faulty_rope_table(const struct posenc_rope_table_args *args)
{
    struct posenc_rope_table_args changed = *args;
    const int64_t size = (int64_t)posenc_dtype_size(args->cos.dtype), half = args->cos.shape[3],
                  apart = ((char *)args->sin.data - (char *)args->cos.data) / size;
    if (apart == half && args->cos.stride[1] >= 2 * half)
        changed.cos.stride[0] = changed.sin.stride[0] =
            args->cos.shape[1] * args->cos.stride[1];
    return plain_rope_table(&changed);
}

FAULT(rope_table);
