/*
 * State of the oracle, and the row function of each signature, which writes f64 rounded to odd (or
 * exact f32 values).
 */
#ifndef POSENC_ORACLE_ROWS_H
#define POSENC_ORACLE_ROWS_H

#include "conformance/exact/fixed.h"
#include "conformance/problem/arena.h"
#include "oracle.h"

/* Sines and cosines of one row of a table. */
struct oracle_angles {
    int64_t row; /* -1: none yet */
    double *sines, *cosines;
};

struct oracle {
    struct arena arena; /* holds this struct and all its arrays */
    const struct call *call;
    const struct oracle_rows *rows;
    /* Each pair: turns per position (numerics exact), f32 frequency (others), log zeta (xPos). */
    int64_t n_pairs;
    struct big *turns, *log_zeta;
    float *inv_freq;
    struct exact_ggml ggml;
    double attention_factor;
    struct oracle_angles *last; /* of the last row that was computed */
    int32_t *thresholds;        /* T5: least distance of each bucket of one direction */
    int64_t n_thresholds;
    int32_t *columns; /* relative: by query - key + keys - 1 */
    /* learned_grad: first token of each row of the table, next token of the same row; -1: none. */
    int64_t *first_token, *next_token;
};

/* Functions of a signature: compute row r of output o; prepare the oracle; compute the magnitudes
 * whose ulp is the unit of errors, if these are not the results' own. The last two may be NULL. */
struct oracle_rows {
    void (*row)(const struct oracle *oracle, int o, int64_t r, double *want);
    bool (*create)(struct oracle *oracle);
    void (*mass)(const struct call *call, int64_t r, double *mass);
};
#define POSENC_SIGNATURE(name) extern const struct oracle_rows oracle_##name;
#include <posenc_signatures.def>

/* Compute the thresholds or columns of an oracle, and the row of a window's table (index.c). */
bool create_thresholds(struct oracle *oracle);
bool create_columns(struct oracle *oracle);
int64_t window_row(const struct problem *problem, int64_t query, int64_t key);

/* ---- Shared by signatures ---- */

/* Returns a + b of f32 values rounded to f32 once, as one add instruction does. */
float add_f32(float a, float b);

/* Returns the position of the token of row r, where each token has `per_token` rows. */
int64_t token_position(const struct problem *problem, int64_t r, int64_t per_token);

/* Return the query and the head of row r, where rows are those of queries. */
static inline int64_t query_of(const struct problem *problem, int64_t r)
{
    return r % problem->queries;
}

static inline int64_t head_of(const struct problem *problem, int64_t r)
{
    return r / problem->queries % problem->heads;
}

#endif
