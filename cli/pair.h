/*
 * posenc pair: two builds of the library side by side, in one process.
 *
 * Python runs it several times for `posenc compare` (reports/posenc/compare) and judges the records.
 */
#ifndef POSENC_CLI_PAIR_H
#define POSENC_CLI_PAIR_H

#include "base/clock.h"
#include "bench/pairs.h"
#include "conformance/engine/library.h"
#include "work.h"

enum { PAIR_BACKENDS = 2 * BACKENDS_MAX };

/* A backend of one build or of both. An implementation is NULL if that build lacks it, or if it cannot
 * run here. */
struct pair_backend {
    const char *name;
    const struct implementation *base, *head, *again;
};

/* The builds that have the kernel of a case on a backend. */
enum pair_owner { OWNED_BY_NONE, OWNED_BY_BOTH, OWNED_BY_HEAD, OWNED_BY_BASE };

/* A case on a backend. */
struct pair_row {
    const struct bench_case *bench_case;
    const struct pair_backend *backend;
    enum pair_owner owner;
    bool wanted;  /* listed by --pairs, or without that option */
    bool counted; /* its instructions were, or those of a row like it */
};

struct pair_run {
    struct work work;
    struct library *base, *head;
    struct library *again; /* a second copy of base, if times are taken */
    size_t n_backends, n_cases, n_rows, n_wanted;
    struct pair_backend backends[PAIR_BACKENDS];
    struct bench_case *cases;
    struct pair_row *rows;    /* case by case */
    struct pair_row **wanted; /* rows in the order of --pairs */
    uint64_t seed;
    size_t broken; /* results of head that are wrong or fail where those of base do not */
};

/* Checks both builds and compares their outputs; adds records of checks, changes and agreements. */
int pair_results(struct pair_run *run);
/* Times the rows that are wanted; adds records of samples. */
int pair_times(struct pair_run *run);
/* Counts instructions in both builds, of one row at least, within --budget. */
void pair_counts(struct pair_run *run);

/* Makes the record of a row before it is run. */
json_t *pair_record_planned(const struct pair_row *row, bool with_entries);
/* Prints the compact table of records. */
int pair_print(const json_t *records, FILE *out);
extern const struct format pair_formats[];

#endif
