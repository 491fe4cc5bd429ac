/* Structs that posenc.h may extend: see versioned.h. */
#include "versioned.h"

#include <stdalign.h>
#include <string.h>

/* Size of the members up to `member`. The first release had arguments up to `error`, specs up to `dim`, and backends up
 * to their first kernel. */
#define SIZE_THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

#define POSENC_SIGNATURE(name)                                                                 \
    static void init_##name(void *to)                                                          \
    {                                                                                          \
        *(struct posenc_##name##_args *)to = posenc_##name##_args_init();                      \
    }                                                                                          \
    const struct versioned posenc_versioned_##name##_args = {                                  \
        sizeof(struct posenc_##name##_args), SIZE_THROUGH(struct posenc_##name##_args, error), \
        alignof(struct posenc_##name##_args), init_##name                                      \
    };
#include <posenc_signatures.def>

static void init_freqs_spec(void *to)
{
    *(struct posenc_freqs_spec *)to = posenc_freqs_spec_init();
}

const struct versioned posenc_versioned_freqs_spec = {
    sizeof(struct posenc_freqs_spec), SIZE_THROUGH(struct posenc_freqs_spec, dim),
    alignof(struct posenc_freqs_spec), init_freqs_spec
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
    versioned->init(to);
    if (size < versioned->min_size)
        return POSENC_ERR_ARGUMENT;
    memcpy(to, from, size < versioned->size ? size : versioned->size);
    memcpy(to, &versioned->size, sizeof versioned->size);
    return posenc_versioned_is_valid(versioned, from) ? POSENC_OK : POSENC_ERR_ARGUMENT;
}
