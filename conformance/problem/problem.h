/*
 * A problem is one call of a kernel described by numbers alone; a call is a problem with
 * memory.  Vectors, models, benches, the property tests and the command line all state
 * problems, and there is one way from a problem to a call.  Code here is per signature, never
 * per kernel.
 */
#ifndef POSENC_PROBLEM_H
#define POSENC_PROBLEM_H

#include "arena.h"
#include "storage.h"

/* ---- Implementations under test ---- */

/* A backend, and the functions of the library with which calls of its kernels are made and run.  Programs test the
 * library's own; the faulty kernels test the suites with others in their place. */
#define SUBJECT_BUILDERS(ONE)                                                                  \
    ONE(freqs_create)                                                                          \
    ONE(freqs_destroy)                                                                         \
    ONE(alibi_slopes)                                                                          \
    ONE(t5_thresholds)                                                                         \
    ONE(padding_positions)                                                                     \
    ONE(swin_index) ONE(beit_index) ONE(shaw_index) ONE(transformer_xl_index) ONE(deberta_index)

struct subject {
    const struct posenc_backend *backend;

    /* What makes plans and destroys them, and makes the integers and slopes that kernels are
     * given; the front-end of each kernel. */
#define FUNCTION(name) __typeof__(posenc_##name) *name;
    SUBJECT_BUILDERS(FUNCTION)
#define POSENC_KERNEL(name, ...) FUNCTION(name)
#include <posenc_kernels.def>
#undef FUNCTION
};

/* The functions of the library, without a backend; with one. */
extern const struct subject subject_library;
struct subject subject_of(const struct posenc_backend *backend);

/* The functions of a kernel: a subject's front-end, and its backend's. */
void (*subject_entry(const struct subject *subject, enum posenc_kernel kernel))(void);
void (*backend_entry(const struct posenc_backend *backend, enum posenc_kernel kernel))(void);

/* ---- Problems ---- */

/* The place of a signature in posenc_signatures.def: an index, where others have tables by it. */
enum signature_id {
#define POSENC_SIGNATURE(name) SIGNATURE_##name,
#include <posenc_signatures.def>
};
enum signature_id kernel_signature(enum posenc_kernel kernel); /* from kernels.def */
const char *kernel_stage(enum posenc_kernel kernel);           /* "table" or "apply" */

/* What people call the members of the library's enums, in their order; NULL at the end. */
extern const char *const profile_names[], *const convention_names[];
extern const char *const layout_names[], *const mrope_layout_names[];
extern const char *const dtype_names[], *const relative_names[];

/* Where inputs come from: see inputs.c.  Those in the middle are of the published tests of ONNX
 * RotaryEmbedding-23, for rope alone; RECIPE_ANY is RECIPE_MIX with cosines and sines that are none,
 * but numbers like the others, below 1; with RECIPE_EDGES these and slopes are of every magnitude.
 * RECIPE_INDEX fills learned tables and terms with the number of each element, in row order, up to
 * 2^24: a bias of one head is then the row of its table. */
enum recipe {
    RECIPE_MIX,
    RECIPE_ONNX,                 /* X [batch, heads, tokens, head_dim] */
    RECIPE_ONNX_3D,              /* X [batch, tokens, heads head_dim] */
    RECIPE_ONNX_NO_POSITION_IDS, /* X as in the first; a row of cos and sin for each token */
    RECIPE_ANY,
    RECIPE_EDGES,
    RECIPE_INDEX
};

/* Whose columns relative_bias and relative_sum take: posenc_<name>_index(). */
enum relative { RELATIVE_DEBERTA, RELATIVE_SHAW, RELATIVE_TRANSFORMER_XL };

/* How two tensors of a call share memory without sharing an element: the cosines and sines of
 * rope_table, x and out of others.  As one array with a dimension of two more, before the last
 * dimension, [tokens, 2, half]; the same with the first output behind the other; before the
 * dimension that turns fastest of the others, [batch, 2, tokens, half]; before all of them. */
enum woven { WOVEN_NONE, WOVEN_ROWS, WOVEN_ROWS_SWAPPED, WOVEN_BLOCKS, WOVEN_TENSORS };

/* Where the elements of one tensor of a problem lie, independently of the others. */
enum { LAYOUTS = 6, MOST_STRIDES = 3 };
struct tensor_layout {
    int64_t pad, offset_bytes; /* added to the problem's pad; in the place of its offset */
    /* In elements, of each dimension of the signature's row but the last of a tensor; of
     * positions by batch, token and axis.  0 repeats an input: what it holds is then what was
     * filled last.  Without any: dense rows, by pad and token_major. */
    int64_t n_strides, stride[MOST_STRIDES];
};

/* A parameter that a signature declares for itself, in its row (signature.h). */
union own {
    int64_t i64;
    double f64;
    float f32;
    bool flag;
    int member; /* of an enum */
};
enum { MOST_OWN = 4 };

