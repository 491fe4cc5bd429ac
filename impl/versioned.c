/* Structs that posenc.h may extend: see versioned.h. */
#include "versioned.h"

#include <stdalign.h>
#include <string.h>

/* Defaults of the arguments of a signature, whose size is at least that of its first two members. */
#define DEFAULTS(name, ...)                                                                    \
    static const struct posenc_##name##_args defaults_##name = {                               \
        .size = sizeof(struct posenc_##name##_args), __VA_ARGS__                               \
    };                                                                                         \
    const struct versioned posenc_versioned_##name##_args = {                                  \
        sizeof(struct posenc_##name##_args), 2 * sizeof(size_t),                               \
        alignof(struct posenc_##name##_args), &defaults_##name                                 \
    };
DEFAULTS(sinusoidal, .scale = 1.0, .x_scale = 1.0f)
DEFAULTS(learned, .x_scale = 1.0f)
DEFAULTS(learned_grad, .accumulate = false)
DEFAULTS(rope_table, .freqs = NULL)
DEFAULTS(rope, .transpose = false)
DEFAULTS(alibi, .x_scale = 1.0f)
DEFAULTS(t5, .x_scale = 1.0f)
DEFAULTS(distance, .x_scale = 1.0f)
DEFAULTS(window, .x_scale = 1.0f)
DEFAULTS(relative, .scale = 1.0f, .x_scale = 1.0f)
DEFAULTS(relative_sum, .index = NULL)
DEFAULTS(rope_qk_norm, .epsilon = 1e-6f)

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
