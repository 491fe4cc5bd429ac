/*
 * Error of rope_table against position: every backend in every profile, compared with real
 * mathematics (the oracle), whatever the profile promises.
 */
#ifndef POSENC_CLI_ERRORS_H
#define POSENC_CLI_ERRORS_H

#include "../reports/plot.h"
#include "select.h"

enum { CURVES_MAX = 2 * BACKENDS_MAX };

struct errors {
    size_t n;
    struct plot_curve curves[CURVES_MAX];
    char labels[CURVES_MAX][160];
    double *position, *values; /* shared x of all curves; [CURVES_MAX][n_bins] */
    char caption[96];
};

/* The largest |got - want| over all pairs, cosines and sines, in four bins per octave of
 * positions up to 2^31 - 1; backends of a family with the same curve share one.  0, or -1 out
 * of memory. */
int errors_measure(const struct selection *selected, int64_t dim, double rope_theta,
                   struct errors *errors);
/* A line a curve: its largest error below 2^10, 2^17, 2^20, 2^24 and 2^31. */
void errors_facts(const struct errors *errors, FILE *out);
void errors_free(struct errors *errors);

#endif
