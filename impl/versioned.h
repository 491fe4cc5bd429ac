/*
 * Structs that posenc.h may extend: `size`, the first member, is what the caller's compiler saw.
 *
 * A smaller size comes from a program built with an older header: members that it does not know get their defaults,
 * such as an x_scale of 1. A larger size comes from a newer program: the members that this library does not know must
 * be zero, which means that the program does not use them.
 */
#ifndef POSENC_VERSIONED_H
#define POSENC_VERSIONED_H

#include "internal.h"

#include <stdalign.h>

/* Sizes of one such struct, and its defaults. */
struct versioned {
    size_t size;          /* in this library */
    size_t min_size;      /* in the first release */
    size_t align;         /* each valid size is a multiple of it */
    const void *defaults; /* `size` bytes; NULL for a struct that is never copied */
};

#define POSENC_SIGNATURE(name) extern const struct versioned posenc_versioned_##name##_args;
#include <posenc_signatures.def>
extern const struct versioned posenc_versioned_freqs_spec;

/* Defines them, with defaults that are not 0, beside the checks of the signature. A size is at least that of the first
 * two members. */
#define DEFAULTS(name, ...)                                                                    \
    static const struct posenc_##name##_args defaults_##name = {                               \
        .size = sizeof(struct posenc_##name##_args), __VA_ARGS__                               \
    };                                                                                         \
    const struct versioned posenc_versioned_##name##_args = {                                  \
        sizeof(struct posenc_##name##_args), 2 * sizeof(size_t),                               \
        alignof(struct posenc_##name##_args), &defaults_##name                                 \
    };

/* A backend provides the kernels that lie below its size. */
extern const struct versioned posenc_versioned_backend;

/* Returns true if the struct `from` is one that some header may have declared. */
bool posenc_versioned_is_valid(const struct versioned *versioned, const void *from);

/* Copies *from to *to, which has this library's size. Returns ARGUMENT unless `from` is valid; *to is filled even then,
 * with defaults if the size is too small. */
enum posenc_status posenc_versioned_copy(const struct versioned *versioned, void *to,
                                         const void *from);

/* Writes the defaults to a struct of `size` bytes, as the caller's compiler saw it. It becomes zero if there is no such
 * struct, or if `size` is too small. */
void posenc_versioned_defaults(const struct versioned *versioned, void *to, size_t size);

#endif
