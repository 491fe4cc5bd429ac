/*
 * What differs in results between two builds: bits on the same problems, statuses and errors of
 * the suites.
 *
 * The suites run on head.  Base answers them as well where outputs moved, where head fails a
 * case, and with --full; elsewhere its answers would be those of head, unless a scan of tables
 * meets a value that moved where none of the problems has one.
 */
#ifndef POSENC_CLI_ACCURACY_H
#define POSENC_CLI_ACCURACY_H

#include "conformance/engine/changes.h"

struct accuracy {
    struct changes_seen seen;
    size_t cases, failed; /* of head */
    size_t changes[CHANGE_DIRECTIONS];
};

/* All changes of a kernel.  `ask` selects no kernels. */
struct accuracy accuracy_compare(const struct changes_ask *ask, enum posenc_kernel kernel,
                                 change_sink *sink, void *user);
#endif
