/*
 * Mistakes made on purpose, of which each has to be caught by the suite meant for it: the tests
 * of the tests.
 *
 * To add one, write a line in cases/mistakes.txt and at most one function: the line says by which
 * of the members of struct mistake below the mistake is made and names the function, whose type
 * and declaration follow from that.  The program `broken` and `posenc explain` find it there.
 */
#ifndef POSENC_MISTAKE_H
#define POSENC_MISTAKE_H

#include "conformance/problem/problem.h"

/* The tensors of a call, whatever its signature; NULL where there is none. */
struct parts {
    struct posenc_tensor *out, *second; /* second: sin */
    struct posenc_tensor *x, *terms[2]; /* terms: cos and sin, or c2p and p2c */
    struct posenc_positions *positions;
    const struct posenc_freqs *freqs;
    const void *input; /* something that must not be written */
    float x_scale;
};

/* A kernel that was entered.  Mistakes change the copy of its arguments, which `parts` points
 * into; the tensors of `copies` are stored in 16 bits and stand in `args` in f32. */
struct entered {
    enum posenc_kernel kernel;
    const union arguments *given;
    union arguments args;
    struct parts parts;
    enum posenc_status status;
    struct posenc_freqs *freqs; /* destroyed, and freed, when the kernel has returned */
    void *kept;
    int n_copies;
    struct f32_copy {
        struct posenc_tensor stored, wide;
        bool output;
    } copies[5];
};

/* An element of the output, [b, h, i, j], and the column its index by distance says. */
struct place {
    struct entered *e;
    int64_t b, h, i, j, column;
};
/* A token's position on one axis. */
struct position {
    const struct posenc_positions *of;
    int64_t b, t;
    int axis, axes;
    double value; /* of that axis */
};
/* A pair of a row of a table, and the row. */
struct pair {
    struct entered *e;
    struct posenc_freqs_view view;
    int64_t b, t, i;
    double time;
    float *cosine, *sine, *cosines, *sines;
};
/* The rows that turn x into out in one head, from the first channel that turns on: how many
 * pairs, and how many channels to the end of the head. */
struct rotation {
    int64_t half, rest;
    bool transpose;
    enum posenc_dtype stored; /* of x and out */
    const float *x, *cosines, *sines;
    float *out;
};
/* A head that is normalised and turned: the rows of its token from head to head, and its own. */
struct normed {
    const struct posenc_rope_qk_norm_args *args;
    enum posenc_dtype stored; /* of x and out */
    const float *token;       /* [heads, head_dim], as it was */
    int64_t head;
    const float *weight, *cosines, *sines;
    float *out;
};
/* The terms of an element, in the promised order. */
struct sum {
    const float *terms;
    int64_t n;
    float held;               /* what the element holds */
    bool onto;                /* and whether the sum goes onto that */
    enum posenc_dtype stored; /* of the terms */
};
/* What a builder was given, and the n integers or slopes that it made. */
struct built {
    int64_t rows, columns; /* queries and keys, height and width, batch and tokens, heads */
    int64_t offset, buckets, most;
    double bias_max;
    const uint8_t *mask;
    const int32_t *index; /* as they are */
    const float *slopes;
    int64_t n, last; /* last: the largest column or row there can be */
};

/* Instead of a position, this one.  Anything in the arguments, before the kernel.  Instead of
 * the kernel, which is run by enter_kernel().  Anything in the outputs, after it. */
typedef double position_mistake(const struct position *at);
typedef void arguments_mistake(struct entered *e);
typedef void around_mistake(struct entered *e);
typedef void after_mistake(struct entered *e, const struct posenc_tensor *out);
/* After the kernel: an edit of each pair of a table, the last first.  Instead of it: what is
 * written to, or added onto x in, each element; a row's rotation; the sum of the terms; what is
 * done to a head that is normalised. */
