/*
 * Selection by the command line: backends (plug-ins among them), kernels and element types by name, and
 * a share of the cases.
 */
#ifndef POSENC_CLI_SELECT_H
#define POSENC_CLI_SELECT_H

#include "bench/bench.h"
#include "conformance/models/model.h"
#include "args.h"

enum { N_DTYPES = BENCH_DTYPES };

struct selection {
    size_t n; /* backends, in the order of the lists, each once */
    const struct posenc_backend *backends[BACKENDS_MAX];
    bool is_plugin[BACKENDS_MAX]; /* named by --plugin */
    bool any_kernel;              /* some kernel was named; otherwise none is set */
    bool kernels[POSENC_KERNEL_COUNT];
    bool any_dtype; /* some type was named; otherwise none is set */
    bool dtypes[N_DTYPES];
};

/* Returns true if the id of a case, kernel/dtype/..., has a selected type. */
bool selects_dtype(const struct selection *selection, const char *id);
/* Returns true if a type is timed: a selected one, or without a selection that of the model, f32 without a model
 * (NULL). */
bool times_dtype(const struct selection *selection, const struct model *model,
                 enum posenc_dtype dtype);
/* Returns the shape of a model's call with another element type. */
struct bench_case case_stored_as(const struct model_case *one, enum posenc_dtype dtype);
/* Returns the type in the id of a case, f32 if there is none. */
enum posenc_dtype case_dtype(const char *id);

/* Resolves --plugin, --backend, --kernel and --dtype. Without --backend all backends are selected, also those that
 * cannot run here: results list them as skipped. With `plugins_alone`, plug-ins are then the whole selection. Returns
 * EXIT_FINE, or EXIT_USAGE after a message. */
int select_all(struct cli *cli, struct selection *selection, bool plugins_alone);
int select_shapes(const struct cli *cli, struct selection *selection); /* --kernel, --dtype */
int select_dtypes(const struct cli *cli, struct selection *selection); /* --dtype alone */
/* Rejects a selection if none of its backends runs here and has the kernel. */
int select_require(const struct cli *cli, const struct selection *selection,
                   enum posenc_kernel kernel);
/* Finds a kernel by name; `what` is the option or operand that named it. */
int select_kernel(const struct cli *cli, const char *what, const char *name,
                  enum posenc_kernel *kernel);

/* Finds the one backend of --backend or --plugin that provides the kernel, of a family the first that runs here. It is
 * NULL, for the default, without these options. */
int select_one(struct cli *cli, enum posenc_kernel kernel,
               const struct posenc_backend **backend);

/* --shard I/N: share I of N of a run, from 0 to N - 1 as arrays of jobs count. The id of a case alone
 * decides in which share it is. All backends of a case are checked and timed in the same share, and the
 * N shares together are the whole run. */
struct shard {
    int i, n; /* n 0: the whole run */
};
/* Reads --shard if it is given. Returns EXIT_FINE, or EXIT_USAGE after a message. */
int shard_read(const struct cli *cli, struct shard *shard);
bool shard_has(const struct shard *shard, const char *id);

/* Rejects a POSENC_BACKEND or POSENC_MAX_ISA that is unknown or cannot run here. */
int select_environment(const struct cli *cli);

#endif
