/*
 * What problem.c, inputs.c and the files of calls share.
 */
#ifndef POSENC_INPUTS_H
#define POSENC_INPUTS_H

#include "problem.h"

/* Activations; tables that are f32 whatever the storage, and what learned_grad adds onto; terms
 * of relative_bias; cos and sin of a problem that turns. */
enum stream_id { STREAM_X, STREAM_TABLE, STREAM_C2P, STREAM_P2C, STREAM_COS, STREAM_SIN };

/* n inputs of a stream, in the order of their index; false when memory runs out. */
bool fill_inputs(float *to, int64_t n, const struct problem *problem, enum stream_id stream);

/* Where problem_draws_positions(). */
int64_t drawn_position(const struct problem *problem, int64_t b, int64_t t);

#endif
