/*
 * Every batch takes the slopes of the first.
 *
 * detected by: alibi_add/f32/properties/by-batch
 * detected by: alibi_add/f32/random*
 */
#include "fault.h"

static enum posenc_status faulty_alibi_add(const struct posenc_alibi_args *args)
{
    struct posenc_alibi_args changed = *args;
    changed.slopes_stride_batch = 0;
    return plain_alibi_add(&changed);
}

FAULT(alibi_add);
