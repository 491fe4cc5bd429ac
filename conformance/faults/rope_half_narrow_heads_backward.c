/*
 * In place, heads of less than a vector are loaded and stored by eight channels, the last head first:
 * each store puts back the channels of the next head as they were before.
 *
 * detected by: rope_half/f32/memory/lengths
 * detected by: rope_half/f32/random*
 */
#include "fault.h"

static enum posenc_status faulty_rope_half(const struct posenc_rope_args *args)
{
    const int64_t dim = args->x.shape[3], heads = args->x.shape[2];
    if (args->x.data != args->out.data || dim >= 8 || heads < 3 || args->x.stride[2] != dim)
        return plain_rope_half(args);
    for (int64_t b = 0; b < args->x.shape[0]; b++)
        for (int64_t t = 0; t < args->x.shape[1]; t++) {
            struct posenc_rope_args one = *args;
            const int64_t size = (int64_t)posenc_dtype_size(args->out.dtype),
                          n = least(heads * dim, 8) * size, at = (heads - 2) * dim * size;
            char before[32], *row = row_at(&args->out, b, t, 0);
            memcpy(before, row + at + dim * size, (size_t)least(n - dim * size, dim * size));
            one.x.shape[0] = one.x.shape[1] = one.out.shape[0] = one.out.shape[1] = 1;
            one.x.data = one.out.data = row;
            one.positions.kind = POSENC_OFFSET;
            one.positions.offset = posenc_position(&args->positions, b, t);
            plain_rope_half(&one);
            memcpy(row + at + dim * size, before, (size_t)least(n - dim * size, dim * size));
        }
    return POSENC_OK;
}

FAULT(rope_half);
