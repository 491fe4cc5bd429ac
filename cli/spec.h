/*
 * What the command line says of frequencies: a model's, changed by the options given.
 */
#ifndef POSENC_CLI_SPEC_H
#define POSENC_CLI_SPEC_H

#include "conformance/models/model.h"
#include "args.h"

struct cli_spec {
    struct posenc_freqs_spec freqs;
    enum posenc_layout layout;
    double scale;
    struct model model; /* freqs may point into it */
    double *factors[2]; /* of --short-factors and --long-factors, or NULL */
};

/* For a kind of table or picture; `otherwise` is the dim where neither the options nor a model
 * give one, 0: that is refused.  EXIT_FINE or, told, EXIT_USAGE; spec_free() after either. */
int spec_take(const struct cli *cli, unsigned kind, int64_t otherwise, struct cli_spec *spec);
void spec_free(struct cli_spec *spec);

/* The one model of --model or --config; EXIT_FINE or, told, EXIT_USAGE. */
int spec_load_model(const struct cli *cli, struct model *model);

/* Axes of a position: how many sections there are, 1 where there are none. */
int spec_axes(const struct posenc_freqs_spec *freqs);

/* "rope_theta 500000, llama3, hf_f32"; the scaling where there is one. */
void spec_caption(const struct posenc_freqs_spec *freqs, char *text, size_t size);

#endif
