/*
 * A problem describes one call of a kernel by numbers alone. A call is a problem with memory.
 * Vectors, model sizes, benchmarks, property tests and the command line all state problems, and
 * call_create() is the only way from a problem to a call. This code depends on the signature of a
 * kernel, never on the kernel.
 */
#ifndef POSENC_PROBLEM_H
#define POSENC_PROBLEM_H

#include "arena.h"
#include "storage.h"

/* ---- Implementations under test ---- */

/* A backend, and the library functions that make and run calls of its kernels. Programs test the
 * library's own functions; faulty kernels replace some of them to test the suites. */
#define IMPLEMENTATION_BUILDERS(ONE)                                                           \
    ONE(freqs_create)                                                                          \
    ONE(freqs_destroy)                                                                         \
    ONE(alibi_slopes)                                                                          \
    ONE(t5_thresholds)                                                                         \
    ONE(padding_positions)                                                                     \
    ONE(swin_index) ONE(beit_index) ONE(shaw_index) ONE(transformer_xl_index) ONE(deberta_index)

struct implementation {
    const struct posenc_backend *backend;

    /* Functions that make frequencies, slopes and index tables; the front-end of each kernel. */
#define FUNCTION(name) __typeof__(posenc_##name) *name;
    IMPLEMENTATION_BUILDERS(FUNCTION)
#define POSENC_KERNEL(name, ...) FUNCTION(name)
#include <posenc_kernels.def>
#undef FUNCTION
};

/* The library's own functions. The first has no backend; the second returns them with one. */
extern const struct implementation implementation_library;
struct implementation implementation_of(const struct posenc_backend *backend);

/* Return the function of a kernel: the front-end, or the backend's. */
void (*implementation_entry(const struct implementation *implementation,
                            enum posenc_kernel kernel))(void);
void (*backend_entry(const struct posenc_backend *backend, enum posenc_kernel kernel))(void);

/* ---- Problems ---- */

/* Index of a signature in posenc_signatures.def, for tables that have an entry for each. */
enum signature_id {
#define POSENC_SIGNATURE(name) SIGNATURE_##name,
#include <posenc_signatures.def>
};
enum signature_id kernel_signature(enum posenc_kernel kernel); /* as kernels.def has it */
const char *kernel_stage(enum posenc_kernel kernel);

/* Names of the members of the library's enums, in their order; NULL at the end. */
extern const char *const profile_names[], *const convention_names[];
extern const char *const layout_names[], *const mrope_layout_names[];
extern const char *const dtype_names[], *const relative_names[];

/* Recipes for inputs; inputs.c defines them. RECIPE_ANY is RECIPE_MIX with random values below 1 in
 * place of cos and sin. RECIPE_EDGES draws cos, sin and slopes of every magnitude. RECIPE_INDEX
 * fills learned tables and terms with the index of each element in row order, modulo 2^24, so that
 * a bias of one head identifies its row of the table. The ONNX recipes are those of the published
 * tests of ONNX RotaryEmbedding-23, for rope alone. */
enum recipe {
    RECIPE_MIX,
    RECIPE_ONNX,                 /* X [batch, heads, tokens, head_dim] */
    RECIPE_ONNX_3D,              /* X [batch, tokens, heads head_dim] */
    RECIPE_ONNX_NO_POSITION_IDS, /* X as in RECIPE_ONNX; a row of cos and sin for each token */
    RECIPE_ANY,
    RECIPE_EDGES,
    RECIPE_INDEX
};

/* Source of the columns of relative_bias and relative_sum: posenc_<name>_index(). */
enum relative { RELATIVE_DEBERTA, RELATIVE_SHAW, RELATIVE_TRANSFORMER_XL };

/* Ways in which two tensors share one block of memory without sharing an element: cos and sin of
 * rope_table, x and out of other kernels. The block has one more dimension, of size 2. WOVEN_ROWS
 * has it before the last dimension, [tokens, 2, half]; WOVEN_ROWS_SWAPPED also stores the first
 * output second. WOVEN_BLOCKS has it before the fastest-varying of the other dimensions, [batch, 2,
 * tokens, half]. WOVEN_TENSORS has it first. */
enum woven { WOVEN_NONE, WOVEN_ROWS, WOVEN_ROWS_SWAPPED, WOVEN_BLOCKS, WOVEN_TENSORS };

