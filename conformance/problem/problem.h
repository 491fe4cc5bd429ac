/*
 * A problem describes one call of a kernel by numbers alone: shapes, parameters, seed of the inputs. As text
 * (notation.h) it is a line such as
 *
 *     rope_half head_dim=80 rotary_dim=32 heads=2 tokens=3 rows=3
 *
 * A call is a problem with its tensors in memory, and an implementation that runs it. Golden vectors, benchmarks,
 * property tests and the command line all state problems; call_create() makes a call of one. This code depends on the
 * signature of a kernel (its kind of arguments, signature.h), never on the kernel.
 */
#ifndef POSENC_PROBLEM_H
#define POSENC_PROBLEM_H

#include "arena.h"
#include "storage.h"

/* ---- Implementations under test ---- */

/* Functions of the library that make frequencies, slopes, positions and index tables. */
#define IMPLEMENTATION_BUILDERS(ONE)                                                           \
    ONE(freqs_create)                                                                          \
    ONE(freqs_destroy)                                                                         \
    ONE(alibi_slopes)                                                                          \
    ONE(t5_buckets_compute)                                                                    \
    ONE(padding_positions)                                                                     \
    ONE(swin_index) ONE(beit_index) ONE(shaw_index) ONE(transformer_xl_index) ONE(deberta_index)

/* A backend, and the functions that make and run calls of its kernels: those above, and the public function of each
 * kernel. Usually they are the library's own. Tests of the suites replace some by faulty ones. */
struct implementation {
    const struct posenc_backend *backend;
#define FUNCTION(name) __typeof__(posenc_##name) *name;
    IMPLEMENTATION_BUILDERS(FUNCTION)
#define POSENC_KERNEL(ID, name, ...) FUNCTION(name)
#include <posenc_kernels.def>
#undef FUNCTION
};

/* The library's own functions, without a backend and with one. */
extern const struct implementation implementation_library;
struct implementation implementation_of(const struct posenc_backend *backend);

/* Return the public function of a kernel, and the backend's function behind it. */
void (*implementation_entry(const struct implementation *implementation,
                            enum posenc_kernel kernel))(void);
void (*backend_entry(const struct posenc_backend *backend, enum posenc_kernel kernel))(void);

/* ---- Problems ---- */

/* Index of a signature in posenc_signatures.def, for tables that have an entry for each. */
enum signature_id {
#define POSENC_SIGNATURE(name) SIGNATURE_##name,
#include <posenc_signatures.def>
};
enum signature_id kernel_signature(enum posenc_kernel kernel);
const char *kernel_stage(enum posenc_kernel kernel); /* "table" or "apply" */

/* Names of the members of the library's enums, in their order; NULL at the end. */
extern const char *const numerics_names[], *const spacing_names[];
extern const char *const layout_names[], *const mrope_layout_names[];
extern const char *const dtype_names[], *const relative_names[];

/* Recipes for the values of inputs (inputs.c). The ONNX recipes are those of the published tests of ONNX
 * RotaryEmbedding-23, for rope alone. */
enum input_recipe {
    RECIPE_MIX,                  /* random numbers; cos and sin of positions */
    RECIPE_ONNX,                 /* X [batch, heads, tokens, head_dim] */
    RECIPE_ONNX_3D,              /* X [batch, tokens, heads head_dim] */
    RECIPE_ONNX_NO_POSITION_IDS, /* X as in RECIPE_ONNX; a row of cos and sin for each token */
    RECIPE_ANY,                  /* cos and sin are random numbers below 1 */
    RECIPE_EDGES,                /* cos, sin and slopes have every magnitude */
    RECIPE_INDEX /* elements of tables and terms are their index modulo 2^24, so that a bias of one head
                  * identifies its row */
};

/* Source of the columns of relative_bias and relative_sum: posenc_<name>_index(). */
enum relative_source { RELATIVE_DEBERTA, RELATIVE_SHAW, RELATIVE_TRANSFORMER_XL };

/* Ways in which two tensors are interleaved in one block of memory, without sharing an element: cos and sin of
 * rope_table, x and out of other kernels. The block has one more dimension, of size 2. */
