/*
 * The last channel of the last row is not summed where 1000 tokens and more have 1000 channels.
 *
 * detected by: learned_grad/f32/memory/sizes
 */
#include "fault.h"

static enum posenc_status faulty_learned_grad(const struct posenc_learned_grad_args *args)
{
    const enum posenc_status status = plain_learned_grad(args);
    const int64_t rows = args->out.shape[0], channels = args->out.shape[1];
    if (args->x.shape[1] < 1000 || channels < 1000 || args->positions.kind != POSENC_OFFSET)
        return status;
    const int64_t last = args->positions.offset + args->x.shape[1] - 1;
    if (last < rows)
        ((float *)args->out.data + last * args->out.stride[0])[channels - 1] = 0.0f;
    return status;
}

FAULT(learned_grad);
