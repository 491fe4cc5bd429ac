/*
 * What the parts of posenc plot share: computing what is drawn, and drawing it into every
 * output.
 */
#ifndef POSENC_CLI_PLOT_H
#define POSENC_CLI_PLOT_H

#include "reports/plot.h"
#include "outputs.h"

/* One picture of `data`, as the functions of reports/plot.h. */
typedef int draw_function(const void *data, const struct plot_target *target,
                          char error[PLOT_ERROR]);

/* Draws it into each output.  EXIT_FINE, or EXIT_USAGE after a message. */
int plot_draw(const struct cli *cli, const struct outputs *outputs, draw_function *draw,
              const void *data);
/* Where the figures go as text: stdout, unless a picture does. */
FILE *plot_facts(const struct outputs *outputs);

/* An integer option, or what stands for it; the backend that serves; what --tokens may be. */
int64_t plot_given(int64_t value, int64_t otherwise);
const char *plot_served(const struct posenc_backend *backend, enum posenc_kernel kernel);
int plot_refuse_tokens(const struct cli *cli, int64_t most);
/* Each computes, draws and prints one kind.  EXIT_FINE, or EXIT_USAGE after a message. */
int command_plot_rope(struct cli *cli, const struct outputs *outputs);
int command_plot_alibi(struct cli *cli, const struct outputs *outputs);
int command_plot_t5(struct cli *cli, const struct outputs *outputs);
int command_plot_learned(struct cli *cli, const struct outputs *outputs);
int command_plot_xpos(struct cli *cli, const struct outputs *outputs);
int command_plot_bias(struct cli *cli, const struct outputs *outputs);
int command_plot_deberta(struct cli *cli, const struct outputs *outputs);
int command_plot_swin(struct cli *cli, const struct outputs *outputs);
int command_plot_speed(struct cli *cli, const struct outputs *outputs);

/* The formats of pictures. */
extern const struct format picture_formats[];

#endif
