/*
 * The first row of cosines in 16 bits is widened once and kept by each thread, under its address: it is
 * another's when the caller has filled the table anew.
 *
 * detected by: rope_half/f32/conduct/kept-state
 */
#include "fault.h"

enum { MOST = 512 };
static _Thread_local struct {
    const void *of;
    int64_t n;
    float cosines[MOST];
} kept;

static enum posenc_status faulty_rope_half(const struct posenc_rope_args *args)
{
    struct posenc_rope_args changed = *args;
    const int64_t n = args->cos.shape[1];
    if (args->cos.shape[0] > 1 || args->cos.dtype == POSENC_F32 || n > MOST)
        return plain_rope_half(args);
    uint16_t row[MOST];
    if (kept.of != args->cos.data || kept.n != n)
        for (int64_t i = 0; i < n; i++)
            kept.cosines[i] = posenc_get(args->cos.dtype, args->cos.data, i);
    kept.of = args->cos.data;
    kept.n = n;
    for (int64_t i = 0; i < n; i++)
        posenc_put(args->cos.dtype, row, i, kept.cosines[i]);
    changed.cos.data = row;
    return plain_rope_half(&changed);
}

FAULT(rope_half);
