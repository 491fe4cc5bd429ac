/*
 * What the files of the oracle share: its state, and one function for the rows of each
 * signature, which writes them as f64 rounded to odd (or exact f32 values).
 */
#ifndef POSENC_ORACLE_ROWS_H
#define POSENC_ORACLE_ROWS_H

#include "fixed.h"
#include "oracle.h"

/* Of a spec: a fraction of a turn for each pair, or the f32 frequency. */
struct frequencies {
    struct frequencies *next;
    struct posenc_freqs_spec spec;
    uint64_t (*turn)[3];
    float *inv_freq;
    double attention_factor;
};

struct oracle {
    const struct call *call;
    enum signature signature;
    int64_t n_pairs;
    const struct frequencies *frequencies;
    struct frequencies *own; /* freed with the oracle; the others are kept for the next one */
    struct big *turns;       /* with whole ones, for times */
    struct big *log_zeta;    /* xPos */
    struct oracle_ggml ggml; /* and of its arrays: */
    float *divisor, *kept;
    int32_t *thresholds; /* T5: least distance of each bucket of one direction */
    int64_t n_thresholds;
    int32_t *columns; /* relative: by query - key + keys - 1 */
};

/* tables.c */
bool create_plan(struct oracle *oracle);
void destroy_plan(struct oracle *oracle);
void row_sinusoidal(const struct oracle *oracle, int64_t r, int64_t width, double *want);
void row_rope_table(const struct oracle *oracle, int o, int64_t r, double *want);

/* scores.c */
void row_alibi(const struct oracle *oracle, int64_t r, int64_t width, double *want);
void row_t5(const struct oracle *oracle, int64_t r, int64_t width, double *want);
void row_distance(const struct oracle *oracle, int64_t r, int64_t width, double *want);
void row_window(const struct oracle *oracle, int64_t r, int64_t width, double *want);
void row_relative(const struct oracle *oracle, int64_t r, int64_t width, double *want);
void row_relative_sum(const struct oracle *oracle, int64_t r, int64_t width, double *want);

/* index.c */
bool create_thresholds(struct oracle *oracle);
bool create_columns(struct oracle *oracle);
int64_t window_row(const struct problem *problem, int64_t query, int64_t key);

/* a + b of f32 values, rounded to f32 once: what one add of a CPU gives. */
float add_f32(float a, float b);

#endif
