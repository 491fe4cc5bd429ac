/*
 * Reading the models that a command line names: the one place that does, and says what is to be
 * known of them.
 */
#ifndef POSENC_CLI_MODELS_H
#define POSENC_CLI_MODELS_H

#include "conformance/models/model.h"
#include "args.h"
#include "select.h"

/* A preset by name or a configuration by path, and the notes of it on stderr: what is not covered,
 * and in which profile it was trained.  EXIT_FINE, or EXIT_USAGE after a message. */
int models_read(const struct cli *cli, const char *name, struct model *model);

/* "storage bf16, from the config's torch_dtype", or what --dtype has in its place; "" where the
 * configuration does not say how its tensors are stored. */
const char *models_storage(const struct model *model, const struct selection *selection,
                           char text[128]);

/* The distinct calls of all presets, at their real sizes and with few tokens. */
struct presets {
    size_t n;
    struct problem *problems;
    size_t n_models;
    struct model *models; /* which own the factors that problems point to */
};
/* False without memory; to be freed in any case.  A preset with calls too large for this machine is left out,
 * and named on stderr. */
bool presets_load(struct presets *presets);
void presets_free(struct presets *presets);

#endif
