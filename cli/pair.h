/*
 * posenc pair: two builds of the library side by side, in one process.
 *
 * Python runs it several times for `posenc compare` (reports/posenc/compare) and judges what it prints.
 */
#ifndef POSENC_CLI_PAIR_H
#define POSENC_CLI_PAIR_H

#include "base/clock.h"
#include "bench/pairs.h"
#include "conformance/engine/library.h"
#include "work.h"

/* ---- What two builds have in common, and what of it is compared ---- */

enum { PAIRING_NAMES = 2 * BACKENDS_MAX };

/* A backend of one of them or of both. */
struct pairing_name {
    const char *name;
    const struct implementation *base, *head,
        *again; /* NULL: not in that build, or cannot run here */
};

struct pairing {
    struct library *base, *head,
        *again; /* again: a second copy of base, where it was asked for */
    size_t n_names;
    struct pairing_name names[PAIRING_NAMES];
    size_t n_cases;
    struct bench_case *cases;
    bool all_alike; /* whatever lies in memory is timed on every backend, too */
};

enum pairing_kind { PAIRING_NONE, PAIRING_BOTH, PAIRING_NEW, PAIRING_REMOVED };

/* Opens the two builds that the command line names, and chooses.  EXIT_FINE; EXIT_USAGE or
 * EXIT_INCOMPARABLE after a message. */
int pairing_open(struct pairing *pairing, struct work *work, struct cli *cli, bool with_null);
void pairing_close(struct pairing *pairing);

/* Hashes the file that a build was loaded from, in hexadecimal. */
void pairing_sha256(const struct library *library, char hex[65]);

/* Returns which builds have a backend (by its index) for a case; PAIRING_NONE: it is not compared. */
enum pairing_kind pairing_kind(const struct pairing *pairing, size_t at_case, size_t name);

/* ---- The command ---- */

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
    size_t broken; /* results of head that are wrong or fail where those of base do not */
};

/* Compares the results of both builds exactly; records of changes and agreements. */
int pair_results(struct pair_run *run);
/* Times the rows that are wanted; records of samples. */
int pair_times(struct pair_run *run);
/* Counts instructions in both builds, of one row at least, within --budget. */
void pair_counts(struct pair_run *run);

/* The record of a row that is there. */
json_t *pair_record_planned(const struct pair_run *run, const struct pair_row *row,
                            bool with_entries);
/* Prints the compact table of records. */
int pair_print(const json_t *records, FILE *out);
extern const struct format pair_formats[];

#endif
