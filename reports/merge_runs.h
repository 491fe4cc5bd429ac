/*
 * The runs in files that are to be merged, and whether they belong together (merge.h).
 */
#ifndef POSENC_MERGE_RUNS_H
#define POSENC_MERGE_RUNS_H

#include "merge.h"

/* A run: the records of a file from its header to its footer; or a section of a file that was merged
 * before, with the header of its first part. */
struct run {
    const struct merge_input *input;
    const json_t *header, *env, *footer;
    size_t first, end;      /* its records after the header, the footer not counted */
    size_t shard, n_shards; /* n_shards 0: a whole run */
    bool merged;
    bool passed_over; /* it did not finish, and another did that is the same shard */
    struct run *same; /* the first run of which this is another shard; its own of others */
};

struct runs {
    struct run *run;
    size_t n;
    bool mixed;
    char *error; /* MERGE_ERROR bytes */
};

__attribute__((format(printf, 2, 3))) enum merge_status merge_refuse(const struct runs *runs,
                                                                     const char *format, ...);
/* Finds the runs of all inputs, to be freed: runs->run. */
enum merge_status merge_find_runs(const struct merge_input *inputs, size_t n,
                                  struct runs *runs);
/* Refuses what is partial, doubled, missing or of other vectors or another run. */
enum merge_status merge_check_runs(struct runs *runs, json_t *notes);

const char *run_machine(const struct run *run); /* its env_id */
const char *run_command(const struct run *run);

#endif
