/*
 * posenc pair: two builds of the library side by side, in one process.
 *
 * Python runs it several times for `posenc compare` (reports/posenc/compare) and judges what it prints.
 */
#ifndef POSENC_CLI_PAIR_H
#define POSENC_CLI_PAIR_H

#include "base/clock.h"
#include "bench/pairs.h"
#include "pairing.h"

/* A backend on a case. */
struct pair_row {
    size_t at_case, name; /* of the pairing */
    enum pairing_kind kind;
    bool wanted;  /* by --pairs, or without it */
    bool counted; /* its instructions were, or those of a row like it */
};

struct pair_run {
    struct work work;
    struct pairing pairing;
    size_t n;
    struct pair_row *rows; /* case by case */
    size_t *wanted;        /* rows in the order of --pairs */
    size_t n_wanted;
    uint64_t seed;
    double begun;
    size_t broken; /* results of head that are wrong or fail where those of base do not */
};

/* Compares the results of both builds exactly; records of changes and agreements. */
int pair_results(struct pair_run *run);
/* Times the rows that are wanted; records of samples. */
int pair_times(struct pair_run *run);
/* Counts instructions in both builds, of one row at least, within --budget. */
void pair_counts(struct pair_run *run);

/* Records of a row: that it is there, what is running, what one process measured. */
json_t *pair_record_planned(const struct pair_run *run, const struct pair_row *row,
                            bool with_entries);
json_t *pair_record_running(const struct pair_run *run, const struct pair_row *row,
                            const char *who);
json_t *pair_record_samples(const struct pair_run *run, const struct pair_row *row,
                            const struct pair_result *result);

/* Prints the compact table of records. */
int pair_print(const json_t *records, FILE *out);
extern const struct format pair_formats[];

#endif
