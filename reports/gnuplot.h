/*
 * One picture: a script for gnuplot, its run, and the file it becomes.
 */
#ifndef POSENC_GNUPLOT_H
#define POSENC_GNUPLOT_H

#include "plot.h"

/* Colours that people with any colour vision tell apart (Okabe and Ito), as gnuplot
 * takes them. */
extern const char *const plot_colors[];
enum { PLOT_COLORS = 9 };

/* The script begun for a picture of that size in pixels; NULL with a message. */
FILE *gnuplot_begin(const struct plot_target *target, int width, int height,
                    char error[PLOT_ERROR]);
/* Runs it (the script is closed) and puts the picture in its place. */
int gnuplot_end(FILE *script, const struct plot_target *target, char error[PLOT_ERROR]);

/* A string in double quotes with what gnuplot would interpret escaped. */
void gnuplot_string(FILE *script, const char *text);
/* set palette: viridis (van der Walt and Smith), from dark to bright. */
void gnuplot_viridis(FILE *script);

#endif
