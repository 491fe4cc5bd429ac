/*
 * What verify, bench and report share: a selection, models, vectors, records that grow as
 * results come in, and outputs rendered from them at the end.
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
#include "shard.h"

struct work {
    struct cli *cli;
    struct selection selected;
    struct outputs outputs;
    const struct format *formats; /* of --out; NULL: record_formats */
    struct records records;
    struct shard shard;       /* the share that is this run's */
    bool elsewhere;           /* something is another shard's */
    struct problem_line line; /* of --problem */
    struct arena arena;
    struct vectors vectors;
    size_t n_models;
    struct model *models;
    struct noise_watch watch, timing; /* since the run began; since its timings did */
    json_t *noise;                    /* of the timings, once they have ended */
    json_t *compare;        /* the two builds that are compared, for the header; or NULL */
    bool matched[LIST_MAX]; /* patterns of --case that an id matched */
};

/* Resolves everything the command line names and opens its outputs, in formats that `command`
 * (BY_VERIFY, ...) may write; then the records begin.  EXIT_FINE, or EXIT_USAGE after a
 * message. */
int work_begin(struct work *work, struct cli *cli, unsigned command, bool with_vectors,
               bool plugins_alone);

/* The second half of it, for who has resolved by other means: outputs, vectors, records.  EXIT_FINE;
 * EXIT_USAGE after a message: to be given up. */
int work_open(struct work *work, unsigned command, bool with_vectors);

/* Models by name, in place of those of --model. */
int work_models(struct work *work, const char *const *names, size_t n);
void work_free_models(struct work *work);

/* Refuses a kernel that was named and that no model named beside it calls, or no backend has; and
 * backends that have none of what a problem or models call. */
int work_check_kernels(const struct work *work);

/* Where nothing says which kernels, those of the plug-ins: a backend of theirs is timed with all
 * others, and a kernel that they lack says nothing about them. */
void work_keep_to_plugins(struct work *work);

/* Whether --case asks for the case of that id. */
bool work_wants(struct work *work, const char *id);

/* Refuses --case where no pattern matched anything that was selected, and says which one did not
 * where others did; at the end, since only the engine knows its ids.  EXIT_FINE or EXIT_USAGE. */
int work_check_patterns(const struct work *work);

/* The problem of --problem; malloc'ed. */
size_t work_problem_case(const struct work *work, struct bench_case **cases);
/* The cases of the models; malloc'ed. */
size_t work_model_cases(const struct work *work, struct bench_case **cases);
/* One shape in each level of memory; malloc'ed. */
size_t work_footprint_cases(const struct work *work, struct bench_case **cases);
/* A result into the records, by its place among those of all shards. */
void work_append(struct work *work, json_t *record, uint64_t place);

/* Footer, rendering, renaming; frees everything.  A report that is not complete takes no other's
 * place. */
int work_end(struct work *work, bool complete);
/* After a signal: work_end(), and the program ends. */
void work_end_if_interrupted(struct work *work);
int work_refuse_memory(const struct work *work);
/* Ends without a result: what was begun is removed, everything freed. */
void work_give_up(struct work *work);

/* posenc verify -v: prints the parameters of one case or problem, each backend's numbers beside
 * the reference, and the verdicts. EXIT_FINE, EXIT_CONFORMANCE if a verdict is a failure, or
 * EXIT_USAGE after a message. */
int verify_in_depth(struct cli *cli);

/* NULL, or why nothing is timed here: it was not built in, or the CPU is emulated. */
const char *work_no_timing(void);
/* Reports that; returns EXIT_NOTHING. */
int work_refuse_timing(const struct cli *cli);

#endif
