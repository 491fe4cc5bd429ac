/*
 * An x_scale of 2 is x added twice, which rounds twice.
 *
 * detected by: learned_add/f32/memory/values
 */
#include "fault.h"

static enum posenc_status faulty_learned_add(const struct posenc_learned_args *args)
{
    struct posenc_learned_args once = *args, again = *args;
    if (args->x_scale != 2.0f || args->x.data == args->out.data ||
        args->out.dtype != POSENC_F32)
        return plain_learned_add(args);
    once.x_scale = 1.0f;
    plain_learned_add(&once);
    for (int64_t b = 0; b < again.out.shape[0]; b++)
        for (int64_t t = 0; t < again.out.shape[1]; t++)
            for (int64_t i = 0; i < again.out.shape[3]; i++) {
                float *out = row_at(&again.out, b, t, 0);
                out[i] += posenc_get(POSENC_F32, input_at(&again.x, b, t, 0), i);
            }
    return POSENC_OK;
}

FAULT(learned_add);
