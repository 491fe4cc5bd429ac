/*
 * Mistakes that any kernel can make: see everywhere.c.
 */
#ifndef POSENC_EVERYWHERE_H
#define POSENC_EVERYWHERE_H

#include <posenc.h>

/* What a mistake sees of a call, whatever its signature. */
struct seen {
    const struct posenc_tensor *out, *second, *x; /* second: sin; NULL where there is none */
    const struct posenc_positions *positions;
    const void *input; /* some input that must not be written; NULL: none in this call */
};

enum mistake_needs { NEEDS_NOTHING, NEEDS_X, NEEDS_POSITIONS };

struct mistake {
    const char *name, *suite,
        *property; /* the case <kernel>/f32/<suite>/<property> must fail */
    enum mistake_needs needs;
    void (*before)(const struct seen *seen);
    void (*after)(const struct seen *seen);
};
extern const struct mistake mistakes[];
extern const int n_mistakes;

/* The base backend, every kernel of it with the mistake; one at a time. */
struct posenc_backend mistaken_backend(const struct mistake *mistake);
/* Calls since then. */
unsigned long mistaken_entries(void);

#endif
