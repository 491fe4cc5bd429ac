/*
 * How much work it is to judge a problem, for whoever chooses its sizes.
 */
#ifndef POSENC_RANDOM_WEIGHT_H
#define POSENC_RANDOM_WEIGHT_H

#include "conformance/problem/problem.h"

/* What a value of an output takes of the oracle, in copies of a number. */
int64_t problem_weight(const struct problem *problem);
/* What all tensors of a problem take, where a value of an output takes `weight`. */
int64_t problem_cost(const struct problem *problem, int64_t weight);

#endif
