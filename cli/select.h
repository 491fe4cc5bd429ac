/*
 * Selection of backends, plug-ins, kernels and element types by their names on the command line ("--backend native
 * --kernel alibi --dtype f16"), of a share of the cases by --shard, and of a tuning file.
 */
#ifndef POSENC_CLI_SELECT_H
#define POSENC_CLI_SELECT_H

#include "bench/bench.h"
#include "conformance/models/model.h"
#include "args.h"

enum { N_DTYPES = BENCH_DTYPES };

struct selection {
    size_t n; /* distinct backends, the library's first */
    const struct posenc_backend *backends[BACKENDS_MAX];
    bool is_plugin[BACKENDS_MAX]; /* named by --plugin */
    bool names_kernels;           /* false: all kernels are meant, and none is set */
    bool kernels[POSENC_KERNEL_COUNT];
    bool names_dtypes; /* false: no type is named, and none is set */
    bool dtypes[N_DTYPES];
};

/* ---- Element types ---- */

/* Returns true if the type in the id of a case (kernel/dtype/...) is selected. */
bool selection_has_dtype(const struct selection *selection, const char *id);
/* Returns true if cases are timed in a type: a selected one; without any, the model's, or f32 if `model` is NULL. */
bool selection_times_dtype(const struct selection *selection, const struct model *model,
                           enum posenc_dtype dtype);
/* Returns a call of a model in another element type. */
struct bench_case case_with_dtype(const struct model_case *one, enum posenc_dtype dtype);
/* Returns the type in the id of a case, or f32. */
enum posenc_dtype case_dtype(const char *id);

/* ---- Names of the command line; unknown ones are rejected ---- */

/* Resolves --plugin, --exec, --backend, --kernel and --dtype. Without --backend, selects all backends, also those that
 * cannot run here, which results list as skipped; if `plugins_alone`, the plug-ins alone if there are any. */
void select_all(const struct cli *cli, struct selection *selection, bool plugins_alone);
void select_kernels_and_dtypes(const struct cli *cli, struct selection *selection);
void select_dtypes(const struct cli *cli, struct selection *selection);
/* Returns the first selected backend that runs here and provides the kernel. Rejects a selection without one. */
const struct posenc_backend *select_require(const struct cli *cli,
                                            const struct selection *selection,
                                            enum posenc_kernel kernel);
/* Returns that backend for the values of --backend and --plugin. Returns NULL, the default backend, without them. */
const struct posenc_backend *select_one(const struct cli *cli, enum posenc_kernel kernel);

/* Backends to choose from. */
struct candidates {
    size_t n;
    const struct posenc_backend *backend[BACKENDS_MAX];
    const char *reason[BACKENDS_MAX]; /* why it cannot run here, or NULL */
    bool is_plugin[BACKENDS_MAX];     /* named by --plugin */
    bool chosen[BACKENDS_MAX];
};

/* Chooses what --backend names: a backend, or those of a family that run here. Without --backend, chooses all. */
void select_named(const struct cli *cli, struct candidates *candidates);

/* Rejects unknown backends in POSENC_BACKEND or POSENC_MAX_ISA, and a POSENC_BACKEND that cannot run here. */
void select_environment(const struct cli *cli);

/* ---- Shards ---- */

/* Share i of n of a run, 0 <= i < n, from --shard I/N. The id of a case alone determines its share. */
struct shard {
    int i, n; /* n is 0 for the whole run */
};
struct shard shard_parse(const struct cli *cli);
bool shard_has_case(const struct shard *shard, const char *id);

/* ---- The tuning file, which posenc tune writes ---- */

/* Selects the user's tuning file if it exists, fits this CPU and build, and the environment selects nothing else. Called
 * before the first call of the library. */
void tuning_file_select_default(void);
/* Selects POSENC_TUNING if it is set. */
void tuning_file_select_environment(void);
/* Returns the path of the tuning file, or "" if there is none. Stores the reason why it is not used, or NULL. */
const char *tuning_file_in_force(const char **unused_reason);

#endif