/* Memory layout of one tensor of a problem. */
enum { LAYOUTS = 6, MOST_STRIDES = 3 };
struct tensor_layout {
    int64_t pad, offset_bytes; /* added to the problem's pad; replaces its offset unless 0 */
    /* In elements: for each dimension but the last of a tensor; for batch, token and axis of
     * positions. A stride of 0 makes an input repeat the row that was stored last. Without strides,
     * rows are dense as pad and token_major say. */
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

/* Unused members keep the defaults of problem_blank(). */
struct problem {
    enum posenc_kernel kernel;
    enum posenc_dtype dtype;       /* of x and out; of cos and sin if they are outputs */
    enum posenc_dtype table_dtype; /* of the cos and sin that rope reads */
    /* x and terms are rounded to this type first, then to their own, so that an f32 call and a bf16
     * call can have equal inputs. */
    enum posenc_dtype values;

    struct posenc_freqs_spec freqs; /* sinusoidal*, rope_table; freqs.dim is their dim */
    /* longrope without arrays in freqs: factors rise evenly from 1 to these at the last pair. */
    double short_factor_last, long_factor_last;
    /* rope_table with axes: tokens are the pixels of an image of this width, row by row. The last
     * axis counts along a row, the one before it counts rows, any other stays at `first`. 0 means
     * text: all axes have the same position. */
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
    /* window: queries and keys become height * width, plus 1 for the class token of BEiT. */
    int64_t window_height, window_width;
    bool window_class;
    /* distance: columns, from the least distance of the call on; 0: all. window: rows of the table;
     * 0: one for each offset in the window. */
    int64_t distances;
    enum relative relative;     /* Transformer-XL: query_offset is keys - queries */
    bool without_c2p, with_p2c; /* relative */
    /* window, relative: an index by problem_scattered(). alibi: slopes of both signs, and 0. */
    bool scattered;
    bool accumulate; /* learned_grad: add to the contents of out */

    enum posenc_position_kind position_kind;
    int64_t first; /* POSENC_OFFSET, or the first of consecutive positions */
    /* [tokens], or NULL for consecutive ones from `first`. Batch b adds b * batch_shift. */
    const int64_t *positions;
    int64_t batch_shift;
    double time_step; /* POSENC_POSITIONS_F32: token t has (float)(position + t time_step) */

    bool in_place;    /* only if kernel_in_place() */
    enum woven woven; /* only out of place, if kernel_woven_row() is not NULL */
    bool token_major; /* [tokens, batch, ...] in memory */
    int64_t pad;      /* unused elements between rows; canaries in guarded memory */
    /* Offset of every tensor from a 64-byte boundary: a multiple of the smallest element size of
     * the call, rounded down to a multiple of the tensor's own element size. */
    int64_t offset_bytes;
    struct tensor_layout layouts[LAYOUTS]; /* one for each row of the signature */
    uint64_t seed;                         /* of the inputs */
    bool special;       /* inputs include NaN, infinities, zeros of both signs, subnormals */
    enum recipe recipe; /* of the inputs */
    union parameter_value parameters[MOST_OWN_PARAMETERS];
};

/* Return a small valid problem, and a realistic one of about `bytes` bytes (see cases.h). */
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
    bool rotates, second;
    int64_t pair, partner;
};
struct channel_rotation problem_rotation(const struct problem *problem, int64_t channel);

/* Returns true if calls may have several batches. A bias needs an input that differs by batch. */
bool kernel_has_batch(enum posenc_kernel kernel);

/* Returns true if the result, rounded to f32, is added to x * x_scale. */
bool kernel_adds_onto_x(enum posenc_kernel kernel);

/* Returns true if a call adds to the contents of out. */
bool problem_accumulates(const struct problem *problem);

/* Sets the members that follow from others. */
void problem_settle(struct problem *problem);

/* Return sizes that follow from others: queries (and keys) of a window; number of distances. */
int64_t problem_window(const struct problem *problem);
int64_t problem_distances(int64_t queries, int64_t keys);

/* Returns the bytes that a perfect kernel moves. Inputs are read once and outputs written once.
 * Tables of cos and sin of rotations count nothing, as they stay in cache. */
size_t problem_bytes(const struct problem *problem);

/* Returns the bytes of memory behind problem_bytes(): data rewritten in place counts once. */
size_t problem_working_set(const struct problem *problem);

/* Returns the bytes of all tensors, whether used or not. */
size_t problem_memory(const struct problem *problem);

