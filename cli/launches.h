/*
 * Fresh processes that time pairs: the program starts itself with a command that no help text lists
 * (launch.c), so that each launch has its own memory, pages and layout.  Orders go to its standard
 * input, results come from a pipe of their own, both as JSON.  A process that ends before its time, or
 * says nothing for minutes, is a result of the pair that it was at; the others get another process.
 */
#ifndef POSENC_CLI_LAUNCHES_H
#define POSENC_CLI_LAUNCHES_H

#include "bench/pairs.h"
#include "pairing.h"

enum { LAUNCH_RESULTS = 3 }; /* the file that a launch writes its results to */

/* What one launch is to time: a backend on a case. */
struct launch_item {
    size_t at_case, name;
};

struct launch {
    const struct cli *cli;
    const struct pairing *pairing;
    size_t n;
    const struct launch_item *items; /* case by case */
    unsigned number;                 /* of the launch */
    uint64_t seed;
    double share_s; /* for the rounds of all items */
    bool rows_alone;
    char sha256[2][65]; /* of the files of base and head */
    /* A result, as launch.c sends it, or NULL and how the process ended; `who` was running. */
    void (*result)(void *user, size_t item, const json_t *result, enum pair_side who,
                   const char *ended);
    bool (*stop)(void *user, size_t item); /* asked a few times a second; that item is next */
    void *user;
};

/* EXIT_FINE, also where it was stopped; EXIT_USAGE after a message. */
int launch_run(struct launch *launch);

#endif