typedef void pair_mistake(const struct pair *p);
typedef float element_mistake(struct place at);
typedef void rotation_mistake(const struct rotation *r);
typedef float sum_mistake(const struct sum *s);
typedef void norm_mistake(const struct normed *n);
/* Another spec to make a plan of; one that stays as it is the mistake does not concern. */
typedef void plan_mistake(struct posenc_freqs_spec *spec);
/* Instead of element e of what a builder made. */
typedef double built_mistake(const struct built *b, int64_t e);
typedef built_mistake alibi_slopes_mistake, t5_thresholds_mistake, padding_positions_mistake,
    swin_index_mistake, beit_index_mistake, shaw_index_mistake, transformer_xl_index_mistake,
    deberta_index_mistake;
/* Instead of the front-end of sinusoidal or sinusoidal_add, which is `real`. */
typedef enum posenc_status front_end(const struct posenc_backend *backend,
                                     const struct posenc_sinusoidal_args *args);
typedef enum posenc_status front_mistake(front_end *real, const struct posenc_backend *backend,
                                         const struct posenc_sinusoidal_args *args);
/* Instead of how elements are stored in 16 bits, and read. */
typedef uint16_t store_mistake(enum posenc_dtype dtype, float value);
typedef float load_mistake(enum posenc_dtype dtype, uint16_t bits);

struct mistake {
    const char *name;
    enum posenc_kernel kernel; /* POSENC_KERNEL_COUNT: every kernel that it concerns */
    const char *suite, *what;
    bool (*concerns)(enum posenc_kernel kernel);
    const char *property;          /* the case <kernel>/<dtype>/<suite>/<property> must fail */
    enum posenc_dtype dtype, last; /* in which types */

    position_mistake *position;
    arguments_mistake *arguments;
    around_mistake *around;
    after_mistake *after;
    pair_mistake *pair;
    element_mistake *element;
    rotation_mistake *rotation;
    sum_mistake *sum;
    norm_mistake *norm;
    plan_mistake *plan;
    built_mistake *alibi_slopes, *t5_thresholds, *padding_positions, *swin_index, *beit_index,
        *shaw_index, *transformer_xl_index, *deberta_index;
    front_mistake *front;
    store_mistake *store;
    load_mistake *load;
};
extern const struct mistake mistakes[], mistakes_everywhere[];
extern const int n_mistakes, n_mistakes_everywhere;

#define MISTAKE(name, kernel, suite, how, function, what) how##_mistake function;
#define EVERYWHERE(name, suite, property, concerns, first, last, how, function)                \
    how##_mistake function;
#include "mistakes.inc"

/* The base with a mistake, to run suites on; one at a time.  How often it has been made since. */
const struct subject *mistaken(const struct mistake *mistake,
                               const struct posenc_backend *base);
const struct mistake *mistake_find(const char *name);
unsigned long mistake_count(void);
void mistake_made(void);

/* The current mistake, and the backend in which it is made. */
extern const struct mistake *mistake_now;
extern const struct posenc_backend *mistake_base;

/* ---- entered.c: what mistakes are made of ---- */

/* Makes the mistake of mistake_now in a kernel that was entered. */
enum posenc_status enter(enum posenc_kernel kernel, const union arguments *args);
/* The real kernel, with the arguments as they are now. */
void enter_kernel(struct entered *e);

/* Row (b, i1, i2) of an f32 tensor in the form backends get it. */
float *row_at(const struct posenc_tensor *t, int64_t b, int64_t i1, int64_t i2);
/* A position on an axis; that of pair or token 0 of a kernel that reads rows by it. */
double position_on(const struct posenc_positions *p, int64_t b, int64_t t, int axis);
/* Bytes until the kernel returns. */
void *enter_keep(struct entered *e, int64_t n, size_t size);
/* The last bit of x turned over. */
float other_last_bit(float x);

/* ---- in_f32.c: tensors of 16 bits as f32 copies of the same shape and strides ---- */

/* Exchanges the tensors of the call for copies (one where x is out), unless that is done;
 * writes outputs back and frees the copies. */
void in_f32_open(struct entered *e);
void in_f32_close(struct entered *e);

#endif
