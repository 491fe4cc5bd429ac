/*
 * Pairs of sines and cosines, or of channels that rotate by them, as complex numbers: cos + i sin,
 * x0 + i x1. A rotation is a product of two, and the angle between a and b is that of b conj(a).
 *
 * The largest error E of a table entry is TABLE_ERROR in numerics mode exact. The f32 modes rotate by
 * frequencies w' of their own, to which the properties of rotations apply, and round the angle. The
 * error of an entry is that of the angle. With u = 2^-24, E grows at position p by
 *
 *     hf_f32, torch_exp_f32   p u             the product p w' is rounded once, and w' <= 1
 *     ggml_f32                p u (1 + d/50)  w' = s^i of the f32 scale s, and the product is rounded
 *                                             i times: off by i p s^i u, where i theta^(-2i/d) is at
 *                                             most d/(2 e ln theta), d/50 for theta = 10000; the 1
 *                                             covers (1 + u)^i - 1 - i u
 */
#ifndef POSENC_PROPERTIES_PAIRS_H
#define POSENC_PROPERTIES_PAIRS_H

#include "properties.h"

#include <complex.h>

double complex pair_with(double real, double imaginary);
double complex pair_of_angle(double angle);

/* Return pair i of row r of an output, a table or rotated channels, and of the input x. */
double complex pair_of(const struct call *call, int64_t r, int64_t i);
double complex x_pair_of(const struct call *call, int64_t r, int64_t i);

/* Return the number of pairs of a row, and the columns of a pair, except for rope_table. */
int64_t n_pairs(const struct problem *p);
struct pair_columns {
    int64_t real, imaginary;
} pair_columns(const struct problem *p, int64_t i);

/* Loop over the pairs of all rows of a call, none if it is NULL: for (EACH_PAIR(at, call)). */
struct pair {
    const struct call *call;
    int64_t row, i;
    double complex z;
};
struct pair pair_at(const struct call *call, int64_t row, int64_t i);
#define EACH_PAIR(at, all_of)                                                                  \
    struct pair at = pair_at(all_of, 0, 0);                                                    \
    at.call;                                                                                   \
    at = pair_at(at.call, at.row, at.i + 1)

/* Requires both components to be within the bound of the expected ones. */
void require_pair(struct tally *t, const struct pair *at, double complex want, double bound,
                  const char *what);

/* Returns E for the positions of a problem. */
double table_error(const struct problem *p);

#endif
