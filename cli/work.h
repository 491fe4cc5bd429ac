/*
 * The run of a command that makes records (verify, bench, pair): a selection, models, vectors,
 * records that grow as results come in, and outputs that are written from them at the end.
 */
#ifndef POSENC_CLI_WORK_H
#define POSENC_CLI_WORK_H

#include "conformance/engine/engine.h"
#include "conformance/models/model.h"
#include "conformance/readers/vectors.h"
#include "base/machine/watch.h"
#include "base/records.h"
#include "formats.h"
#include "outputs.h"
#include "progress.h"
#include "problem.h"
#include "select.h"

struct work {
    struct cli *cli;
    struct selection selected;
    struct outputs outputs;
    const struct format *formats; /* formats of --out; NULL: record_formats */
    struct records records;
    struct shard shard;       /* the share of this run */
    bool elsewhere;           /* some check belongs to another share */
    struct problem_line line; /* problem of --problem */
    struct arena arena;
    struct vectors vectors;
    size_t n_models;
    struct model *models;
    struct noise_watch watch;  /* since the run began */
    struct noise_watch timing; /* since its timings began */
    json_t *noise;             /* noise of the timings, once they have ended */
    json_t *compare;           /* the two builds that are compared, for the header; or NULL */
    bool matched[LIST_MAX];    /* patterns of --case that an id matched */
};

/* Resolves everything that the command line names, opens its outputs, in formats that `command`
 * (BY_VERIFY, ...) may write, and begins the records. Returns EXIT_FINE, or EXIT_USAGE after a
 * message. */
int work_begin(struct work *work, struct cli *cli, unsigned command, bool with_vectors,
               bool plugins_alone);
/* Opens outputs and begins the records, for a caller that has resolved the rest. Returns EXIT_FINE;
 * or EXIT_USAGE after a message, and then the work is to be given up. */
int work_open(struct work *work, unsigned command, bool with_vectors);

/* Reads models by name, in place of those of --model. */
int work_models(struct work *work, const char *const *names, size_t n);
void work_free_models(struct work *work);

/* Rejects a named kernel that no named model calls or no backend has, and backends without any
 * kernel that a problem or models call. */
int work_check_kernels(const struct work *work);
/* Narrows the kernels to those of the plug-ins if the command line names none: other kernels would
 * say nothing about the plug-ins. */
void work_keep_to_plugins(struct work *work);
/* Returns true if --case asks for the case of that id. */
bool work_wants(struct work *work, const char *id);
/* Rejects --case if no pattern matched anything that was selected, and names a pattern that did not
 * beside others that did. Call it at the end, since only the engine knows its ids. Returns EXIT_FINE
 * or EXIT_USAGE. */
int work_check_patterns(const struct work *work);

/* Each makes cases, which the caller frees, and returns how many: that of --problem, those of the
 * models, one shape in each level of memory. */
size_t work_problem_case(const struct work *work, struct bench_case **cases);
size_t work_model_cases(const struct work *work, struct bench_case **cases);
size_t work_footprint_cases(const struct work *work, struct bench_case **cases);

/* Adds a result to the records, by its place among those of all shards. */
void work_append(struct work *work, json_t *record, uint64_t place);
/* Adds the footer, writes the outputs and frees everything. Returns the exit code. */
int work_end(struct work *work, bool complete);
/* After a signal: ends the work, which is then incomplete, and the program. */
void work_end_if_interrupted(struct work *work);
/* Removes what was begun and frees everything. */
void work_give_up(struct work *work);
int work_refuse_memory(const struct work *work);

/* Prints, for posenc verify -v, one case or problem, each backend's numbers beside the oracle's, and the verdicts. Returns EXIT_FINE, EXIT_CONFORMANCE if a verdict is a failure, or
 * EXIT_USAGE after a message. */
int verify_in_depth(struct cli *cli);

/* Returns why nothing is timed here, or NULL: it was not built in, or the CPU is emulated. */
const char *work_no_timing(void);
/* Reports that; returns EXIT_NOTHING. */
int work_refuse_timing(const struct cli *cli);

#endif
