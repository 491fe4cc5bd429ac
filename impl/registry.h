/* The lists of kernels and backends, and the features of this CPU, for the library's own files. */
#ifndef POSENC_REGISTRY_H
#define POSENC_REGISTRY_H

#include "internal.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

static inline bool posenc_kernel_is_valid(enum posenc_kernel kernel)
{
    return (unsigned)kernel < POSENC_KERNEL_COUNT;
}

/* Number of built-in backends, the first of the list. Added ones follow. */
extern const size_t posenc_built_in_count;

/* Find a kernel or a backend whose name is the first `length` characters of a text. They return POSENC_KERNEL_NONE or
 * NULL if there is none. */
enum posenc_kernel posenc_kernel_find_n(const char *name, size_t length);
const struct posenc_backend *posenc_backend_find_n(const char *name, size_t length);

/* Returns true if the library can read the struct. A plug-in may be built with another header. */
bool posenc_backend_is_compatible(const struct posenc_backend *backend);

/* ---- CPU features (cpu.c), by name ---- */

/* Returns NULL if this CPU has each feature of the space-separated list, and its operating system supports it.
 * Otherwise returns a static sentence about the first that is missing. NULL is an empty list. */
const char *posenc_cpu_unavailable_reason(const char *list);

/* Returns the highest level of instruction sets among the features of a list; 0 for an empty list. Levels are
 * comparable within one architecture. */
int posenc_cpu_level(const char *list);

/* ---- Backends that run ---- */

/* Returns true if this CPU can run the backend. */
bool posenc_backend_runs(const struct posenc_backend *backend);

/* Hash set, with linear probing, of the built-in backends that are known to run on this CPU. It only grows, and always
 * has an empty slot. */
enum { POSENC_RUNNABLE_SLOTS = 64 };
extern _Atomic(const struct posenc_backend *) posenc_runnable[POSENC_RUNNABLE_SLOTS];

/* Returns the slot at which a search for the backend begins. */
static inline size_t posenc_runnable_slot(const struct posenc_backend *backend)
{
    return (uintptr_t)backend / 32 % POSENC_RUNNABLE_SLOTS;
}

/* Returns true if the set contains the backend and it provides the kernel. It is fast, as each call that names a
 * backend needs it. False only means that the full check has to decide. */
static inline bool posenc_is_runnable(const struct posenc_backend *backend,
                                      enum posenc_kernel kernel)
{
    const struct posenc_backend *candidate;
    void (*function)(void);
    size_t slot = posenc_runnable_slot(backend);
    while ((candidate = atomic_load_explicit(&posenc_runnable[slot], memory_order_relaxed)) !=
           backend) {
        if (!candidate)
            return false;
        slot = (slot + 1) % POSENC_RUNNABLE_SLOTS;
    }
    memcpy(&function,
           (const char *)backend + offsetof(struct posenc_backend, sinusoidal) +
               (size_t)kernel * sizeof function,
           sizeof function);
    return function != NULL;
}

#endif