enum woven {
    WOVEN_NONE,
    WOVEN_ROWS,         /* before the last dimension: [batch, tokens, 2, half] */
    WOVEN_ROWS_SWAPPED, /* the same, with the first output second */
    WOVEN_BLOCKS, /* before the fastest-varying of the other dimensions: [batch, 2, tokens, half] */
    WOVEN_TENSORS /* first: [2, batch, tokens, half] */
};

/* Memory layout of one tensor of a problem. */
enum { LAYOUTS = 6, MOST_STRIDES = 3 };
struct tensor_layout {
    int64_t pad, offset_bytes; /* added to the problem's pad; replaces its offset unless 0 */
    /* Strides in elements: for each dimension but the last of a tensor; for batch, token and axis of positions. An
     * input with a stride of 0 repeats the row that was stored last. Without strides, pad and token_major of the
     * problem determine them. */
    int64_t n_strides, stride[MOST_STRIDES];
};

/* Value of a parameter that a signature declares in its own row (signature.h). */
union parameter_value {
    int64_t i64;
    double f64;
    float f32;
    bool flag;
    int member; /* of an enum */
};
enum { MOST_OWN_PARAMETERS = 4 };

/* One call of a kernel. Members that its signature does not use keep the defaults of problem_blank(). */
struct problem {
    enum posenc_kernel kernel;
    enum posenc_dtype dtype;       /* of x and out; of cos and sin if they are outputs */
    enum posenc_dtype table_dtype; /* of the cos and sin that rope reads */
    /* x and terms are rounded to this type first, then to their own. An f32 call and a bf16 call can thus have equal
     * inputs. */
    enum posenc_dtype values_dtype;

    struct posenc_freqs_spec freqs; /* sinusoidal*, rope_table; freqs.dim is their dim */
    /* longrope without arrays in freqs: factors rise evenly from 1 to these at the last pair. */
    double short_factor_last, long_factor_last;
    /* Kernels with axes: width of an image, whose pixels are the tokens, row by row. The last axis has the column of
     * a pixel, the one before it the row, any other stays at `first`. With 0, tokens are text: all axes have the same
     * position. */
    int64_t mrope_grid;
    enum posenc_layout layout;
    double scale;
    float x_scale;

    int64_t batch, tokens, heads;      /* heads: rope, alibi, t5 */
    int64_t dim;                       /* learned: d_model; rope: head_dim */
    int64_t rotary_dim, rotary_offset; /* rope */
    int64_t rows;                      /* of the learned table or its gradient, of cos/sin */
    int64_t queries, keys, query_offset;
    int64_t num_buckets, max_distance; /* T5, DeBERTa; Shaw has only the second */
    double alibi_bias_max;
    bool causal, bidirectional, transpose;
    bool slopes_by_batch; /* alibi: batch b has slopes b * heads, b * heads + 1, ... */
    /* window: queries and keys number height * width, plus 1 with the class token of BEiT. */
    int64_t window_height, window_width;
    bool window_class;
    /* distance: columns, from the least distance of the call on; 0: as many as the call needs. window: rows of the
     * table; 0: one for each displacement in the window. */
    int64_t distances;
    enum relative_source relative; /* Transformer-XL: query_offset is keys - queries */
    bool without_c2p, with_p2c;    /* relative */
    /* window, relative: the index is problem_scattered_index(). alibi: slopes have both signs, or are 0. */
    bool scattered;
    bool accumulate; /* learned_grad: add to the contents of out */

    enum posenc_position_kind position_kind;
    int64_t first; /* POSENC_POSITIONS_OFFSET, or the first of consecutive positions */
    /* [tokens], or NULL for consecutive ones from `first`. Batch b adds b * batch_shift. */
    const int64_t *positions;
    int64_t batch_shift;
    double time_step; /* POSENC_POSITIONS_F32: token t has (float)(position + t time_step) */

