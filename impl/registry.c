/*
 * The lists of kernels and backends.
 */
#include "registry.h"

#include <stdatomic.h>
#include <string.h>

#include "cpu.h"
#include "grow.h"

/* ---- The lists ---- */

static const struct kernel_entry {
    const char *name, *summary;
    size_t offset; /* of its pointer in struct posenc_backend */
} kernels[] = {
#define POSENC_KERNEL(name, signature, summary, ...)                                           \
    { #name, summary, offsetof(struct posenc_backend, name) },
#include "posenc_kernels.def"
};

/* The header says it all once more, for people and for tools that read C: ids, prototypes and
 * members of a backend, in the order of the list. */
enum place {
#define POSENC_KERNEL(name, ...) PLACE_##name,
#include "posenc_kernels.def"
    PLACES
};
#define POSENC_KERNEL(name, signature, ...)                                                    \
    _Static_assert((int)POSENC_KERNEL_##name == (int)PLACE_##name, "the id of " #name);        \
    _Static_assert(offsetof(struct posenc_backend, name) ==                                    \
                       offsetof(struct posenc_backend, sinusoidal) +                           \
                           PLACE_##name * sizeof(void (*)(void)),                              \
                   "the place of " #name " in struct posenc_backend");                         \
    _Static_assert(                                                                            \
        _Generic(((struct posenc_backend *)0)->name,                                           \
                 enum posenc_status(*)(const struct posenc_##signature##_args *) : 1,          \
                 default : 0),                                                                 \
        "the arguments of " #name " in struct posenc_backend");                                \
    _Static_assert(                                                                            \
        _Generic(&posenc_##name,                                                               \
                 enum posenc_status(*)(const struct posenc_backend *,                          \
                                       const struct posenc_##signature##_args *) : 1,          \
                 default : 0),                                                                 \
        "the arguments of posenc_" #name);
#include "posenc_kernels.def"
_Static_assert((int)POSENC_KERNEL_COUNT == (int)PLACES,
               "enum posenc_kernel has as many as the list");
_Static_assert(sizeof(struct posenc_backend) == offsetof(struct posenc_backend, sinusoidal) +
                                                    PLACES * sizeof(void (*)(void)),
               "struct posenc_backend has as many as the list");

static const struct posenc_backend *const backends[] = {
#define POSENC_BACKEND(name) &posenc_backend_##name,
#include "backends.def"
};
enum { BUILT_IN = sizeof backends / sizeof backends[0], ADDED_MOST = 16 };

const size_t posenc_built_in = BUILT_IN;

static _Atomic(const struct posenc_backend *) added[ADDED_MOST]; /* NULL after the last */

const char *posenc_kernel_name(enum posenc_kernel kernel)
{
    return posenc_is_kernel(kernel) ? kernels[kernel].name : NULL;
}

const char *posenc_kernel_summary(enum posenc_kernel kernel)
{
    return posenc_is_kernel(kernel) ? kernels[kernel].summary : NULL;
}

enum posenc_kernel posenc_kernel_named(const char *name, size_t length)
{
    for (unsigned k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (strlen(kernels[k].name) == length && memcmp(kernels[k].name, name, length) == 0)
            return (enum posenc_kernel)k;
    return POSENC_KERNEL_COUNT;
}

enum posenc_kernel posenc_kernel_find(const char *name)
{
    return name ? posenc_kernel_named(name, strlen(name)) : POSENC_KERNEL_COUNT;
}

bool posenc_is_compatible(const struct posenc_backend *backend)
{
    return backend && backend->abi == POSENC_ABI &&
           (backend->size == sizeof *backend ||
            posenc_is_grown(&posenc_grown_backend, backend));
}

bool posenc_provides(const struct posenc_backend *backend, enum posenc_kernel kernel)
{
    void (*function)(void);
    if (!posenc_is_compatible(backend) || !posenc_is_kernel(kernel) ||
        kernels[kernel].offset + sizeof function > backend->size)
        return false;
    memcpy(&function, (const char *)backend + kernels[kernel].offset, sizeof function);
    return function != NULL;
}

const struct posenc_backend *posenc_backend_at(size_t index)
{
    if (index < BUILT_IN)
        return backends[index];
    return index < BUILT_IN + ADDED_MOST ? atomic_load(&added[index - BUILT_IN]) : NULL;
}

const struct posenc_backend *posenc_backend_named(const char *name, size_t length)
{
    const struct posenc_backend *b;
    for (size_t i = 0; (b = posenc_backend_at(i)) != NULL; i++)
        if (strlen(b->name) == length && memcmp(b->name, name, length) == 0)
            return b;
    return NULL;
}

const struct posenc_backend *posenc_backend_find(const char *name)
{
    return name ? posenc_backend_named(name, strlen(name)) : NULL;
}

enum posenc_status posenc_backend_add(const struct posenc_backend *backend)
{
    if (!posenc_is_compatible(backend) || !backend->name || !backend->name[0])
        return POSENC_ERR_ARGUMENT;
    for (int i = 0; i < BUILT_IN; i++)
        if (strcmp(backends[i]->name, backend->name) == 0)
            return POSENC_ERR_ARGUMENT;
    for (int i = 0; i < ADDED_MOST; i++) {
        const struct posenc_backend *there = NULL;
        if (atomic_compare_exchange_strong(&added[i], &there, backend) || there == backend)
            return POSENC_OK;
        if (strcmp(there->name, backend->name) == 0)
            return POSENC_ERR_ARGUMENT;
    }
    return POSENC_ERR_MEMORY;
}

const char *posenc_backend_obstacle(const struct posenc_backend *backend)
{
    if (!backend)
        return "no backend";
    if (!posenc_is_compatible(backend))
        return "built for another version of posenc";
    return posenc_cpu_obstacle(backend->needs);
}

_Atomic(const struct posenc_backend *) posenc_found[POSENC_FOUND];
_Static_assert((int)BUILT_IN < (int)POSENC_FOUND, "a place that is free ends a search");

static void note_found(const struct posenc_backend *backend)
{
    for (size_t at = posenc_place(backend);; at = (at + 1) % POSENC_FOUND) {
        const struct posenc_backend *there = NULL;
        if (atomic_compare_exchange_strong(&posenc_found[at], &there, backend) ||
            there == backend)
            return;
    }
}

/* Remembered for those of the list, since calls ask. */
bool posenc_runs_here(const struct posenc_backend *backend)
{
    enum { UNKNOWN, YES, NO };
    static _Atomic unsigned char known[BUILT_IN + ADDED_MOST];
    const struct posenc_backend *listed;
    for (size_t i = 0; (listed = posenc_backend_at(i)) != NULL; i++) {
        if (listed != backend)
            continue;
        unsigned char answer = atomic_load_explicit(&known[i], memory_order_relaxed);
        if (answer == UNKNOWN) {
            answer = posenc_backend_obstacle(backend) ? NO : YES;
            if (answer == YES && i < BUILT_IN)
                note_found(backend);
            atomic_store_explicit(&known[i], answer, memory_order_relaxed);
        }
        return answer == YES;
    }
    return posenc_backend_obstacle(backend) == NULL;
}
