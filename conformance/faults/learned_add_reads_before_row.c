/*
 * Rows of x but the first are read from the boundary before them: loads are then aligned.
 *
 * detected by: learned_add/f32/memory/gaps
 */
#include "fault.h"

static enum posenc_status faulty_learned_add(const struct posenc_learned_args *args)
{
    enum { BEFORE = 4 };
    const struct posenc_const_tensor *x = &args->x;
    for (int64_t b = 0; b < x->shape[0]; b++)
        for (int64_t t = 1; t < x->shape[1] && x->stride[1] >= x->shape[3] + BEFORE; t++)
            (void)((const volatile char *)input_at(x, b, t, 0))[-BEFORE];
    return plain_learned_add(args);
}

FAULT(learned_add);
