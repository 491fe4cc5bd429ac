/*
 * The second batch takes the scores of the first where each has 500 x 500 of them or more.
 *
 * detected by: t5_bias_add/f32/memory/sizes
 */
#include "fault.h"

static enum posenc_status faulty_t5_bias_add(const struct posenc_t5_args *args)
{
    struct posenc_t5_args changed = *args;
    if (args->out.shape[2] * args->out.shape[3] >= 250000)
        changed.x.stride[0] = 0;
    return plain_t5_bias_add(&changed);
}

FAULT(t5_bias_add);
