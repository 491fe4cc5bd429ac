/* Models of --model and --config: loading, and notes about them. */
#ifndef POSENC_CLI_MODELS_H
#define POSENC_CLI_MODELS_H

#include "conformance/models/model.h"
#include "args.h"
#include "select.h"

/* Loads a preset by name or a configuration by path. Prints notes about unsupported parts and the numerics mode of the
 * training. Returns EXIT_OK, or EXIT_USAGE after a message. */
int models_read(const struct cli *cli, const char *name, struct model *model);

/* Returns `text` with "storage bf16, from the config's torch_dtype", or the type of --dtype; "" if the configuration
 * names no element type. */
const char *models_describe_dtype(const struct model *model, const struct selection *selection,
                                  char text[128]);

/* Distinct calls of all presets, at their real sizes and also with few tokens. */
struct presets {
    size_t n;
    struct problem *problems;
    size_t n_models;
    struct model *models; /* own memory of `problems` */
};
/* Loads the calls. Skips presets whose calls are too large for this machine, with a message. Returns false without
 * memory. The caller calls presets_free() in either case. */
bool presets_load(struct presets *presets);
void presets_free(struct presets *presets);

#endif
