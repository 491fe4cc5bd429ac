/*
 * The lists of kernels and backends, for the library's own files.
 */
#ifndef POSENC_REGISTRY_H
#define POSENC_REGISTRY_H

#include "internal.h"

static inline bool posenc_is_kernel(enum posenc_kernel kernel)
{
    return (unsigned)kernel < POSENC_KERNEL_COUNT;
}

/* How many of the list come with the library; added ones follow. */
extern const size_t posenc_built_in;

/* By the first `length` characters of a text; POSENC_KERNEL_COUNT, NULL: there is none. */
enum posenc_kernel posenc_kernel_named(const char *name, size_t length);
const struct posenc_backend *posenc_backend_named(const char *name, size_t length);

/* Of a layout that this library reads: a plug-in may have been built against another header. */
bool posenc_is_compatible(const struct posenc_backend *backend);
bool posenc_runs_here(const struct posenc_backend *backend);

#endif
