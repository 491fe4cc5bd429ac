/*
 * Shares of the roof and speeds relative to others, as a reader with a calculator finds them (see
 * query.h).
 */
#include "query.h"
#include "show.h"

#include <string.h>

/* The row of a family that was fastest in the case of another; NULL: none was timed there. */
static const struct bench_row *yardstick(const struct results *r, const struct bench_row *row,
                                         const char *family)
{
    const struct bench_row *best = NULL;
    for (const struct bench_row *b = r->bench; b < r->bench + r->n_bench; b++)
        if (!*b->refused && b->threads == row->threads && strcmp(b->id, row->id) == 0 &&
            strcmp(b->family, family) == 0 && (!best || b->median < best->median))
            best = b;
    return best;
}

void divide_medians(struct results *r)
{
    for (struct bench_row *b = r->bench; b < r->bench + r->n_bench; b++) {
        const struct bench_row *libm = yardstick(r, b, "libm"),
                               *autovec = yardstick(r, b, "autovec");
        if (*b->refused)
            continue;
        if (shown_rate(b->roof_gbps) > 0.0)
            b->roof_ratio = shown_rate(b->gbps) / shown_rate(b->roof_gbps);
        if (shown_rate(b->limit_gbps) > 0.0)
            b->limit_ratio = shown_rate(b->gbps) / shown_rate(b->limit_gbps);
        if (libm)
            b->vs_libm = shown_time(libm->median) / shown_time(b->median);
        if (autovec)
            b->vs_autovec = shown_time(autovec->median) / shown_time(b->median);
    }
}
