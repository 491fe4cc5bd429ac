/*
 * What the records say of two builds side by side: pairs that were timed, results that changed, instructions
 * that were counted.  What needs a person comes first.
 */
#ifndef POSENC_COMPARISON_H
#define POSENC_COMPARISON_H

#include "query.h"
#include "statistics/verdict.h"

struct pair_row {
    const json_t *json;
    const char *id, *kernel, *backend, *footprint, *reason;
    enum verdict_kind kind;
    double base_ns, head_ns;           /* of one call; 0: not timed */
    double ratio, lo, hi, level;       /* head / base; NaN: not timed */
    double floor, budget, null_ratio;  /* shares; base again / base */
    double more_s;                     /* would settle it; 0: none is known */
    double base_counted, head_counted; /* instructions an element; NaN: not counted */
    int launches, rounds;              /* rounds: of all launches */
    bool confirmed, broken; /* broken: head is wrong, refuses or crashes where base does not */
    bool fails;             /* fails: a gate, as it is slower by the budget or more for sure */
};

/* A result that is another one in head, without any statistics. */
struct change_row {
    const json_t *json;
    const char *id, *kernel, *backend, *suite, *what; /* status, error, bits */
    const char *metric, *witness;
    int worse; /* 1, -1: better, 0: neither is known */
};

struct comparison {
    size_t n, n_changes;
    struct pair_row *rows;
    struct change_row *changes;
    size_t of[VERDICT_KINDS];
    size_t broken;
    size_t failing;              /* rows that fail a gate */
    size_t worse, better, moved; /* changes; moved: neither worse nor better */
    size_t timed, known;         /* known: timed, and not unclear */
    double geomean, null_median,
        null_most; /* of head / base where known; how far base is from itself, as shares */
    struct verdict_shift shift;
};

/* -1: no memory.  Rows point into the records. */
int comparison_make(const struct results *results, struct comparison *comparison);
void comparison_free(struct comparison *comparison);
/* Whether there is something to compare in these records. */
bool has_comparison(const struct results *results);

/* "SLOWER", "identical code": what a person reads. */
const char *verdict_word(enum verdict_kind kind);
const char *row_word(const struct pair_row *row); /* FAILED where head is broken */
/* "pass", "0.94 ulp", "8 of 4096 moved": one side of a change. */
enum { SIDE_TEXT = 96 };
void change_side(const struct change_row *change, const char *side, char text[SIDE_TEXT]);

#endif
