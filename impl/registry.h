/*
 * Which backend serves a call.
 */
#ifndef POSENC_REGISTRY_H
#define POSENC_REGISTRY_H

#include "internal.h"

#include <stdatomic.h>

/* Who serves which kernel: a backend, or NULL and the reason.  Immutable and never freed, so that
 * calls under way finish with theirs. */
struct table {
    struct posenc_selection by_kernel[POSENC_KERNEL_COUNT];
    struct table *previous;
    char reason[512];  /* shared by the kernels of the table */
    char lacking[512]; /* likewise, of those that nobody serves */
};

extern _Atomic(struct table *) posenc_table; /* in force; NULL until the first call */

enum posenc_status posenc_resolve_slowly(const struct posenc_backend **backend,
                                         enum posenc_kernel kernel, struct posenc_error *error);

/* Replaces NULL by the selected backend; OK when that backend runs here and provides the
 * kernel. */
static inline enum posenc_status posenc_resolve(const struct posenc_backend **backend,
                                                enum posenc_kernel kernel,
                                                struct posenc_error *error)
{
    const struct table *table = atomic_load_explicit(&posenc_table, memory_order_acquire);
    if (*backend || !table || !table->by_kernel[kernel].backend)
        return posenc_resolve_slowly(backend, kernel, error);
    *backend = table->by_kernel[kernel].backend;
    return POSENC_OK;
}

#endif
