/*
 * The index of the window is kept in 16 bits.
 *
 * detected by: window_bias/f32/memory/sizes
 */
#include "fault.h"

#include <stdlib.h>

static enum posenc_status faulty_window_bias(const struct posenc_window_args *args)
{
    struct posenc_window_args changed = *args;
    const int64_t n = args->out.shape[2] * args->out.shape[3];
    int32_t *index = malloc((size_t)n * sizeof *index);
    for (int64_t i = 0; index && i < n; i++)
        index[i] = (uint16_t)args->index[i];
    changed.index = index;
    const enum posenc_status status = index ? plain_window_bias(&changed) : POSENC_ERR_MEMORY;
    free(index);
    return status;
}

FAULT(window_bias);
