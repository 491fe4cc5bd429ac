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

/* A string of which gnuplot interprets nothing; as the label of a tic, which is a format. */
void gnuplot_string(FILE *script, const char *text);
void gnuplot_tic(FILE *script, const char *text);
/* Words within the quotes of a column of data. */
void gnuplot_words(FILE *script, const char *text);
#endif
