/*
 * The lists of kernels and backends, for the library's own files.
 */
#ifndef POSENC_REGISTRY_H
#define POSENC_REGISTRY_H

#include "internal.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static inline bool posenc_is_kernel(enum posenc_kernel kernel)
{
    return (unsigned)kernel < POSENC_KERNEL_COUNT;
}

/* Number of backends of the list that come with the library; added ones follow. */
extern const size_t posenc_built_in;

/* By the first `length` characters of a text; POSENC_KERNEL_COUNT, NULL: there is none. */
enum posenc_kernel posenc_kernel_named(const char *name, size_t length);
const struct posenc_backend *posenc_backend_named(const char *name, size_t length);

/* Returns true for a layout that this library reads: a plug-in may be built with another header. */
bool posenc_is_compatible(const struct posenc_backend *backend);
bool posenc_runs_here(const struct posenc_backend *backend);

/* Built-in backends that were found to run here, each at the first free place from that of its address on.
 * Only ever added to, and never full. */
enum { POSENC_FOUND = 64 };
extern _Atomic(const struct posenc_backend *) posenc_found[POSENC_FOUND];

static inline size_t posenc_place(const struct posenc_backend *backend)
{
    return (uintptr_t)backend / 32 % POSENC_FOUND;
}

/* At a glance, as each call that names a backend asks: whether it is one of those and has the kernel. If not,
 * it may be fine all the same. */
static inline bool posenc_is_found(const struct posenc_backend *backend,
                                   enum posenc_kernel kernel)
{
    const struct posenc_backend *found;
    void (*function)(void);
    size_t at = posenc_place(backend);
    while ((found = atomic_load_explicit(&posenc_found[at], memory_order_relaxed)) != backend) {
        if (!found)
            return false;
        at = (at + 1) % POSENC_FOUND;
    }
    memcpy(&function,
           (const char *)backend + offsetof(struct posenc_backend, sinusoidal) +
               (size_t)kernel * sizeof function,
           sizeof function);
    return function != NULL;
}

#endif
