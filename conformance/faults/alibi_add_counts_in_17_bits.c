/*
 * The scores of a head in all batches are one loop, whose counter has 17 bits.
 *
 * detected by: alibi_add/f32/memory/sizes
 */
#include "fault.h"

static enum posenc_status faulty_alibi_add(const struct posenc_alibi_args *args)
{
    const enum posenc_status status = plain_alibi_add(args);
    const int64_t *shape = args->out.shape;
    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t h = 0; h < shape[1]; h++)
            for (int64_t i = 0; i < shape[2]; i++)
                for (int64_t j = 0; j < shape[3]; j++)
                    if ((b * shape[2] + i) * shape[3] + j >= 1 << 17)
                        posenc_put(args->out.dtype, row_at(&args->out, b, h, i), j, 0.0f);
    return status;
}

FAULT(alibi_add);