    bool in_place;    /* x is out; only if kernel_in_place() */
    enum woven woven; /* only out of place, if kernel_woven_row() is not NULL */
    bool token_major; /* [tokens, batch, ...] in memory */
    int64_t pad;      /* unused elements between rows; canaries in guarded memory */
    /* Offset of every tensor from a 64-byte boundary, a multiple of the smallest element size of the call. Each tensor
     * rounds it down to a multiple of its own element size. */
    int64_t offset_bytes;
    struct tensor_layout layouts[LAYOUTS]; /* one for each row of the signature */
    uint64_t seed;                         /* of the inputs */
    bool special; /* inputs include NaN, infinities, zeros of both signs, subnormals */
    enum input_recipe recipe; /* of the inputs */
    union parameter_value parameters[MOST_OWN_PARAMETERS];
};

/* Return a small valid problem, and one of a model's proportions with about `bytes` bytes (see cases.h). */
struct problem problem_default(enum posenc_kernel kernel);
struct problem problem_realistic(enum posenc_kernel kernel, enum posenc_dtype dtype,
                                 size_t bytes);

/* Properties of a kernel. */
bool kernel_takes_x(enum posenc_kernel kernel);   /* reads activations or scores */
bool kernel_in_place(enum posenc_kernel kernel);  /* x may be out itself */
bool kernel_on_scores(enum posenc_kernel kernel); /* rows are queries, not tokens */
bool kernel_has_freqs(enum posenc_kernel kernel); /* computes angles of positions */

/* Returns true if the kernel rotates pairs of channels by the cos and sin that it is given. */
bool kernel_rotates(enum posenc_kernel kernel);

/* Returns true if the channels of a pair are adjacent, false if half the rotary channels apart. */
bool kernel_pairs_adjacent(enum posenc_kernel kernel);

/* Place of a channel in its pair. A channel that is left unrotated is its own partner. */
struct channel_rotation {
    bool rotates, second; /* true for the second channel of the pair */
    int64_t pair, partner;
};
struct channel_rotation problem_rotation(const struct problem *problem, int64_t channel);

/* Returns true if calls may have several batches. A bias needs an input that differs by batch. */
bool kernel_has_batch(enum posenc_kernel kernel);

/* Returns true if the result, rounded to f32, is added to x * x_scale. */
bool kernel_adds_onto_x(enum posenc_kernel kernel);

/* Returns true if a call adds to the contents of out. */
bool problem_accumulates(const struct problem *problem);

/* Sets the members that follow from others: `woven` and `in_place`, sizes of windows. */
void problem_derive(struct problem *problem);

/* Return sizes that follow from others: queries (and keys) of a window; number of distances. */
int64_t problem_window_size(const struct problem *problem);
int64_t problem_count_distances(int64_t queries, int64_t keys);

/* Returns the bytes that a perfect kernel moves. Inputs are read once and outputs written once. Tables of cosines and
 * sines for rotations do not count, as they stay in cache. */
size_t problem_bytes(const struct problem *problem);

/* Returns the bytes of memory that problem_bytes() reads or writes. Data written in place counts once. */
size_t problem_working_set(const struct problem *problem);

/* Returns the bytes of all tensors, whether used or not. */
size_t problem_memory(const struct problem *problem);

/* Allocator of a call's tensors. `role` is 'i' for an input, which kernels must not write, 'o' for an output, 'b' for
 * both in one. `offset_bytes` is the offset from a 64-byte boundary. */
struct tensor_allocator {
    void *(*get)(void *user, size_t bytes, int64_t offset_bytes, char role);
    /* Reserves address space for a tensor that is mostly gaps; NULL: get() allocates such tensors, too. */
    void *(*reserve)(void *user, size_t bytes, int64_t offset_bytes, char role);
    /* Makes a part of reserved memory accessible; returns false on failure. */
    bool (*use)(void *user, void *part, size_t bytes);
    /* Runs after inputs are filled, for example to make them read-only; may be NULL. */
    void (*seal)(void *user);
    void (*free)(void *user, void *data);
    void *user;
};
extern const struct tensor_allocator tensor_allocator_default;

/* An output of a call. Rows are numbered in the order batch, tokens, heads (or batch, heads, queries). */
struct output {
    const char *name; /* "out", "cos", "sin" */
    struct posenc_tensor tensor;
    int64_t rows, width;
};

/* Arguments of a kernel's public function. */
union arguments {
#define POSENC_SIGNATURE(name) struct posenc_##name##_args name;
#include <posenc_signatures.def>
};

