/* Structs that grow: see grow.h. */
#include "grow.h"

#include <stdalign.h>
#include <string.h>

/* Members that every header has had: arguments up to `error`, a spec up to its dimension, a backend
 * up to its kernels. */
#define THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

#define POSENC_SIGNATURE(name)                                                                 \
    static void init_##name(void *to)                                                          \
    {                                                                                          \
        *(struct posenc_##name##_args *)to = posenc_##name##_args_init();                      \
    }                                                                                          \
    const struct grown posenc_grown_##name##_args = {                                          \
        sizeof(struct posenc_##name##_args), THROUGH(struct posenc_##name##_args, error),      \
        alignof(struct posenc_##name##_args), init_##name                                      \
    };
#include <posenc_signatures.def>

static void init_freqs_spec(void *to)
{
    *(struct posenc_freqs_spec *)to = posenc_freqs_spec_init();
}

const struct grown posenc_grown_freqs_spec = { sizeof(struct posenc_freqs_spec),
                                               THROUGH(struct posenc_freqs_spec, dim),
                                               alignof(struct posenc_freqs_spec),
                                               init_freqs_spec };

/* Backends are never copied. */
const struct grown posenc_grown_backend = { sizeof(struct posenc_backend),
                                            offsetof(struct posenc_backend, sinusoidal),
                                            alignof(struct posenc_backend), NULL };

bool posenc_is_grown(const struct grown *grown, const void *from)
{
    enum { MOST_GROWTH = 8 }; /* times as large: beyond, it is no size */
    size_t size;
    memcpy(&size, from, sizeof size);
    if (size < grown->first || size > MOST_GROWTH * grown->size || size % grown->align != 0)
        return false;
    for (size_t i = grown->size; i < size; i++)
        if (((const char *)from)[i] != 0)
            return false;
    return true;
}

enum posenc_status posenc_grow(const struct grown *grown, void *to, const void *from)
{
    size_t size = 0;
    memcpy(&size, from, sizeof size);
    grown->init(to);
    if (size < grown->first)
        return POSENC_ERR_ARGUMENT;
    memcpy(to, from, size < grown->size ? size : grown->size);
    memcpy(to, &grown->size, sizeof grown->size);
    return posenc_is_grown(grown, from) ? POSENC_OK : POSENC_ERR_ARGUMENT;
}
