/*
 * What the command line selects by name: backends, plug-ins among them, kernels and types.
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
    bool any_kernel;              /* some were named; otherwise none is set */
    bool kernels[POSENC_KERNEL_COUNT];
    bool any_dtype; /* likewise */
    bool dtypes[N_DTYPES];
};

/* Whether the id of a case, kernel/dtype/..., is of a type that was named. */
bool selects_dtype(const struct selection *selection, const char *id);
/* Whether a type is timed: those that were named are; where none was, that of the model, or f32 of
 * no model (NULL). */
bool times_dtype(const struct selection *selection, const struct model *model,
                 enum posenc_dtype dtype);
/* The shape of a model's call, stored as that type, to be timed. */
struct bench_case case_stored_as(const struct model_case *one, enum posenc_dtype dtype);
/* The type that the id of a case names; f32 where it names none. */
enum posenc_dtype case_dtype(const char *id);

/* What --plugin, --backend, --kernel and --dtype name; all backends when none is named, those
 * that cannot run here included, so that they are seen to be skipped.  `plugins_alone`: without
 * --backend, plug-ins are the selection.  EXIT_FINE, or EXIT_USAGE after a message: unknown, or
 * named alone and not able to run here. */
int select_all(struct cli *cli, struct selection *selection, bool plugins_alone);
int select_shapes(const struct cli *cli, struct selection *selection); /* --kernel, --dtype */
int select_dtypes(const struct cli *cli, struct selection *selection); /* --dtype alone */
/* Refuses backends of which none that runs here has the kernel. */
int select_require(const struct cli *cli, const struct selection *selection,
                   enum posenc_kernel kernel);
/* The kernel of that name; `what` gave it, an option or operand, for the message. */
int select_kernel(const struct cli *cli, const char *what, const char *name,
                  enum posenc_kernel *kernel);

/* The one backend of --backend or --plugin (of a family, the first that runs here and provides
 * `kernel`), or NULL, for the default, when neither is given.  It must provide `kernel`. */
int select_one(struct cli *cli, enum posenc_kernel kernel,
               const struct posenc_backend **backend);

/* Refuses what POSENC_BACKEND or POSENC_MAX_ISA ask for where it is not here: EXIT_USAGE. */
int select_environment(const struct cli *cli);

#endif