/* A problem with its tensors in memory. */
struct call {
    struct problem problem;
    const struct implementation *implementation; /* whose functions make and run the call */
    struct posenc_freqs *freqs;                  /* or NULL */
    union arguments args;
    struct posenc_error error; /* reason of the last failure to make or run the call */
    int n_outputs;
    struct output outputs[2];
    /* Dense f32 copies of the inputs in row order, rounded to the types of the call's tensors; NULL for absent
     * inputs. In a large table, only the rows at the call's positions are filled; the others are 0
     * (call_tensors.c). */
    const float *x;
    /* learned, T5, window: [rows, dim or heads]. distance: [heads, columns]. learned_grad that accumulates: the
     * contents of out before the call. */
    const float *table;
    const float *c2p, *p2c; /* [batch heads queries, columns], [batch heads keys, columns] */
    const float *cos, *sin; /* [rows, rotary_dim / 2] */
    const float *slopes;    /* [heads], or [batch, heads] with slopes_by_batch */
    int64_t columns;        /* relative, relative_sum, distance */
    struct tensor_allocator memory;
    int n_owned;
    void *owned[LAYOUTS]; /* allocated by `memory` */
    struct arena arena;   /* everything else that the call allocated */
    float *wide[2];       /* [rows, width], for call_row() of 16-bit outputs */
};

/* Makes a call; returns a status other than POSENC_OK if the problem is invalid or memory is lacking. Inputs follow
 * from the problem (inputs.c). NULL stands for tensor_allocator_default. */
enum posenc_status call_create(struct call *call, const struct problem *problem,
                               const struct tensor_allocator *memory);
/* Does the same by the functions of an implementation, which must outlive the call; NULL: the library's. */
enum posenc_status call_create_by(const struct implementation *implementation,
                                  struct call *call, const struct problem *problem,
                                  const struct tensor_allocator *memory);
/* Runs the kernel on a backend, or the selected one if that is NULL. */
enum posenc_status call_run(struct call *call, const struct posenc_backend *backend);
/* Restores the inputs of an in-place call; fills outputs with CALL_CANARY. */
void call_reset(struct call *call);
void call_destroy(struct call *call);

/* Makes a call that has the tensors of another one, but another implementation and frequencies of its own. Call
 * call_unshare() before the other call is destroyed. */
enum posenc_status call_share(const struct call *call,
                              const struct implementation *implementation, struct call *copy);
void call_unshare(struct call *copy);

/* Return x (without data if the kernel takes none), the first output, and the positions (NULL if the kernel has
 * none). */
struct posenc_tensor *call_x(struct call *call);
struct posenc_tensor *call_out(struct call *call);
struct posenc_positions *call_positions(struct call *call);

/* Returns row r of output o. f16 and bf16 are widened to f32 anew at each call. */
const float *call_row(const struct call *call, int o, int64_t r);

/* Returns true if the recipe draws an array of positions, [batch, tokens]. */
bool problem_draws_positions(const struct problem *problem);

/* Return the position of token t in batch b, and that on one of problem_axes() axes. */
int64_t problem_position(const struct problem *problem, int64_t b, int64_t t);
int64_t problem_axis_position(const struct problem *problem, int64_t b, int64_t t, int axis);
int problem_axes(const struct problem *problem);
/* Returns the position on an axis as the kernel reads it, with the fraction of a time step. */
double problem_time(const struct problem *problem, int64_t b, int64_t t, int axis);

/* Returns element i of an index to `n` rows or columns. Unlike the index of any builder, it has runs of at most 61
 * elements that rise, fall or stay, and each run starts anywhere. */
int64_t problem_scattered_index(const struct problem *problem, int64_t i, int64_t n);

/* Returns 64 random bits, a function of its arguments (splitmix64). The ONNX recipes have another generator. */
uint64_t rng_u64(uint64_t seed, uint64_t index);

/* Sequence of random numbers. */
struct random_state {
    uint64_t seed, next;
};
uint64_t draw_bits(struct random_state *d);
/* Draws an integer from `least` to `most`, both included. */
int64_t draw_between(struct random_state *d, int64_t least, int64_t most);

/* NaN that call_reset() fills outputs with. No kernel makes it, and each dtype can hold it. */
#define CALL_CANARY 0x7fed0000u

#endif