/* Unused members are as problem_blank() has them. */
struct problem {
    enum posenc_kernel kernel;
    enum posenc_dtype dtype;       /* of x and out; of cos and sin where they are outputs */
    enum posenc_dtype table_dtype; /* rope: of cos and sin */
    enum posenc_dtype values;      /* x and terms are rounded to this type first, whatever holds
                                      them: what an f32 call and a bf16 one have in common */

    struct posenc_freqs_spec freqs; /* sinusoidal*, rope_table; freqs.dim is their dim */
    /* longrope without arrays in freqs: 1 for pair 0, then evenly up to these for the last */
    double short_factor_last, long_factor_last;
    int64_t mrope_grid; /* rope_table with axes: tokens are a picture of this width, row by row,
                           the last axis along a row, the one before down the rows, another at
                           `first`; 0: the same position on all axes (text) */
    enum posenc_layout layout;
    double scale;
    float x_scale;

    int64_t batch, tokens, heads;      /* heads: rope, alibi, t5 */
    int64_t dim;                       /* learned: d_model; rope: head_dim */
    int64_t rotary_dim, rotary_offset; /* rope */
    int64_t rows;                      /* of the learned table or its gradient, of cos/sin */
    int64_t queries, keys, query_offset;
    int64_t num_buckets, max_distance; /* T5; DeBERTa: position_buckets, max_distance; Shaw: the
                                          latter */
    double alibi_bias_max;
    bool causal, bidirectional, transpose;
    bool slopes_by_batch; /* alibi: batch b has the slopes of heads b * heads ... of them all */
    /* window: a call makes queries and keys their product, plus 1 for a class token (BEiT) */
    int64_t window_height, window_width;
    bool window_class;
    /* distance: columns, from the least of the call on; 0: all it has.  window: rows of the table;
     * 0: one for each difference of the window */
    int64_t distances;
    enum relative relative;     /* Transformer-XL: query_offset is keys - queries */
    bool without_c2p, with_p2c; /* relative */
    /* window, relative: problem_scattered() in place of a builder's index; alibi: slopes of both
     * signs, and 0 */
    bool scattered;
    bool accumulate; /* learned_grad: onto what out holds */

    enum posenc_position_kind position_kind;
    int64_t first;            /* POSENC_OFFSET, or the first of consecutive positions */
    const int64_t *positions; /* arrays: [tokens], or NULL for consecutive ones from `first`;
                                 batch b of an array call has them shifted by b * batch_shift */
    int64_t batch_shift;
    double time_step; /* POSENC_POSITIONS_F32: token t is at (float)(position + t time_step) */

    bool in_place;    /* where kernel_in_place() */
    enum woven woven; /* out of place, where kernel_woven_row() */
    bool token_major; /* [tokens, batch, ...] in memory */
    int64_t pad;      /* unused elements between rows (canaries in guarded memory) */
    /* Of every tensor from a 64-byte boundary: a multiple of the smallest elements of the call,
     * rounded down to those of the tensor. */
    int64_t offset_bytes;
    struct tensor_layout layouts[LAYOUTS]; /* of the tensors in their signature's order; x in
                                              place has that of out */
    uint64_t seed;                         /* of the inputs */
    bool special;       /* inputs hold NaN, infinities, zeros of both signs, subnormals */
    enum recipe recipe; /* of the inputs */
    union own own[MOST_OWN];
};

/* A small valid problem of a kernel; a realistic one that fills about so many bytes (cases.h). */
struct problem problem_default(enum posenc_kernel kernel);
struct problem problem_realistic(enum posenc_kernel kernel, enum posenc_dtype dtype,
                                 size_t bytes);

/* Whether a kernel reads activations or scores, rather than writing `out` alone; and whether
 * these may be `out` itself. */
bool kernel_takes_x(enum posenc_kernel kernel);
bool kernel_in_place(enum posenc_kernel kernel);
/* Whether rows are those of queries, [batch, heads, queries]; those of others have tokens.
 * Whether there is a plan: positions are computed with, and may be times, rather than rows. */
bool kernel_on_scores(enum posenc_kernel kernel);
bool kernel_has_plan(enum posenc_kernel kernel);

/* Whether pairs of a head's channels turn by given rows of cosines and sines: `rotary_dim` of
 * them from `rotary_offset` on. */
bool kernel_turns(enum posenc_kernel kernel);

/* Whether the two of a pair lie side by side, or else half of those channels apart. */
bool kernel_pairs_adjacent(enum posenc_kernel kernel);

/* Whether a channel turns; if so, its pair, whether it is the second of that, and the other one of
 * the two; if not, itself. */
struct turning {
    bool turns, second;
    int64_t pair, partner;
};
struct turning problem_turning(const struct problem *problem, int64_t channel);

/* Whether calls may have several batches: without x only where an input differs by batch. */
bool kernel_has_batch(enum posenc_kernel kernel);

/* Whether what it computes, rounded to f32, is added onto x times x_scale. */
bool kernel_adds_onto_x(enum posenc_kernel kernel);

/* Whether a call adds onto what out holds. */
bool problem_accumulates(const struct problem *problem);

/* Sets members that follow from others, as a call has them. */
void problem_settle(struct problem *problem);

