/*
 * Two files of results side by side.  What was checked is compared exactly: statuses, errors, bits, and what is
 * there at all.  Times are a trend and never a verdict: between two runs a machine changes by more than code does.
 */
#ifndef POSENC_COMPARE_FILES_H
#define POSENC_COMPARE_FILES_H

#include "records.h"

struct result_file {
    const char *path;
    const json_t *records;
};

/* What came of it.  `compare` is the member of that name for the header of the comparison; `records` go behind that
 * header: the machine (head's, or base's where head has none), then changes and trends. */
struct files_compared {
    json_t *compare, *records;
    size_t results, times;       /* checks, and timings, in both */
    size_t failed;               /* of head, which did not fail in base: exit 1 */
    size_t worse, better, moved; /* changes, those that failed among the worse */
    size_t
        obstacles; /* other CPU, build, vectors; a run that ended early; nothing in common: exit 5 */
};

/* 0, or -1: no memory. */
int compare_files(const struct result_file *base, const struct result_file *head,
                  struct files_compared *out);
void files_compared_free(struct files_compared *out);

#endif
