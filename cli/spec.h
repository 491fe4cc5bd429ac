/*
 * The frequencies that a command line asks for: those of its model or the defaults, changed by
 * its options.
 */
#ifndef POSENC_CLI_SPEC_H
#define POSENC_CLI_SPEC_H

#include "conformance/models/model.h"
#include "args.h"

struct cli_spec {
    struct posenc_freqs_spec freqs;
    enum posenc_layout layout;
    bool column_first; /* of a picture: its columns are the axis before its rows */
    double scale;
    struct model model; /* freqs may point into it */
    double *factors[2]; /* of --short-factors and --long-factors, or NULL */
};

/* Reads them for one kind of table or picture.  `otherwise` is the dim to take where neither
 * the options nor a model give one; with 0 they have to.  EXIT_FINE, or EXIT_USAGE after a
 * message; spec_free() after either. */
int spec_take(const struct cli *cli, unsigned kind, int64_t otherwise, struct cli_spec *spec);
void spec_free(struct cli_spec *spec);

/* Where no option says how long the sequence is that a table is for, dynamic and longrope take its
 * largest position and 1, as Hugging Face transformers do (modeling_rope_utils.py); what is then
 * beyond what was trained on is said on stderr. */
void spec_settle_length(const struct cli *cli, int64_t largest,
                        struct posenc_freqs_spec *freqs);

/* The frequencies and the layout of a call that the model makes of that kernel: of the layers of
 * --layer-type, else its first, and those that differ are said. */
int spec_take_model(const struct cli *cli, enum posenc_kernel kernel, struct cli_spec *spec);
/* The one model of --model or --config; EXIT_FINE, or EXIT_USAGE after a message. */
int spec_load_model(const struct cli *cli, struct model *model);

/* Returns the frequencies of the same base without its scaling. */
struct posenc_freqs_spec spec_unscaled(struct posenc_freqs_spec freqs);

/* Axes of a position: how many sections there are, 1 where there are none. */
int spec_axes(const struct posenc_freqs_spec *freqs);

#endif
