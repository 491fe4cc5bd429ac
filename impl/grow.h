/*
 * Structs that grow: `size`, their first member, says how much of one its maker knew.
 *
 * A smaller one comes from a program built against an older header: what it does not know takes
 * its default. A larger one comes from a newer program: what this library does not know has to
 * be zero, which means that it is not used.
 */
#ifndef POSENC_GROW_H
#define POSENC_GROW_H

#include "internal.h"

struct grown {
    size_t size;  /* here */
    size_t first; /* the least there can be */
    size_t align; /* every size is a multiple of it */
    void (*init)(void *to);
};

/* One for each struct of arguments, and the spec of a plan. */
#define POSENC_SIGNATURE(name) extern const struct grown posenc_grown_##name##_args;
#include <posenc_signatures.def>
extern const struct grown posenc_grown_freqs_spec;

/* Sizes of a backend: it has its kernels up to `size`. */
extern const struct grown posenc_grown_backend;

/* Returns true if `from` is a struct of any header. */
bool posenc_is_grown(const struct grown *grown, const void *from);

/* Copies *from to *to, which is of this library's size and filled whatever is found (of what is
 * too small: with defaults). ARGUMENT: unless posenc_is_grown(). */
enum posenc_status posenc_grow(const struct grown *grown, void *to, const void *from);

#endif
