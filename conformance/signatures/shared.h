/* Functions and initialisers of tensors that several signatures share. */
#ifndef POSENC_SIGNATURES_SHARED_H
#define POSENC_SIGNATURES_SHARED_H

#include "conformance/oracle/rows.h"
#include "conformance/problem/signature.h"

static inline int64_t signature_min(int64_t a, int64_t b) { return a < b ? a : b; }

/* Initialises the dimensions of attention scores. */
#define SCORES .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_KEY }

/* Checks head_dim and rotary_dim of kernels that rotate (rope.c). */
bool signature_check_rotation(struct call *call);

/* Initialises the tensor of cos or sin that a rotation reads. */
#define ANGLES(signature, member, from)                                                        \
    {                                                                                          \
        TENSOR(signature, member), .type = TYPE_TABLE, .dims = { DIM_ROW, DIM_PAIR },          \
                                   .stream = from, .dense_copy = DENSE_COPY(member),           \
                                   .cached = true                                              \
    }

/* Returns the limit of sums in any order: the magnitudes bound their error. */
static inline double signature_limit_of_sums(const struct problem *p)
{
    (void)p;
    return 1.0;
}

/* Returns the largest integer n <= p = first (last/first)^(k/steps), 0 <= k <= steps, and sets `is_integer` if n = p.
 * The two count as equal if they are closer than 2^-200 of themselves. If they differ, n^steps and last^k
 * first^(steps - k) are different integers, so n and p are at least about n^-steps of themselves apart. That is more
 * than 2^-200 for steps log2(n) up to 190 (biases.c). */
int64_t signature_floor_power(int64_t first, int64_t last, int64_t k, int64_t steps,
                              bool *is_integer);

#endif
