/* The lists of kernels and backends: see registry.h. */
#include "registry.h"

#include <stdatomic.h>
#include <string.h>

#include "versioned.h"

/* ---- Kernels ---- */

static const struct kernel_entry {
    const char *name, *summary;
    size_t offset; /* of the function pointer in struct posenc_backend */
} kernels[] = {
#define POSENC_KERNEL(ID, name, signature, summary, ...)                                       \
    { #name, summary, offsetof(struct posenc_backend, name) },
#include "posenc_kernels.def"
};

/* posenc.h repeats the list as ids, prototypes and members of a backend, so that readers and tools see plain C. These
 * assertions keep both equal. */
enum kernel_index {
#define POSENC_KERNEL(ID, name, ...) INDEX_##name,
#include "posenc_kernels.def"
    KERNELS
};
#define POSENC_KERNEL(ID, name, signature, ...)                                                \
    _Static_assert((int)POSENC_KERNEL_##ID == (int)INDEX_##name, "the id of " #name);          \
    _Static_assert(offsetof(struct posenc_backend, name) ==                                    \
                       offsetof(struct posenc_backend, sinusoidal) +                           \
                           INDEX_##name * sizeof(void (*)(void)),                              \
                   "the position of " #name " in struct posenc_backend");                      \
    _Static_assert(                                                                            \
        _Generic(((struct posenc_backend *)0)->name,                                           \
                 enum posenc_status(*)(const struct posenc_##signature##_args *) : 1,          \
                 default : 0),                                                                 \
        "the arguments of " #name " in struct posenc_backend");                                \
    _Static_assert(_Generic(&posenc_##name,                                                    \
                            enum posenc_status(*)(const struct posenc_backend *,               \
                                                  const struct posenc_##signature##_args *,    \
                                                  struct posenc_error *) : 1,                  \
                            default : 0),                                                      \
                   "the arguments of posenc_" #name);
#include "posenc_kernels.def"
_Static_assert((int)POSENC_KERNEL_COUNT == (int)KERNELS,
               "enum posenc_kernel has as many as the list");
_Static_assert(sizeof(struct posenc_backend) == offsetof(struct posenc_backend, sinusoidal) +
                                                    KERNELS * sizeof(void (*)(void)),
               "struct posenc_backend has as many as the list");

const char *posenc_kernel_name(enum posenc_kernel kernel)
{
    return posenc_kernel_is_valid(kernel) ? kernels[kernel].name : NULL;
}

const char *posenc_kernel_summary(enum posenc_kernel kernel)
{
    return posenc_kernel_is_valid(kernel) ? kernels[kernel].summary : NULL;
}

enum posenc_kernel posenc_kernel_find_n(const char *name, size_t length)
{
    for (unsigned k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (strlen(kernels[k].name) == length && memcmp(kernels[k].name, name, length) == 0)
            return (enum posenc_kernel)k;
    return POSENC_KERNEL_NONE;
}

enum posenc_kernel posenc_kernel_find(const char *name)
{
    return name ? posenc_kernel_find_n(name, strlen(name)) : POSENC_KERNEL_NONE;
}

/* ---- Backends ---- */

static const struct posenc_backend *const built_in[] = {
#define POSENC_BACKEND(name) &posenc_backend_##name,
#include "backends.def"
};
enum { BUILT_IN = sizeof built_in / sizeof built_in[0], MAX_ADDED = 16 };

const size_t posenc_built_in_count = BUILT_IN;

static _Atomic(const struct posenc_backend *) added[MAX_ADDED]; /* NULL after the last */

bool posenc_backend_is_compatible(const struct posenc_backend *backend)
{
    return backend && backend->abi == POSENC_ABI &&
           (backend->size == sizeof *backend ||
            posenc_versioned_is_valid(&posenc_versioned_backend, backend));
}

bool posenc_backend_provides(const struct posenc_backend *backend, enum posenc_kernel kernel)
{
    void (*function)(void);
    if (!posenc_backend_is_compatible(backend) || !posenc_kernel_is_valid(kernel) ||
        kernels[kernel].offset + sizeof function > backend->size)
        return false;
    memcpy(&function, (const char *)backend + kernels[kernel].offset, sizeof function);
    return function != NULL;
}

const struct posenc_backend *posenc_backend_at(size_t index)
{
    if (index < BUILT_IN)
        return built_in[index];
    return index < BUILT_IN + MAX_ADDED ? atomic_load(&added[index - BUILT_IN]) : NULL;
}

const struct posenc_backend *posenc_backend_find_n(const char *name, size_t length)
{
    const struct posenc_backend *b;
    for (size_t i = 0; (b = posenc_backend_at(i)) != NULL; i++)
        if (strlen(b->name) == length && memcmp(b->name, name, length) == 0)
            return b;
    return NULL;
}

const struct posenc_backend *posenc_backend_find(const char *name)
{
    return name ? posenc_backend_find_n(name, strlen(name)) : NULL;
}

enum posenc_status posenc_backend_add(const struct posenc_backend *backend,
                                      struct posenc_error *error)
{
    static const char taken[] = "name of the backend (another one has it)";
    if (!posenc_backend_is_compatible(backend))
        return reject(error, POSENC_ERR_ARGUMENT,
                      backend ? "backend (built for another version of posenc)"
                              : "backend (NULL)");
    if (!backend->name || !backend->name[0])
        return reject(error, POSENC_ERR_ARGUMENT, "name of the backend (none)");
    for (int i = 0; i < BUILT_IN; i++)
        if (strcmp(built_in[i]->name, backend->name) == 0)
            return reject(error, POSENC_ERR_ARGUMENT, taken);
    for (int i = 0; i < MAX_ADDED; i++) {
        const struct posenc_backend *present = NULL;
        if (atomic_compare_exchange_strong(&added[i], &present, backend) || present == backend)
            return POSENC_OK;
        if (strcmp(present->name, backend->name) == 0)
            return reject(error, POSENC_ERR_ARGUMENT, taken);
    }
    return reject_value(error, POSENC_ERR_MEMORY, "backends that were added", MAX_ADDED);
}

const char *posenc_backend_unavailable_reason(const struct posenc_backend *backend)
{
    if (!backend)
        return "no backend";
    if (!posenc_backend_is_compatible(backend))
        return "built for another version of posenc";
    return posenc_cpu_unavailable_reason(backend->required_features);
}

_Atomic(const struct posenc_backend *) posenc_runnable[POSENC_RUNNABLE_SLOTS];
_Static_assert((int)BUILT_IN < (int)POSENC_RUNNABLE_SLOTS, "an empty slot ends each search");

static void add_runnable(const struct posenc_backend *backend)
{
    for (size_t slot = posenc_runnable_slot(backend);;
         slot = (slot + 1) % POSENC_RUNNABLE_SLOTS) {
        const struct posenc_backend *present = NULL;
        if (atomic_compare_exchange_strong(&posenc_runnable[slot], &present, backend) ||
            present == backend)
            return;
    }
}

/* The answer is cached for backends of the list, as each call may need it. */
bool posenc_backend_runs(const struct posenc_backend *backend)
{
    enum { UNKNOWN, YES, NO };
    static _Atomic unsigned char cache[BUILT_IN + MAX_ADDED];
    const struct posenc_backend *listed;
    for (size_t i = 0; (listed = posenc_backend_at(i)) != NULL; i++) {
        if (listed != backend)
            continue;
        unsigned char answer = atomic_load_explicit(&cache[i], memory_order_relaxed);
        if (answer == UNKNOWN) {
            answer = posenc_backend_unavailable_reason(backend) ? NO : YES;
            if (answer == YES && i < BUILT_IN)
                add_runnable(backend);
            atomic_store_explicit(&cache[i], answer, memory_order_relaxed);
        }
        return answer == YES;
    }
    return posenc_backend_unavailable_reason(backend) == NULL;
}
