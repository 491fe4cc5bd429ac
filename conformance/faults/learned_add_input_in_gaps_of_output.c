/*
 * Rows of out that lie apart are stored by whole vectors: what lies between them is nobody's, it is
 * thought, if it is not what out ends with.  It may be x.
 *
 * detected by: learned_add/f32/properties/layouts
 */
#include "fault.h"

static enum posenc_status faulty_learned_add(const struct posenc_learned_args *args)
{
    const enum posenc_status status = plain_learned_add(args);
    const int64_t dim = args->out.shape[3], next = (dim + 3) / 4 * 4,
                  size = (int64_t)posenc_dtype_size(args->out.dtype);
    const bool within = (const char *)args->x.data == (char *)args->out.data + dim * size;
    for (int64_t t = 0; within && t + 1 < args->out.shape[1]; t++)
        for (int64_t i = dim; i < next && next <= args->out.stride[1]; i++)
            posenc_put(args->out.dtype, row_at(&args->out, 0, t, 0), i, 0.0f);
    return status;
}

FAULT(learned_add);
