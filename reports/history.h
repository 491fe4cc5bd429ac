/*
 * Results of many runs in their order: how near to its roof each case was, with the changes of its level
 * (statistics/changepoints.h), and which errors changed, exactly.  Machines and types of build are never mixed: each
 * has a history of its own.
 */
#ifndef POSENC_HISTORY_H
#define POSENC_HISTORY_H

#include "records.h"

struct history_file {
    const char *path;
    const json_t *records;
};

/* Which results: patterns, of which none means all. */
struct history_names {
    size_t n;
    const char *const *item;
};

struct history_wanted {
    struct history_names kernel, backend, cases;
    const json_t *
        commits; /* texts, oldest first: their order in place of that of the clock; NULL: the clock's */
};

/* What came of it: for each machine its env, a record "runs", and those of kind "history". */
struct history {
    json_t *records;
    json_t *
        left_out; /* files without a commit of the list, or without a result that is wanted: sentences */
    size_t results;
};

/* 0, or -1: no memory. */
int history_make(const struct history_file *files, size_t n,
                 const struct history_wanted *wanted, struct history *out);
void history_free(struct history *history);

#endif
