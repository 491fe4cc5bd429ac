/*
 * Session of a command that produces records (verify, bench, pair): the selected backends, kernels, models and golden
 * vectors; the records of all results so far; the outputs. A command calls session_begin(), session_append() for each
 * result, and session_end(), which writes the outputs.
 */
#ifndef POSENC_CLI_SESSION_H
#define POSENC_CLI_SESSION_H

#include "bench/instructions.h"
#include "conformance/engine/engine.h"
#include "conformance/models/model.h"
#include "conformance/readers/vectors.h"
#include "base/machine/noise.h"
#include "base/records.h"
#include "outputs.h"
#include "messages.h"
#include "problem.h"
#include "select.h"

struct session {
    struct cli *cli;
    struct selection selected;
    size_t n_models;
    struct model *models;     /* of --model and --config */
    struct problem_line line; /* of --problem */
    struct arena arena;       /* memory of `line` */
    struct vectors vectors;   /* empty unless the command verifies */
    bool matched[LIST_MAX];   /* patterns of --case that matched an id */
    struct shard shard;       /* share of the cases, from --shard */
    bool in_other_shard;      /* a selected case is in another share */

    struct outputs outputs;
    struct records records;
    json_t *compare; /* for the header: the builds of posenc pair; or NULL */
    struct noise_counters at_start, at_timing_start;
    json_t *noise; /* during the timings, for the footer; NULL until they end */
};

/* ---- Begin and end ---- */

/* Resolves the names on the command line, opens the outputs, and writes the first records. If it `verifies`, golden
 * vectors are loaded, and plug-ins of --plugin replace the library's backends. */
void session_begin(struct session *session, struct cli *cli, bool verifies);
/* Opens the outputs and writes the first records, for a caller that resolved the names itself. */
void session_open(struct session *session, bool with_vectors);
/* Appends the record of a result. `place` orders the results of all shards. */
void session_append(struct session *session, json_t *record, uint64_t place);
/* Appends the footer, writes the outputs and frees the session. */
void session_end(struct session *session, bool complete);
/* After a signal: ends the session as incomplete and exits the program. */
void session_exit_if_interrupted(struct session *session);
/* Frees a session, and discards outputs that are not complete. */
void session_free(struct session *session);

/* ---- Kernels and cases ---- */

/* Selects the kernels of the plug-ins if the command line selects no kernel, case or problem. */
void session_select_plugin_kernels(struct session *session);
/* Returns true if --case selects the id, and notes which patterns matched. */
bool session_wants_case(struct session *session, const char *id);
/* Prints a message about each pattern of --case that matched no id, and rejects the option if none matched. Called at
 * the end, since only the engine knows the ids. */
void session_check_patterns(const struct session *session);
/* Allocates the cases to time, which the caller frees, and returns their number: those of a tuning, the case of --problem,
 * the calls of the models, or one shape for each level of the memory hierarchy (bench.c). */
size_t session_list_cases(const struct session *session, struct bench_case **cases);

/* ---- Models ---- */

/* Loads the models of --model and --config. */
void session_load_models(struct session *session);
/* Rejects a kernel of --kernel that no model calls. */
void session_check_model_kernels(const struct session *session);
/* Selects the kernels that the models call, unless --kernel is set. */
void session_select_model_kernels(struct session *session);
/* Allocates the calls of the models as cases to time, which the caller frees, and returns their number. */
size_t session_model_cases(const struct session *session, struct bench_case **cases);
/* Allocates the calls of the models with few tokens, then those at their real sizes, in the selected types. The caller
 * frees them. Stores their number. */
struct problem *session_list_problems(const struct session *session, bool full, size_t *n);

/* ---- Parts of commands in files of their own; each returns the exit code ---- */

int verify_verbose(struct cli *cli);     /* posenc verify -v */
int bench_instructions(struct cli *cli); /* posenc bench --instructions */
int bench_probe(struct cli *cli);        /* posenc bench --probe */

/* Returns NULL, or the reason why this program cannot time anything: no Google Benchmark, or an emulated CPU. */
const char *timings_unavailable_reason(void);
/* Prints that reason and returns EXIT_SKIPPED. */
int timings_report_unavailable(void);

/* ---- Records (emit.c). Each function returns one, or NULL without memory, which records_append() reports ---- */

/* Appends the first records: header, env, and unless it probes the machine, kernels, selected backends and models. */
void emit_preamble(struct session *session);
/* Returns the record of a check. `selection` has further options of its command, such as " --plugin mine.so". */
json_t *emit_check(const struct conf_result *result, const char *selection);
json_t *emit_bench(const struct bench_result *result);
/* Returns the record of a count in a build, "base" or "head", or NULL outside of posenc pair. */
json_t *emit_count(const struct kernel_instructions *count,
                   const struct posenc_backend *backend, const char *build);
/* Returns a record with the members that all results have. `numerics` is the numerics mode, or "given". */
json_t *emit_result(const char *kind, enum posenc_kernel kernel, enum posenc_dtype dtype,
                    const char *numerics, const char *id, const struct posenc_backend *backend);
/* Returns the footer, with the number of records of each kind. Takes the reference to `noise`, which may be NULL. */
json_t *emit_footer(const struct records *records, bool complete, double wall_s, json_t *noise);

#endif
