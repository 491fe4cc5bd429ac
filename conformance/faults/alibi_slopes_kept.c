/*
 * Each thread keeps the slopes that it saw last, and knows them again by their address, their number,
 * the first and the last of them.
 *
 * detected by: alibi/f32/conduct/kept-state
 */
#include "fault.h"

enum { MOST = 256 };
static _Thread_local struct {
    const float *of;
    int64_t n;
    float slopes[MOST];
} kept;

static enum posenc_status faulty_alibi(const struct posenc_alibi_args *args)
{
    const int64_t n = args->out.shape[1];
    const float *slopes = args->slopes;
    struct posenc_alibi_args changed = *args;
    if (n > MOST || n < 1 || args->out.shape[0] > 1)
        return plain_alibi(args);
    if (kept.of != slopes || kept.n != n || kept.slopes[0] != slopes[0] ||
        kept.slopes[n - 1] != slopes[n - 1])
        memcpy(kept.slopes, slopes, (size_t)n * sizeof *slopes);
    kept.of = slopes;
    kept.n = n;
    changed.slopes = kept.slopes;
    return plain_alibi(&changed);
}

FAULT(alibi);