/* Allocator of a call's tensors. `role` is 'i' for an input, which kernels must not write, 'o' for
 * an output, 'b' for both in one. The default returns memory on 64-byte boundaries. */
struct memory {
    void *(*get)(void *user, size_t bytes, int64_t offset_bytes, char role);
    /* Reserves address space for a tensor that is mostly gaps. use() enables each part before it is
     * written, and returns false on failure. If reserve is NULL, get() serves such tensors too. */
    void *(*reserve)(void *user, size_t bytes, int64_t offset_bytes, char role);
    bool (*use)(void *user, void *part, size_t bytes);
    /* Runs after inputs are filled, for example to make them read-only; may be NULL. */
    void (*seal)(void *user);
    void (*free)(void *user, void *data);
    void *user;
};
extern const struct memory memory_plain;

/* An output of a call. Rows are visited in the order batch, tokens, heads (or heads, queries). */
struct output {
    const char *name; /* "out", "cos", "sin" */
    struct posenc_tensor tensor;
    int64_t rows, width;
};

union arguments {
#define POSENC_SIGNATURE(name) struct posenc_##name##_args name;
#include <posenc_signatures.def>
};

struct call {
    struct problem problem;
    const struct implementation *implementation; /* whose functions make and run the call */
    struct posenc_freqs *freqs;                  /* or NULL */
    union arguments args;
    struct posenc_error error; /* reason of the last failure to make or run the call */
    int n_outputs;
    struct output outputs[2];
    /* Dense f32 copies of the inputs in row order, rounded to the types of the call's tensors; NULL
     * for absent inputs. Of a large table only the rows at the call's positions are filled, the
     * others are 0 (call_tensors.c). */
    const float *x;
    /* learned, T5, window: [rows, dim or heads]. distance: [heads, columns]. learned_grad that
     * accumulates: the contents of out before the call. */
    const float *table;
    const float *c2p, *p2c; /* [batch heads queries, columns], [batch heads keys, columns] */
    const float *cos, *sin; /* [rows, rotary_dim / 2] */
    const float *slopes;    /* [heads], or [batch, heads] with slopes_by_batch */
    int64_t columns;        /* relative, relative_sum, distance */
    struct memory memory;
    int n_owned;
    void *owned[LAYOUTS]; /* by `memory` */
    struct arena kept;    /* everything else */
    float *wide[2];       /* [rows, width], for call_row() of 16-bit outputs */
};

/* Makes a call; returns the library's status if it rejects a parameter such as dim or theta. Inputs
 * are a function of seed and index. Before rounding they are normal numbers and never 0, unless
 * `special`. cos and sin that rope reads are correctly rounded for base 10000 at rows 0 to 4095,
 * and repeat after that. The ONNX recipes draw all of these instead. */
enum posenc_status call_create(struct call *call, const struct problem *problem,
                               const struct memory *memory);
/* Does the same by an implementation's functions, which must outlive the call; NULL: the
 * library's. */
enum posenc_status call_create_by(const struct implementation *implementation,
                                  struct call *call, const struct problem *problem,
                                  const struct memory *memory);
enum posenc_status call_run(struct call *call, const struct posenc_backend *backend);
/* Restores the inputs of an in-place call; fills outputs with CALL_CANARY. */
void call_reset(struct call *call);
void call_destroy(struct call *call);

/* Makes a call on the tensors of another one, by another implementation's functions and with
 * frequencies of its own. Unshare it before the other call is destroyed. */
enum posenc_status call_share(const struct call *call,
                              const struct implementation *implementation, struct call *copy);
void call_unshare(struct call *copy);

/* Return x (without data if the kernel takes none), the first output, and the positions (NULL if
 * the kernel has none). */
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
/* Returns the same position as the kernel reads it, with the fraction of a time step. */
double problem_time(const struct problem *problem, int64_t b, int64_t t, int axis);

/* Returns element i of an index to `n` rows or columns that no builder makes: runs of at most 61
 * elements that rise, fall or stay, each of which starts anywhere. */
int64_t problem_scattered(const struct problem *problem, int64_t i, int64_t n);

/* Mixes its arguments into 64 bits (splitmix64). Only the ONNX recipes use another generator. */
uint64_t mix64(uint64_t seed, uint64_t index);

/* NaN that call_reset() fills outputs with. No kernel makes it, and each dtype can hold it. */
#define CALL_CANARY 0x7fed0000u

#endif
