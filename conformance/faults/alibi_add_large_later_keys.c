/*
 * The bias of later keys has the wrong sign from 256 x 256 scores on.
 *
 * detected by: alibi_add/f32/memory/sizes
 */
#include "fault.h"

static enum posenc_status faulty_alibi_add(const struct posenc_alibi_args *args)
{
    const int64_t batches = args->out.shape[0], heads = args->out.shape[1],
                  queries = args->out.shape[2], keys = args->out.shape[3];
    const bool large = queries >= 256 && keys >= 256 && !args->causal;
    const enum posenc_dtype type = args->out.dtype;
    for (int64_t b = 0; b < batches && large; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < queries; i++) {
                const float slope = args->slopes[b * args->slopes_stride_batch + h];
                const void *x = input_at(&args->x, b, h, i);
                void *out = row_at(&args->out, b, h, i);
                for (int64_t j = 0; j < keys; j++)
                    put_bias(type, x, args->x_scale, out, j,
                             slope * (float)(j - i - args->query_offset));
            }
    return large ? POSENC_OK : plain_alibi_add(args);
}

FAULT(alibi_add);
