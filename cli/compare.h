/*
 * A comparison of two builds under way: its rows, a backend on a case each, with what was measured.
 */
#ifndef POSENC_CLI_COMPARE_H
#define POSENC_CLI_COMPARE_H

#include "bench/identity.h"
#include "bench/pairs.h"
#include "conformance/engine/changes.h"
#include "reports/statistics/verdict.h"
#include "pairing.h"
#include "revisions.h"

struct launch_item;

enum { COMPARE_LAUNCHES = 24 };

struct compare_row {
    size_t at_case, name; /* of the pairing */
    enum pairing_kind kind;
    /* Not BENCH_TIMED: whose fault (PAIR_SIDES: it ended while both took turns), and how. */
    enum bench_outcome outcome;
    enum pair_side who;
    bool crashed;
    char reason[PAIR_REASON];
    size_t launches, confirming;
    int look;
    size_t rounds[COMPARE_LAUNCHES];
    double *head[COMPARE_LAUNCHES], *null[COMPARE_LAUNCHES]; /* logarithms, see bench/pairs.h */
    double base_ns[COMPARE_LAUNCHES], head_ns[COMPARE_LAUNCHES];
    json_t *roof;   /* of the last launch, or NULL */
    double spent_s; /* on its launches */
    struct verdict verdict;
    char code[2][CODE_DIGEST]; /* of base and head; "": not known */
    bool same_code;            /* known, and the same */
    bool counted;              /* its instructions were, and so those of rows like it */
};

struct compare {
    struct work work;
    struct pairing pairing;
    char sha256[2][65];           /* of base and head */
    struct revision revisions[2]; /* that they were built of; or blank */
    double budget_s, begun, stop_at, threshold;
    uint64_t seed;
    unsigned number;   /* launches so far */
    bool checked;      /* all outputs were, in the launch before */
    double overhead_s; /* of the last one: what was no rounds */
    size_t n, n_todo, done, total;
    struct compare_row *rows, **todo; /* todo: of the launch that runs */
    struct launch_item *items;
    char notes[32];
    size_t failing, grown; /* cases that fail as they did not; whose largest error is larger */
};

/* Compares results, and makes their records.  EXIT_FINE, or EXIT_USAGE after a message. */
int compare_results(struct compare *all);
/* Whether each row has the same machine code in both builds (compare_code.c). */
void compare_code(struct compare *all);
/* Records of the instructions in base and in head of what was timed and is not the same, what has a
 * verdict first, one at least, until it is to stop. */
void compare_counts(struct compare *all, bool (*stop)(void *user), void *user);

/* The record of a row, by what was measured and judged. */
json_t *emit_pair(const struct compare *all, const struct compare_row *row);

#endif
