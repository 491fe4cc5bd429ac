/*
 * Bitwise comparison of the outputs of two implementations, base and head. It needs no statistics. A change is, for
 * example, "3 of 4096 values moved; the first, at position 7 pair 0, from 0x1p-3 to 0x1.000002p-3".
 *
 * Both run the problems of the digests, of the golden vectors, and of the caller. All NaN count as equal, +0 and -0 do
 * not. A value that differs between base and head has "moved". The oracle computes the errors of both sides for such
 * values. Each call uses the frequencies and slopes that its own implementation builds, so these functions are
 * compared, too.
 */
#ifndef POSENC_CHANGES_H
#define POSENC_CHANGES_H

#include "engine.h"
#include "conformance/problem/notation.h"

/* A problem whose outputs differ, with the worst error of the values that moved. */
struct output_change {
    /* Result of head: id, problem, the worst error `max`, its place, and the values there. */
    struct conf_result head;
    double base_max; /* the worst error of base */
    float base_got;  /* value of base at the same place */
    uint64_t n_moved, n_values;
    char first[96]; /* place of the first value that moved */
    float first_base, first_head;
};

/* Numbers of problems that both ran, of values compared, and of values that moved. */
struct change_counts {
    uint64_t problems, values, moved;
};

struct changes_request {
    const struct conf_options *options; /* selection of cases; golden vectors */
    const struct implementation *base, *head;
    const struct problem_line *extra; /* further problems, with names */
    size_t n_extra;
    void (*on_change)(void *user, const struct output_change *change);
    /* Receives the results of both for a problem that one of them could not run. */
    void (*on_fault)(void *user, const struct conf_result *base,
                     const struct conf_result *head);
    void *user;
};

/* Compares a kernel that both provide. Returns the totals. */
struct change_counts changes_find(const struct changes_request *request,
                                  enum posenc_kernel kernel);

#endif