/* Sizes that follow from others: tokens of a window, that is its queries and its keys; distances
 * of queries and keys. */
int64_t problem_window(const struct problem *problem);
int64_t problem_distances(int64_t queries, int64_t keys);

/* Bytes a perfect kernel moves: inputs read once, outputs written once, tables of angles not
 * counted for rotations (they stay in cache). */
size_t problem_bytes(const struct problem *problem);

/* Bytes of memory those are: what is rewritten in place counts once.  Decides the footprint. */
size_t problem_working_set(const struct problem *problem);

/* Bytes of all its tensors, whether touched or not. */
size_t problem_memory(const struct problem *problem);

/* Where a call's tensors live.  `role` is 'i' (input, kernels must not write), 'o' (output) or
 * 'b' (both, in place).  The default allocates 64-byte aligned memory. */
struct memory {
    void *(*get)(void *user, size_t bytes, int64_t offset_bytes, char role);
    /* For a tensor most of which are gaps: address space alone, of which use() is told each part
     * before it is written; false: refused.  NULL: get() does for these, too. */
    void *(*reserve)(void *user, size_t bytes, int64_t offset_bytes, char role);
    bool (*use)(void *user, void *part, size_t bytes);
    /* After inputs are filled: e.g. make them read-only; may be NULL. */
    void (*seal)(void *user);
    void (*free)(void *user, void *data);
    void *user;
};
extern const struct memory memory_plain;

/* One output of a call: rows of `width` elements, visited in the order batch, tokens, heads (or
 * batch, heads, queries). */
struct output {
    const char *name; /* "out", "cos", "sin" */
    struct posenc_tensor tensor;
    int64_t rows, width;
};

/* The arguments of any kernel. */
union arguments {
#define POSENC_SIGNATURE(name) struct posenc_##name##_args name;
#include <posenc_signatures.def>
};

struct call {
    struct problem problem;
    const struct subject *subject; /* whose functions make and run it */
    struct posenc_freqs *freqs;    /* or NULL */
    union arguments args;
    struct posenc_error error; /* what the last call or the making of it was refused for */
    int n_outputs;
    struct output outputs[2];
    /* Pristine copies of the inputs: f32, dense in row order, rounded to the types of the
     * call's tensors.  NULL for what the kernel does not have.  Of a table with many elements only
     * the rows at the call's positions are filled (call_tensors.c); the others hold zeros. */
    const float *x;
    const float *table;     /* learned, T5, window: [rows, dim or heads]; distance: [heads,
                               columns]; learned_grad with accumulate: what out holds before */
    const float *c2p, *p2c; /* [batch heads queries, columns], [batch heads keys, columns] */
    const float *cos, *sin; /* [rows, rotary_dim / 2] */
    const float *slopes;    /* [heads], or [batch, heads] with slopes_by_batch */
    int64_t columns;        /* relative, relative_sum, distance */
    struct memory memory;
    int n_owned;
    void *owned[LAYOUTS]; /* from that memory */
    struct arena kept;    /* from our own */
    float *wide[2];       /* what call_row shows of outputs that are not f32, [rows, width] */
};

/* Inputs are a function of seed and index; before rounding normal-range and, unless `special`,
 * never zero.
 * cos/sin of a rope call are the correctly rounded ones of base 10000 at each row, up to 4096
 * rows, repeating after that.  RECIPE_ONNX... draw all of these instead.  Refusals of the
 * library (bad dim, theta) come back as its status. */
enum posenc_status call_create(struct call *call, const struct problem *problem,
                               const struct memory *memory);
/* The same by the functions of a subject, which has to outlive the call; NULL: the library's. */
enum posenc_status call_create_by(const struct subject *subject, struct call *call,
                                  const struct problem *problem, const struct memory *memory);
enum posenc_status call_run(struct call *call, const struct posenc_backend *backend);
void call_reset(struct call *call); /* inputs of an in-place call as they were; outputs filled
                                       with a NaN canary */
void call_destroy(struct call *call);

/* The same call, on the same tensors, by the functions of another subject, with a plan of its own.
 * To be ended before that call is. */
enum posenc_status call_share(const struct call *call, const struct subject *subject,
                              struct call *copy);
void call_unshare(struct call *copy);

/* Its x (without data where the kernel takes none), the first of its outputs, its positions
 * (NULL where it has none). */
struct posenc_tensor *call_x(struct call *call);
struct posenc_tensor *call_out(struct call *call);
struct posenc_positions *call_positions(struct call *call);

/* Row r of output o as it is now: f16 and bf16 widened to f32 each time one asks. */
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

/* Element i of an index of `n` rows or columns that no builder makes: each row for itself, in short
 * runs that rise, fall or stay, cut anywhere. */
int64_t problem_scattered(const struct problem *problem, int64_t i, int64_t n);

/* A 64-bit mix of its arguments (splitmix64): the only source of randomness here, but for the
 * recipes of others. */
uint64_t mix64(uint64_t seed, uint64_t index);

/* What call_reset fills outputs with: a NaN that no kernel makes, and that each type of storage
 * holds. */
#define CALL_CANARY 0x7fed0000u

#endif
