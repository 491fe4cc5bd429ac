/*
 * What two builds have in common: their backends by name, the cases of the command line, and which
 * pairs of these are compared.  The process that compares and those that it starts make the same of the
 * same command line.
 */
#ifndef POSENC_CLI_PAIRING_H
#define POSENC_CLI_PAIRING_H

#include "conformance/engine/library.h"
#include "work.h"

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

/* Of the file that a build was loaded from, in hexadecimal. */
void pairing_sha256(const struct library *library, char hex[65]);

/* Whether a backend (by its index) is compared on a case. */
enum pairing_kind pairing_kind(const struct pairing *pairing, size_t at_case, size_t name);

#endif
