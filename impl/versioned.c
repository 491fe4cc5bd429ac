/* Structs that posenc.h may extend: see versioned.h. `size` is the first member of each. A specification must reach its
 * member dim, and a backend its first kernel. */
#include "versioned.h"

#include <string.h>

static const struct posenc_freqs_spec defaults_freqs_spec = { .size = sizeof(
                                                                  struct posenc_freqs_spec),
                                                              .rope_theta = 10000.0,
                                                              .factor = 1.0,
                                                              .beta_fast = 32.0,
                                                              .beta_slow = 1.0,
                                                              .truncate = true,
                                                              .partial_rotary_factor = 1.0 };

const struct versioned posenc_versioned_freqs_spec = {
    sizeof(struct posenc_freqs_spec), offsetof(struct posenc_freqs_spec, dim) + sizeof(int64_t),
    alignof(struct posenc_freqs_spec), &defaults_freqs_spec
};

/* Backends are never copied, so they need no defaults. */
const struct versioned posenc_versioned_backend = { sizeof(struct posenc_backend),
                                                    offsetof(struct posenc_backend, sinusoidal),
                                                    alignof(struct posenc_backend), NULL };

bool posenc_versioned_is_valid(const struct versioned *versioned, const void *from)
{
    enum { MAX_GROWTH = 8 }; /* a size more than 8 times as large is garbage */
    size_t size;
    memcpy(&size, from, sizeof size);
    if (size < versioned->min_size || size > MAX_GROWTH * versioned->size ||
        size % versioned->align != 0)
        return false;
    for (size_t i = versioned->size; i < size; i++)
        if (((const char *)from)[i] != 0)
            return false;
    return true;
}

enum posenc_status posenc_versioned_copy(const struct versioned *versioned, void *to,
                                         const void *from)
{
    size_t size = 0;
    memcpy(&size, from, sizeof size);
    memcpy(to, versioned->defaults, versioned->size);
    if (size < versioned->min_size)
        return POSENC_ERR_ARGUMENT;
    memcpy(to, from, size < versioned->size ? size : versioned->size);
    memcpy(to, &versioned->size, sizeof versioned->size);
    return posenc_versioned_is_valid(versioned, from) ? POSENC_OK : POSENC_ERR_ARGUMENT;
}

void posenc_versioned_defaults(const struct versioned *versioned, void *to, size_t size)
{
    memset(to, 0, size);
    if (versioned && size >= versioned->min_size) {
        memcpy(to, versioned->defaults, size < versioned->size ? size : versioned->size);
        memcpy(to, &size, sizeof size);
    }
}

void posenc_freqs_spec_defaults(struct posenc_freqs_spec *spec, size_t size)
{
    posenc_versioned_defaults(&posenc_versioned_freqs_spec, spec, size);
}
