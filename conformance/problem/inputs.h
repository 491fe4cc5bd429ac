/*
 * What problem.c, inputs.c and the files of calls share.
 */
#ifndef POSENC_INPUTS_H
#define POSENC_INPUTS_H

#include "problem.h"

/* Activations; tables that are f32 whatever the storage, and what learned_grad adds onto; terms
 * of relative_bias. */
enum { STREAM_X = 0, STREAM_TABLE = 1, STREAM_C2P = 2, STREAM_P2C = 3 };

/* n inputs of a stream, in the order of their index. */
void fill_inputs(float *to, int64_t n, const struct problem *problem, uint64_t stream);

/* cos or sin of a problem that turns, [rows, rotary_dim / 2]; false when memory runs out. */
bool fill_rotation(const struct problem *problem, bool sines, float *to);

/* Where problem_draws_positions(). */
int64_t drawn_position(const struct problem *problem, int64_t b, int64_t t);

#endif
