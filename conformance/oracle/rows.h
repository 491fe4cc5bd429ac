/*
 * Inside of the oracle, for conformance/oracle and conformance/signatures alone: its state, the functions of each
 * signature that compute its rows, and what several signatures share. For example, signatures/biases.c has
 *
 *     static void row_alibi(const struct oracle *oracle, int o, int64_t r, double *want) { ... }
 *     const struct oracle_functions oracle_alibi = { .row = row_alibi };
 */
#ifndef POSENC_ORACLE_ROWS_H
#define POSENC_ORACLE_ROWS_H

#include "conformance/problem/arena.h"
#include "conformance/problem/signature.h"
#include "oracle.h"

/* Sines and cosines of one row of a table, an element for each pair. */
struct oracle_angles {
    int64_t row; /* -1: not computed */
    double *sines, *cosines;
};

struct oracle {
    struct arena arena; /* holds this struct and all its arrays */
    const struct call *call;
    const struct oracle_functions *functions; /* of the call's signature */
    /* sinusoidal, rope_table; arrays have an element for each pair. */
    int64_t n_pairs;
    struct big *turns;      /* turns per position, in numerics mode exact */
    float *inv_freq;        /* radians per position, in hf_f32 and torch_exp_f32 */
    struct exact_ggml ggml; /* in ggml_f32 */
    struct big *log_zeta;   /* logarithm of the factor of xPos; otherwise NULL */
    double attention_factor;
    struct oracle_angles *angles; /* of the last row that was computed */
    /* t5: least distance of each bucket of one direction. */
    int32_t *thresholds;
    int64_t n_thresholds;
    /* relative: column of the terms by query - key + keys - 1. */
    int32_t *columns;
    /* learned_grad: first token of each row of the table, next token of the same row; -1: none. */
    int64_t *first_token, *next_token;
};

/* Functions of a signature. */
struct oracle_functions {
    /* Computes row r of output o, as f64 rounded to odd. */
    void (*row)(const struct oracle *oracle, int o, int64_t r, double *want);
    /* Prepares the oracle; returns false if out of memory. May be NULL. */
    bool (*create)(struct oracle *oracle);
    /* Computes the magnitudes whose ulp is the unit of errors. NULL: those of the results. */
    void (*magnitudes)(const struct oracle *oracle, int64_t r, double *magnitudes);
};
#define POSENC_SIGNATURE(name) extern const struct oracle_functions oracle_##name;
#include <posenc_signatures.def>

/* ---- Shared by signatures ---- */

/* Returns a + b rounded to f32, as one add instruction does. */
float oracle_add_f32(float a, float b);

/* Returns the position of the token of row r, where each token has `per_token` rows. */
int64_t oracle_row_position(const struct problem *problem, int64_t r, int64_t per_token);

/* Return the query and the head of row r of an output [batch, heads, queries, ...]. */
static inline int64_t oracle_row_query(const struct problem *problem, int64_t r)
{
    return r % problem->queries;
}

static inline int64_t oracle_row_head(const struct problem *problem, int64_t r)
{
    return r / problem->queries % problem->heads;
}

static inline int64_t signature_min(int64_t a, int64_t b) { return a < b ? a : b; }

/* Member of an output of attention scores: its dimensions. */
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
