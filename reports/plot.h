/*
 * Pictures, drawn by the program gnuplot.  Each function writes one file, complete or not at
 * all (a temporary file is renamed over it); path NULL or "-" is standard output.  0, or -1
 * with a message in `error`.
 */
#ifndef POSENC_PLOT_H
#define POSENC_PLOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PLOT_ERROR = 512 };

struct plot_target {
    const char *format; /* "png" or "svg" */
    const char *path;
};

/* Whether gnuplot can be run and has the terminals; else `error` says what to install. */
bool plot_available(char error[PLOT_ERROR]);

/* Error against position, both axes logarithmic, one curve each.  An error of zero is drawn at
 * the bottom. */
struct plot_curve {
    const char *label;   /* "template (scalar, avx2, avx512)  exact" */
    const char *profile; /* chooses the line style */
    const char *backend; /* whose colour it has; NULL: it is not of some backends alone */
    size_t n;
    const double *position, *error;
};
int plot_error(const struct plot_curve *curves, size_t n, const char *caption,
               const struct plot_target *target, char error[PLOT_ERROR]);

/* Of an array of records: GB/s by backend for each case of kernel `kernel` with the roof
 * marked, and accuracy against speed of a kernel's backends.  1: the records hold nothing to
 * draw (no file). */
int plot_speed(const json_t *records, const char *kernel, const struct plot_target *target,
               char error[PLOT_ERROR]);
int plot_tradeoff(const json_t *records, const char *kernel, const struct plot_target *target,
                  char error[PLOT_ERROR]);

#endif
