/*
 * What binds a row; shares of roof and limit and speeds relative to others, as a reader with a
 * calculator finds them (see query.h).
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

/* What binds a row.  Records were without it where memory does, and knew no other resource than
 * conversion, before they named one. */
void find_limit(struct bench_row *row)
{
    const bool known = *record_text(row->json, "limit.kind");
    const char *resource = record_text(row->json, "limit.resource");
    row->limit_resource = *resource ? resource : known ? "conversion" : "memory";
    row->limit_kind = known ? record_text(row->json, "limit.kind") : row->roof_kind;
    row->limit_variant = known ? record_text(row->json, "limit.variant") : row->roof_variant;
    row->limit_gbps = known ? record_value(row->json, "limit.gbps", 0.0) : row->roof_gbps;
    row->limit_ratio = known ? record_value(row->json, "limit.ratio", 0.0) : row->roof_ratio;
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
