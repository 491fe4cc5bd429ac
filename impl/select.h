/*
 * Which backend serves a call that names none.
 */
#ifndef POSENC_SELECT_H
#define POSENC_SELECT_H

#include "registry.h"

#include <stdatomic.h>

/* A line of a selection: calls stored as `dtype`, or of any type, whose tensors take at most this
 * many bytes. */
struct choice {
    const struct posenc_backend *backend;
    uint64_t most;
    enum posenc_dtype dtype;
    bool any_dtype;
};

enum { CHOICES_MOST = 24, REASON_MOST = 512 };

/* The lines of each kernel in their order: the first that holds counts. */
struct choices {
    struct choice of[POSENC_KERNEL_COUNT][CHOICES_MOST];
    int n[POSENC_KERNEL_COUNT];
};

/* The backend that runs each kernel, or NULL and the reason. Immutable and never freed, so that calls
 * under way finish with the same table. */
struct table {
    struct posenc_selection by_kernel[POSENC_KERNEL_COUNT]; /* where no choice holds */
    struct choices choices;
    const char *chosen[POSENC_KERNEL_COUNT]; /* the reason of its choices */
    struct table *previous;
    char reason[REASON_MOST];  /* shared by the kernels of the table */
    char lacking[REASON_MOST]; /* likewise, of those that nobody serves */
    char profile[REASON_MOST]; /* likewise, of choices of a profile */
};

extern _Atomic(struct table *) posenc_table; /* in force; NULL until the first call */

/* Lines of "kernel backend [dtype [bytes]]", of a profile its head first, and then at least one.
 * `why` (REASON_MOST) says what was refused. */
enum posenc_status posenc_read_choices(const char *text, struct choices *choices, char *why);
enum posenc_status posenc_read_profile(const char *path, struct choices *choices, char *why);

enum posenc_status posenc_resolve_slowly(const struct posenc_backend **backend,
                                         enum posenc_kernel kernel, const void *call,
                                         struct posenc_error *error);

/* Replaces NULL by the backend that is selected for this call, which is checked; OK when that
 * backend runs here and provides the kernel. */
static inline enum posenc_status posenc_resolve(const struct posenc_backend **backend,
                                                enum posenc_kernel kernel, const void *call,
                                                struct posenc_error *error)
{
    if (*backend)
        return posenc_is_found(*backend, kernel)
                   ? POSENC_OK
                   : posenc_resolve_slowly(backend, kernel, call, error);
    const struct table *table = atomic_load_explicit(&posenc_table, memory_order_acquire);
    if (!table || table->choices.n[kernel] > 0 || !table->by_kernel[kernel].backend)
        return posenc_resolve_slowly(backend, kernel, call, error);
    *backend = table->by_kernel[kernel].backend;
    return POSENC_OK;
}

#endif
