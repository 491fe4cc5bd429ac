/*
 * Models that a command line names: reading them, and notes about them.
 */
#ifndef POSENC_CLI_MODELS_H
#define POSENC_CLI_MODELS_H

#include "conformance/models/model.h"
#include "args.h"
#include "select.h"

/* Reads a preset by name or a configuration by path, and prints its notes: parts that are not covered, and the numerics
 * mode it was trained with. Returns EXIT_FINE, or EXIT_USAGE after a message. */
int models_read(const struct cli *cli, const char *name, struct model *model);

/* Returns "storage bf16, from the config's torch_dtype", or the same of --dtype; "" if the configuration names no
 * element type. */
const char *models_storage(const struct model *model, const struct selection *selection,
                           char text[128]);

/* Distinct calls of all presets, at their real sizes and with few tokens. */
struct presets {
    size_t n;
    struct problem *problems;
    size_t n_models;
    struct model *models; /* which own the factors that problems point to */
};
/* Loads the calls; returns false without memory. presets_free() is needed in either case. Presets with calls too large for
 * this machine are left out and named on stderr. */
bool presets_load(struct presets *presets);
void presets_free(struct presets *presets);

#endif
