/*
 * A problem is one call of a kernel described by numbers alone; a call is a problem with
 * memory.  Vectors, models, benches, the property tests and the command line all state
 * problems, and there is one way from a problem to a call.  Code here is per signature, never
 * per kernel.
 */
#ifndef POSENC_PROBLEM_H
#define POSENC_PROBLEM_H

#include <posenc.h>

enum signature {
    SIGNATURE_sinusoidal,
    SIGNATURE_learned,
    SIGNATURE_rope_table,
    SIGNATURE_rope,
    SIGNATURE_alibi,
    SIGNATURE_t5
};
enum signature kernel_signature(enum posenc_kernel kernel); /* from kernels.def */
const char *kernel_stage(enum posenc_kernel kernel);        /* "table" or "apply" */

/* What people call the members of the library's enums, in their order; NULL at the end. */
extern const char *const profile_names[], *const convention_names[];
extern const char *const scaling_names[], *const layout_names[], *const mrope_layout_names[];

/* Where inputs come from: see inputs.c.  The others are those of the published tests of ONNX
 * RotaryEmbedding-23, for rope alone. */
enum recipe {
    RECIPE_MIX,
    RECIPE_ONNX,                /* X [batch, heads, tokens, head_dim] */
    RECIPE_ONNX_3D,             /* X [batch, tokens, heads head_dim] */
    RECIPE_ONNX_NO_POSITION_IDS /* X as in the first; a row of cos and sin for each token */
};

/* Unused members are zero; problem_default() fills what a kernel needs with a small
 * valid case. */
struct problem {
    enum posenc_kernel kernel;
    enum posenc_dtype dtype;

    struct posenc_freqs_spec freqs; /* sinusoidal*, rope_table; freqs.dim is their dim */
    /* longrope without arrays in freqs: 1 for pair 0, then evenly up to these for the last */
    double short_factor_last, long_factor_last;
    int64_t mrope_grid; /* rope_table with axes: tokens are a picture of this width, row by row,
                           the last axis along a row, the one before down the rows, another at
                           `first`; 0: the same position on all axes (text) */
    enum posenc_layout layout;
    double scale;
    float x_scale;

    int64_t batch, tokens, heads; /* heads: rope, alibi, t5 */
    int64_t dim;                  /* learned: d_model; rope: head_dim */
    int64_t rotary_dim;           /* rope */
    int64_t rows;                 /* rows of the learned table or of cos/sin */
    int64_t queries, keys, query_offset;
    int64_t num_buckets, max_distance;
    double alibi_bias_max;
    bool causal, bidirectional, transpose;

    enum posenc_position_kind position_kind;
    int64_t first;            /* POSENC_OFFSET, or the first of consecutive positions */
    const int64_t *positions; /* arrays: [tokens], or NULL for consecutive ones from `first`;
                                 batch b of an array call has them shifted by b * batch_shift */
    int64_t batch_shift;
    double
        time_step; /* POSENC_POSITIONS_F32: token t is at (float)(position + t * time_step) */

    bool in_place;
    bool token_major;     /* [tokens, batch, ...] in memory */
    int64_t pad;          /* unused elements between rows (canaries in guarded memory) */
    int64_t offset_bytes; /* of every tensor from a 64-byte boundary; a multiple of 4 */
    uint64_t seed;        /* of the inputs */
    bool special;         /* inputs hold NaN, infinities, zeros of both signs, subnormals */
    enum recipe recipe;   /* of the inputs */
};

struct problem problem_default(enum posenc_kernel kernel);

/* Bytes a perfect kernel moves: inputs read once, outputs written once, tables of angles not
 * counted for rotations (they stay in cache). */
size_t problem_bytes(const struct problem *problem);

/* Bytes of memory those are: what is rewritten in place counts once.  Decides the footprint. */
size_t problem_working_set(const struct problem *problem);

/* Where a call's tensors live.  `role` is 'i' (input, kernels must not write), 'o' (output) or
 * 'b' (both, in place).  The default allocates 64-byte aligned memory. */
struct memory {
    void *(*get)(void *user, size_t bytes, int64_t offset_bytes, char role);
    void (*seal)(
        void *user); /* after inputs are filled: e.g. make them read-only; may be NULL */
    void (*free)(void *user, void *data);
    void *user;
};
extern const struct memory memory_plain;

/* One output of a call: rows of `width` elements, visited in the order batch, tokens, heads (or
 * batch, heads, queries). */
struct output {
    const char *name;            /* "out", "cos", "sin" */
    struct posenc_tensor tensor; /* rank 4 */
    int64_t rows, width;
};

struct call {
    struct problem problem;
    struct posenc_freqs *freqs; /* or NULL */
    union {
        struct posenc_sinusoidal_args sinusoidal;
        struct posenc_learned_args learned;
        struct posenc_rope_table_args rope_table;
        struct posenc_rope_args rope;
        struct posenc_alibi_args alibi;
        struct posenc_t5_args t5;
    } args;
    struct posenc_error error; /* what the last call or the making of it was refused for */
    int n_outputs;
    struct output outputs[2];
    const float *x;         /* pristine copy of the activations, dense in row order; or NULL */
    const float *table;     /* pristine learned or T5 table, dense; or NULL */
    const float *cos, *sin; /* pristine cos/sin, dense [rows, rotary_dim/2]; or NULL */
    const float *slopes;
    struct memory memory;
    void *owned[16]; /* freed by call_destroy */
};

/* Inputs are normal-range and never zero (unless `special`), a function of seed and index only.
 * cos/sin of a rope call are the correctly rounded ones of base 10000 at each row, up to 4096
 * rows, repeating after that.  RECIPE_ONNX... draw all of these instead.  Refusals of the
 * library (bad dim, theta) come back as its status. */
enum posenc_status call_create(struct call *call, const struct problem *problem,
                               const struct memory *memory);
enum posenc_status call_run(struct call *call, const struct posenc_backend *backend);
void call_reset(struct call *call); /* inputs of an in-place call as they were; outputs filled
                                       with a NaN canary */
void call_destroy(struct call *call);

/* Row r of output o, as the kernel left it. */
const float *call_row(const struct call *call, int o, int64_t r);

/* Whether the recipe draws an array of positions, [batch, tokens]. */
bool problem_draws_positions(const struct problem *problem);

/* Position of token t in batch b of a problem; on one of its axes, of which a problem with
 * mrope_grid has problem_axes(). */
int64_t problem_position(const struct problem *problem, int64_t b, int64_t t);
int64_t problem_axis_position(const struct problem *problem, int64_t b, int64_t t, int axis);
int problem_axes(const struct problem *problem);
/* The same as a kernel reads it, with the fraction of a time. */
double problem_time(const struct problem *problem, int64_t b, int64_t t, int axis);

/* A 64-bit mix of its arguments (splitmix64): the only source of randomness here, but for the
 * recipes of others. */
uint64_t mix64(uint64_t seed, uint64_t index);

/* What call_reset fills outputs with: a NaN that no kernel makes. */
#define CALL_CANARY 0x7fc0deadu

#endif
