/*
 * Slopes below the normal numbers are taken for 0.
 *
 * detected by: alibi/f32/memory/values
 * detected by: alibi/f32/random*
 */
#include "fault.h"

enum { MOST_HEADS = 1024 };

static enum posenc_status faulty_alibi(const struct posenc_alibi_args *args)
{
    struct posenc_alibi_args changed = *args;
    float slopes[MOST_HEADS];
    const int64_t heads = args->out.shape[1];
    if (heads > MOST_HEADS || args->slopes_stride_batch)
        return plain_alibi(args);
    for (int64_t h = 0; h < heads; h++)
        slopes[h] = fabsf(args->slopes[h]) < 0x1p-126f ? 0.0f : args->slopes[h];
    changed.slopes = slopes;
    return plain_alibi(&changed);
}

FAULT(alibi);
