/* Selection of the backend for calls that name none: by posenc_select(), POSENC_BACKEND=libm or a tuning file, or the
 * first of the list that runs here. */
#ifndef POSENC_SELECT_H
#define POSENC_SELECT_H

#include "registry.h"

#include <stdatomic.h>

/* A line of a tuning file: the backend of calls with this dtype, or any, whose tensors take at most max_bytes. */
struct selection_rule {
    const struct posenc_backend *backend;
    uint64_t max_bytes;
    enum posenc_dtype dtype;
    bool any_dtype;
};

enum { MAX_RULES = 24, REASON_SIZE = 512 };

/* The rules of each kernel in the order of their lines. The first that matches a call applies. */
struct selection_rules {
    struct selection_rule list[POSENC_KERNEL_COUNT][MAX_RULES];
    int n[POSENC_KERNEL_COUNT];
};

/* The backend of each kernel, or NULL and the reason. A table is immutable once it is published and is never freed, so
 * that running calls can finish with it. */
struct selection_table {
    struct posenc_selection by_kernel[POSENC_KERNEL_COUNT]; /* if no rule matches */
    struct selection_rules rules;
    const char *rules_reason[POSENC_KERNEL_COUNT];
    struct selection_table *previous;
    /* Texts that the reasons above point to: of a default, of a kernel that no backend provides, and of the rules of a
     * tuning file. */
    char reason[REASON_SIZE], missing_reason[REASON_SIZE], tuning_reason[REASON_SIZE];
};

/* The table in force; NULL before the first call. */
extern _Atomic(struct selection_table *) posenc_selection_table;

/* Reads rules from lines of "kernel backend [dtype [bytes]]". The text of a tuning file begins with a head, and must
 * contain at least one rule. On an error, `reason` (REASON_SIZE bytes) says what was rejected. */
enum posenc_status posenc_tuning_parse(const char *text, struct selection_rules *rules,
                                       char *reason);
/* Reads the rules of the tuning file at `path`. */
enum posenc_status posenc_tuning_read(const char *path, struct selection_rules *rules,
                                      char *reason);

/* Does what posenc_resolve_backend() does, for all cases that it does not handle itself. */
enum posenc_status posenc_resolve_backend_slow(const struct posenc_backend **backend,
                                               enum posenc_kernel kernel, const void *call,
                                               struct posenc_error *error);

/* Replaces NULL by the backend that is selected for `call`, whose arguments are checked. Returns POSENC_OK if the
 * backend runs on this CPU and provides the kernel. */
static inline enum posenc_status posenc_resolve_backend(const struct posenc_backend **backend,
                                                        enum posenc_kernel kernel,
                                                        const void *call,
                                                        struct posenc_error *error)
{
    if (*backend)
        return posenc_is_runnable(*backend, kernel)
                   ? POSENC_OK
                   : posenc_resolve_backend_slow(backend, kernel, call, error);
    const struct selection_table *table =
        atomic_load_explicit(&posenc_selection_table, memory_order_acquire);
    if (!table || table->rules.n[kernel] > 0 || !table->by_kernel[kernel].backend)
        return posenc_resolve_backend_slow(backend, kernel, call, error);
    *backend = table->by_kernel[kernel].backend;
    return POSENC_OK;
}

#endif
