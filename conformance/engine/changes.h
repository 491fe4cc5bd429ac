/*
 * Comparison of the outputs of two implementations, base and head, bit by bit. The evidence is exact
 * and repeatable, without statistics.
 *
 * Both run the problems of the digests, those of the golden vectors, and those of the caller. All NaN
 * are equal; zeros of different signs are not. Where outputs moved, the oracle says which side is
 * nearer to the truth, for the call as the library of this program makes it. Functions of an
 * implementation that make frequencies or slopes are among the things that may change.
 */
#ifndef POSENC_CHANGES_H
#define POSENC_CHANGES_H

#include "engine.h"
#include "conformance/problem/notation.h"

/* A problem whose outputs differ. */
struct change {
    /* The case of head, with its problem. `max` is the worst error of a value that moved, `got` that
     * value, `want` and `worst_at` its expected value and place. */
    struct conf_result head;
    double base_max; /* the worst error of base */
    float base_got;  /* the value of base at that place */
    uint64_t moved, of;
    /* The first value that moved. */
    char first[96];
    float first_base, first_head;
};

/* Problems that both ran, values compared, and values that moved. */
struct changes_seen {
    uint64_t problems, values, moved;
};

struct changes_request {
    const struct conf_options *options; /* cases, golden vectors */
    const struct implementation *base, *head;
    const struct problem_line *extra; /* further problems, with names */
    size_t n_extra;
    void (*on_change)(void *user, const struct change *change);
    /* Takes the results of a problem that one of the two could not run. */
    void (*on_fault)(void *user, const struct conf_result *base,
                     const struct conf_result *head);
    void *user;
};

/* Reports the changes of a kernel that both provide. */
struct changes_seen changes_find(const struct changes_request *request,
                                 enum posenc_kernel kernel);

#endif
