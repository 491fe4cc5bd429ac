/*
 * Each thread keeps the frequencies of the last plan, under its address and size: those of one that
 * was destroyed serve the next that is made there.
 *
 * detected by: sinusoidal/f32/conduct/kept-state
 */
#include "fault.h"

enum { MOST = 4096 };
static _Thread_local struct {
    const struct posenc_freqs *of;
    int64_t n;
    double omega[MOST];
} kept;

static enum posenc_status faulty_sinusoidal(const struct posenc_sinusoidal_args *args)
{
    const int64_t n = (args->out.shape[3] + 1) / 2;
    struct posenc_freqs plan = *args->freqs;
    struct posenc_sinusoidal_args changed = *args;
    if (n > MOST || plan.view.profile != POSENC_EXACT)
        return plain_sinusoidal(args);
    if (kept.of != args->freqs || kept.n != n)
        memcpy(kept.omega, plan.view.omega, (size_t)n * sizeof *kept.omega);
    kept.of = args->freqs;
    kept.n = n;
    plan.view.omega = kept.omega;
    changed.freqs = &plan;
    return plain_sinusoidal(&changed);
}

FAULT(sinusoidal);
