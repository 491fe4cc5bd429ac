/*
 * Pairs as complex numbers: cos + i sin of a table, or x0 + i x1 of two channels that rotate together. A rotation is
 * a product of two such numbers, and the rotation from a to b is b conj(a).
 *
 * The largest error E of a table entry is TABLE_ERROR in numerics mode exact. The f32 modes have frequencies w' of
 * their own, of which the properties hold as well, and round the angle. The error of an entry is at most that of its
 * angle. With u = 2^-24, E grows at position p by
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

/* Return real + i imaginary, and cos + i sin of an angle in radians. */
double complex pair_make(double real, double imaginary);
double complex pair_from_angle(double angle);

/* Return pair i of row r of the output (a table or rotated channels), and of the input x. */
double complex pair_from_output(const struct call *call, int64_t r, int64_t i);
double complex pair_from_x(const struct call *call, int64_t r, int64_t i);

/* Return the number of pairs of a row, and the columns of a pair, except for rope_table. */
int64_t pair_count(const struct problem *p);
struct pair_columns {
    int64_t real, imaginary;
} pair_columns(const struct problem *p, int64_t i);

/* Pair of an output, and the loop for (EACH_PAIR(at, call)) over all pairs. A NULL call has none. */
struct pair {
    const struct call *call;
    int64_t row, i;
    double complex z;
};
struct pair pair_at(const struct call *call, int64_t row, int64_t i);
#define EACH_PAIR(at, whole)                                                                   \
    struct pair at = pair_at(whole, 0, 0);                                                     \
    at.call;                                                                                   \
    at = pair_at(at.call, at.row, at.i + 1)

/* Requires that both components are within `bound` of the expected ones. */
void pair_require(struct tally *t, const struct pair *at, double complex want, double bound,
                  const char *what);

/* Returns E (see above) for the positions of a problem. */
double pair_table_error(const struct problem *p);

#endif
