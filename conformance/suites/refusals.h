/*
 * What refusals.c and refused_calls.c share: one argument of a valid call made bad.
 */
#ifndef POSENC_REFUSALS_H
#define POSENC_REFUSALS_H

#include "conformance/problem/signature.h"
#include "memory.h"

#define STATUS(name) (1u << POSENC_ERR_##name)

/* Of which tensor or parameter, which of its dimensions, to what value; other positions. */
struct spoiled {
    const struct tensor_row *row;
    const struct parameter *parameter;
    int dim;
    double value;
    const struct posenc_positions *positions;
};

struct bad_argument {
    const char *name;
    unsigned allowed; /* statuses, as bits */
    void (*make)(struct call *call, const struct spoiled *of);
};

/* refused_calls.c: what no row says; the next of a signature's, from *i on, NULL after the last. */
const struct bad_argument *bad_argument_next(enum signature_id signature, size_t *i);

#endif
