/*
 * posenc pair: compares two builds of the library, base and head, in one process. posenc compare
 * (reports/posenc/compare) runs it several times and derives the verdicts from its records. A row is a case on a
 * backend: alibi/f32/given/l2 on avx2.
 */
#ifndef POSENC_CLI_PAIR_H
#define POSENC_CLI_PAIR_H

#include "base/clock.h"
#include "bench/pairs.h"
#include "conformance/engine/library.h"
#include "session.h"

/* Backend of one build or both. An implementation is NULL if the build lacks it or it cannot run here. `control` is the
 * implementation in a second copy of base. */
struct pair_backend {
    const struct posenc_backend *descriptor; /* that of head, else of base */
    const struct implementation *base, *head, *control;
};

/* Builds that provide the kernel of a case on a backend. */
enum pair_providers { PROVIDED_BY_NONE, PROVIDED_BY_BOTH, PROVIDED_BY_HEAD, PROVIDED_BY_BASE };

/* Case on a backend. */
struct pair_row {
    const struct bench_case *bench_case;
    const struct pair_backend *backend;
    enum pair_providers providers;
    bool chosen; /* selected by --pairs; all rows without it */
};

struct pair_run {
    struct session session;
    struct library *base, *head;
    struct library *control; /* second copy of base, for the A/A control; NULL without times */
    size_t n_backends, n_cases, n_rows, n_chosen;
    struct pair_backend backends[BACKENDS_MAX];
    struct bench_case *cases;
    struct pair_row *rows;    /* case by case */
    struct pair_row **chosen; /* in the order of --pairs */
    uint64_t seed;
    bool head_failed; /* a check */
};

/* Runs the suites on both builds and compares their outputs. Appends records of checks, changes and agreements. */
void pair_compare_results(struct pair_run *run);
/* Times the selected rows. Appends records of samples. */
void pair_time_rows(struct pair_run *run);
/* Counts instructions of the selected rows in both builds, at least of one row, within --time-limit. */
void pair_count_instructions(struct pair_run *run);

/* Returns the record that announces a row; with the addresses of its code if `with_entries`. */
json_t *pair_record_planned(const struct pair_row *row, bool with_entries);

#endif
