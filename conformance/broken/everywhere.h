/*
 * Mistakes that any kernel can make: see everywhere.c.
 */
#ifndef POSENC_EVERYWHERE_H
#define POSENC_EVERYWHERE_H

#include "wide.h"

/* What a mistake sees of a call, whatever its signature: tensors of rank 4, without data where
 * there are none. */
struct seen {
    struct posenc_tensor out, second; /* second: sin */
    struct posenc_tensor x;
    const struct posenc_positions *positions; /* NULL: none */
    const void *input; /* some input that must not be written; NULL: none in this call */
};

/* The kernels that a mistake concerns. */
enum mistake_needs {
    NEEDS_NOTHING,
    NEEDS_X,
    NEEDS_IN_PLACE, /* x that may be out */
    NEEDS_POSITIONS,
    NEEDS_ENCODING, /* an output that attention is given */
    NEEDS_STORED,   /* out in 16 bits */
    NEEDS_STORED_X, /* x as well */
    NEEDS_STORES,   /* those that some law has store every value, */
    NEEDS_COPIES,   /* by a copy: arithmetic may make all NaN the same one; */
    NEEDS_LOADS     /* and load */
};

struct mistake {
    const char *name, *suite,
        *property; /* the case <kernel>/<dtype>/<suite>/<property> must fail */
    enum mistake_needs needs;
    enum posenc_dtype dtype; /* the first type that there is the case of, and the last */
    enum posenc_dtype last;
    /* What is done: before and after the real kernel, or, of storage, around it. */
    void (*before)(const struct seen *seen);
    void (*after)(const struct seen *seen);
    const struct conversion *conversion;
};
extern const struct mistake mistakes[], storage_mistakes[]; /* everywhere.c, stored.c */
extern const int n_mistakes, n_storage_mistakes;

/* The base backend, every kernel of it with the mistake; one at a time. */
struct posenc_backend mistaken_backend(const struct mistake *mistake);
/* Calls since then. */
unsigned long mistaken_entries(void);

#endif
