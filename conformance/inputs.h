/*
 * What problem.c, call.c and inputs.c share.
 */
#ifndef POSENC_INPUTS_H
#define POSENC_INPUTS_H

#include "problem.h"

enum { STREAM_X = 0, STREAM_TABLE = 1 }; /* activations; learned or T5 table */

/* Whether a kernel reads activations or scores, rather than writing `out` alone. */
bool kernel_takes_x(enum posenc_kernel kernel);

/* n inputs of a stream, in the order of their index. */
void fill_inputs(float *to, int64_t n, const struct problem *problem, uint64_t stream);

/* cos and sin of a rope problem, [rows, rotary_dim / 2] each; false when memory runs out. */
bool fill_rotations(const struct problem *problem, float *cosines, float *sines);

/* Where problem_draws_positions(). */
int64_t drawn_position(const struct problem *problem, int64_t b, int64_t t);

#endif
