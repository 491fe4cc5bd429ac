/*
 * What the laws of tables share: a table of some positions, its pairs, and how far they may be
 * from a circle.
 *
 * The f32 profiles turn by some frequency w' of their own, to which the laws of a turn apply, and
 * round the angle; with u = 2^-24 an entry is off by what the angle is, so E grows by
 *
 *     hf_f32, torch_exp_f32   p u             the product p w' is rounded once, and w' <= 1
 *     ggml_f32                p u (1 + d/50)  w' = s^i of the f32 scale s, and the product is rounded
 *                                             i times: off by i p s^i u, where i theta^(-2i/d) is at
 *                                             most d/(2 e ln theta), d/50 for theta = 10000; the 1
 *                                             covers (1 + u)^i - 1 - i u
 */
#ifndef POSENC_LAWS_PAIRS_H
#define POSENC_LAWS_PAIRS_H

#include "laws.h"

/* The table of a problem at other positions, and so many; NULL where it could not be made. */
const struct call *run_table_at(struct tally *t, const struct problem *p, int64_t first,
                                int64_t tokens);

/* E of a problem's rows. */
double table_error(const struct problem *p);

/* Where sine and cosine of pair i stand in a row of the sinusoidal table. */
int64_t sine_at(const struct problem *p, int64_t i);
int64_t cosine_at(const struct problem *p, int64_t i);

/* Sine and cosine of pair i in row r. */
struct pair {
    double s, c;
};
struct pair pair_at(const struct call *table, int64_t r, int64_t i);

/* s s' + c c': the cosine of the angle between two pairs of a circle. */
double pair_product(struct pair a, struct pair b);

#endif
