/*
 * Pictures, drawn by the program gnuplot.  Each function writes one file, complete or not at
 * all (a temporary file is renamed over it); path NULL or "-" is standard output.  0, or -1
 * with a message in `error`.
 */
#ifndef POSENC_PLOT_H
#define POSENC_PLOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PLOT_ERROR = 512 };

struct plot_target {
    const char *format; /* "png" or "svg" */
    const char *path;
};

/* Whether gnuplot can be run and has the terminals; else `error` says what to install. */
bool plot_available(char error[PLOT_ERROR]);

/* One figure of a table [tokens, dim], dense f32: heat map, some dimensions as curves, cosine
 * similarity of positions. */
enum { PLOT_CURVES = 8 };
struct plot_sinusoidal {
    const char *caption;        /* "rope_theta 10000, interleaved, exact, avx2" */
    int64_t tokens, dim, first; /* first: the position of row 0 */
    const float *table;
    int n_curves;
    int64_t curve[PLOT_CURVES];     /* dimensions */
    double wavelength[PLOT_CURVES]; /* of each, in positions; 0: not known */
};
/* Chooses curves that can be read: their wavelengths grow evenly from an eighth of the positions
 * to three times as many, and have eight of them at least.  `wavelength` is that of each
 * dimension; 0: never. */
void plot_choose_curves(struct plot_sinusoidal *plot, const double *wavelength);
int plot_sinusoidal(const struct plot_sinusoidal *plot, const struct plot_target *target,
                    char error[PLOT_ERROR]);
/* Its figures as text: shape, min, max, average cosine similarity at offsets 1, 4, 16
 * and 32. */
void plot_sinusoidal_facts(const float *table, int64_t tokens, int64_t dim, FILE *out);

/* Error against position, both axes logarithmic, one curve each.  An error of zero is drawn at
 * the bottom. */
struct plot_curve {
    const char *label;   /* "template (scalar, avx2, avx512)  exact" */
    const char *profile; /* chooses the line style */
    const char *backend; /* whose colour it has; NULL: it is not of some backends alone */
    size_t n;
    const double *position, *error;
};
int plot_error(const struct plot_curve *curves, size_t n, const char *caption,
               const struct plot_target *target, char error[PLOT_ERROR]);

/* A rotation at work: some pairs turning with the position, and the product of a query and a
 * key by their offset, for a query near the start and one far out. */
enum { ROPE_PAIRS = 3, ROPE_TURNS = 8, ROPE_VECTORS = 2 };
struct plot_rope {
    const char *caption;
    int n_pairs;
    struct {
        int64_t channel[2];
        double rad;                 /* per position */
        double turn[ROPE_TURNS][2]; /* where (1, 0) goes at positions 0, 1, ... */
    } pair[ROPE_PAIRS];
    int64_t n_offsets; /* 0, 1, ... */
    int64_t query[2];  /* positions: near, far */
    const char *vectors[ROPE_VECTORS];
    double *product[ROPE_VECTORS][2]; /* q.k / (|q| |k|) by offset, for each query */
};
int plot_rope(const struct plot_rope *rope, const struct plot_target *target,
              char error[PLOT_ERROR]);

/* ALiBi: bias[head][distance], and the slope of each head. */
struct plot_alibi {
    const char *caption;
    int64_t heads, distances;
    const float *bias, *slopes;
};
int plot_alibi(const struct plot_alibi *alibi, const struct plot_target *target,
               char error[PLOT_ERROR]);

/* T5: the bucket of each relative position key - query from -reach to reach. */
struct plot_t5 {
    const char *caption;
    int64_t num_buckets, max_distance, reach;
    const float *bidirectional, *causal; /* [2 reach + 1] */
};
int plot_t5(const struct plot_t5 *t5, const struct plot_target *target, char error[PLOT_ERROR]);

/* A learned table as it is before training, beside the sinusoidal one: values, the similarity
 * of its positions, and how much each adds to tokens, as standard deviations. */
enum { LEARNED_BARS = 5 };
struct plot_learned {
    const char *caption;
    int64_t tokens, dim, first; /* first: the row of the table at the bottom */
    const float *table;
    const char *names[LEARNED_BARS];
    double deviation[LEARNED_BARS];
};
int plot_learned(const struct plot_learned *learned, const struct plot_target *target,
                 char error[PLOT_ERROR]);

/* Biases of several encodings, one head each: bias[curve][distance]. */
enum { BIAS_CURVES = 5 };
struct plot_bias {
    const char *caption;
    int64_t distances;
    const char *names[BIAS_CURVES];
    const float *bias;
};
int plot_bias(const struct plot_bias *bias, const struct plot_target *target,
              char error[PLOT_ERROR]);

/* xPos: the product of a query and a key of ones by their offset, without it and with it, and
 * the factor zeta of some pairs for scale_base positions. */
enum { XPOS_PAIRS = 4 };
struct plot_xpos {
    const char *caption;
    int64_t n_offsets;
    double scale_base;
    double *product[2]; /* RoPE, xPos; over dim */
    int64_t pair[XPOS_PAIRS];
    double zeta[XPOS_PAIRS];
};
int plot_xpos(const struct plot_xpos *xpos, const struct plot_target *target,
              char error[PLOT_ERROR]);

/* DeBERTa: the column of each distance query - key from -reach to reach. */
struct plot_deberta {
    const char *caption;
    int64_t position_buckets, max_distance, columns, reach;
    const float *column; /* [2 reach + 1] */
};
int plot_deberta(const struct plot_deberta *deberta, const struct plot_target *target,
                 char error[PLOT_ERROR]);

/* Swin: the row of the table for each query and key of a window: row[n][n], n = height width.
 */
struct plot_swin {
    const char *caption;
    int64_t height, width, rows;
    const float *row;
};
int plot_swin(const struct plot_swin *swin, const struct plot_target *target,
              char error[PLOT_ERROR]);

/* Of an array of records: GB/s by backend for each case of kernel `kernel` with the roof
 * marked, and accuracy against speed of a kernel's backends.  1: the records hold nothing to
 * draw (no file). */
int plot_speed(const json_t *records, const char *kernel, const struct plot_target *target,
               char error[PLOT_ERROR]);
int plot_tradeoff(const json_t *records, const char *kernel, const struct plot_target *target,
                  char error[PLOT_ERROR]);

/* Speed of each backend against plain C (libm), for every case of the records; the same numbers as
 * text. */
int plot_speedup(const json_t *records, const struct plot_target *target,
                 char error[PLOT_ERROR]);
void plot_speedup_facts(const json_t *records, FILE *out);

#endif
