/*
 * Signatures: data about each kind of call for conformance and bench. A signature lists the tensors
 * of its calls: their dimensions, their place in the arguments and the source of their values. It
 * also lists the arguments that follow from the problem and the dimensions along which a call may
 * be cut. Everything that is done to all tensors of a call is a loop over its rows.
 *
 * Each signature has its own file, conformance/signatures/<name>.c, with the expected outputs.
 * test_signatures.c reports what a signature lacks.
 */
#ifndef POSENC_SIGNATURE_H
#define POSENC_SIGNATURE_H

#include "fields.h"
#include "problem.h"
#include "storage.h"

/* ---- Dimensions ---- */

/* Things that a dimension counts. DIM_DISTANCE is for an index by query - key. */
enum dim {
    DIM_NONE,
    DIM_BATCH,
    DIM_TOKEN,
    DIM_HEAD,
    DIM_QUERY,
    DIM_KEY,
    DIM_CHANNEL,
    DIM_PAIR,
    DIM_ROW,
    DIM_COLUMN,
    DIM_DISTANCE
};

/* Returns the size of a dimension in a problem. */
int64_t problem_extent(const struct problem *problem, enum dim dim);

/* ---- Inputs ---- */

/* Sources of inputs: x; tables that are always f32, and initial values of learned_grad; terms of
 * relative_bias; cos and sin of rope. */
enum stream_id { STREAM_X, STREAM_TABLE, STREAM_C2P, STREAM_P2C, STREAM_COS, STREAM_SIN };

/* Fills n inputs of a stream from index `first` on: whole rows of cos and sin, and all elements of
 * the ONNX recipes. Returns false if out of memory. */
bool fill_inputs(float *to, int64_t first, int64_t n, const struct problem *problem,
                 enum stream_id stream);

/* Returns a value of the recipe "edges": of any magnitude that the type has below `most`, a power
 * of two, and with `above` also from 1 to 2. */
float input_edge(uint64_t z, enum posenc_dtype type, float most, bool above);

/* Returns a position, if problem_draws_positions(). */
int64_t problem_drawn_position(const struct problem *problem, int64_t b, int64_t t);

/* ---- Tensors ---- */

/* Types of an argument: a posenc_tensor, posenc_positions, or a pointer to f32 or int32. */
enum form { FORM_TENSOR, FORM_POSITIONS, FORM_FLOATS, FORM_INTEGERS };
enum role { ROLE_INPUT, ROLE_X, ROLE_OUTPUT };
/* Element types: that of x and out, that of cos and sin as inputs, or always f32. */
enum type { TYPE_CALL, TYPE_TABLE, TYPE_F32 };

enum { MOST_DIMS = 4, MOST_TENSORS = LAYOUTS, MOST_PARAMETERS = 6, MOST_CUTS = 4 };

struct tensor_row {
    const char *name; /* in the notation and in messages */
    size_t offset;    /* in the arguments */
    enum form form;
    enum role role;
    enum type type;
    enum dim dims[MOST_DIMS]; /* DIM_NONE after the last */
    /* Returns true if a problem has the tensor. NULL: always, or for x if its kernel takes x. */
    bool (*present)(const struct problem *problem);
    bool one_for_all; /* may lack its first dimension, and then one row serves all */
    /* Pointers only: elements, if not the product of the dimensions; true if batches share them;
     * the stride argument that is then 0. */
    int64_t (*size)(const struct problem *problem);
    bool (*shared)(const struct problem *problem);
    size_t stride_batch;
    /* Inputs: a stream of the recipe, or a function that fills n dense f32 (or integer) elements;
     * the member of struct call that keeps the dense copy. */
    enum stream_id stream;
    bool (*fill)(struct call *call, void *to, int64_t n);
    size_t pristine; /* in struct call */
    /* Elements that a perfect kernel moves, if not all; true if they stay in L1. */
    int64_t (*moved)(const struct problem *problem);
    bool cached;
};

/* An argument that is copied from the problem, possibly narrowed to f32. One with a name belongs to
 * this signature alone; the notation, printing and exports find it by this row. */
struct parameter {
    size_t from, to, from_size, to_size;
    enum field_kind kind; /* of the argument */
    const char *name;
    const char *const *names;  /* of an enum, NULL at the end */
    double value, least, most; /* default; accepted range unless equal */
};

/* Returns a named parameter as a field of problems. */
struct field parameter_field(const struct parameter *own);

/* ---- Signatures ---- */

/* Work that every kernel of a signature does beside moving its tensors. bench times a loop that
 * does only this work, to find what bounds the kernel (bench/limits.c). */
enum work_kind {
    WORK_UNSAID,
    WORK_NONE,
    WORK_ANGLES,   /* computes cosines and sines */
    WORK_ROTATION, /* rotates pairs of channels by given ones */
    WORK_NORM,     /* the same, after normalising each head */
    WORK_SLOPE,    /* multiplies distances */
    WORK_LINE,     /* copies a row, shifted */
    WORK_RUNS,     /* the same, after a run of one value */
    WORK_FETCH,    /* reads by an unpredictable index */
    WORK_TERMS,    /* reads terms by columns */
    WORK_SUMS      /* adds in a given order */
};

struct signature {
    const char *name;
    void (*blank)(void *arguments); /* posenc_..._args_init(), of `size` bytes */
    size_t size;
    struct tensor_row tensors[MOST_TENSORS]; /* in the order of creation; x after out */
    struct parameter parameters[MOST_PARAMETERS];
    size_t freqs;    /* the argument for frequencies; 0: none */
    size_t computed; /* a 64-bit argument that `finish` sets; 0: none */

    /* Members of struct problem that count channels, and channels that form pairs; 0: none. */
    size_t channels, rotary;
    /* Rotations: the error limit of a channel in ulp of its larger product, with or without a fused
     * product; true if unrotated channels are copies of x; true if a channel depends on its whole
     * head. */
    double (*error_limit)(const struct problem *problem, bool fused);
    bool copies, gathers;
    int64_t (*rows)(const struct problem *problem); /* NULL: problem->rows */
    int64_t (*columns)(const struct problem *problem);

    /* Dimensions along which a call may be cut, from the last of `out` to the first. Threads share
     * shares[0], or shares[1] if that is too short for all. */
    enum dim cuts[MOST_CUTS];
    enum dim shares[2];

    /* Names of the fields of its problems (fields.h), without those that all problems have. */
    const char *fields;

    /* Further work of a call, and its number of elements if not all outputs. */
    enum work_kind work;
    int64_t (*worked)(const struct call *call);

    /* Optional functions: set members of the problem that follow from others; reject a problem
     * early; set arguments that are neither tensors nor members of the problem. */
    void (*settle)(struct problem *problem);
    bool (*check)(struct call *call);
    void (*finish)(struct call *call);
};

#define POSENC_SIGNATURE(name) extern const struct signature signature_##name;
#include <posenc_signatures.def>

const struct signature *signature_of(enum posenc_kernel kernel);

/* Sets the signature's own parameters to their defaults. */
void signature_own_defaults(const struct signature *signature, struct problem *problem);

/* Returns the offset of the argument that is a copy of this member of the problem; 0: none. */
size_t signature_argument(const struct signature *signature, size_t member);

/* Fields that several signatures have. */
#define FIELDS_TOKENS "tokens position_kind position_offset positions batch_shift token_major "
#define FIELDS_FREQS                                                                           \
    FIELDS_TOKENS "profile freq_convention scaling rope_theta factor "                         \
                  "original_max_position_embeddings low_freq_factor high_freq_factor "         \
                  "beta_fast beta_slow truncate attention_factor mscale mscale_all_dim "       \
                  "max_position_embeddings seq_len partial_rotary_factor short_factor "        \
                  "long_factor short_factor_last long_factor_last inv_freq mrope_section "     \
                  "mrope_layout mrope_grid time_step "
#define FIELDS_SCORES "values_dtype heads queries keys query_offset "

/* ---- Rows ---- */

/* for (EACH_TENSOR(row, signature)) visits all rows, present or not. */
#define EACH_TENSOR(row, signature)                                                            \
    const struct tensor_row *row = (signature)->tensors;                                       \
    row < (signature)->tensors + MOST_TENSORS && row->name;                                    \
    row++

#define EACH_PARAMETER(at, signature)                                                          \
    const struct parameter *at = (signature)->parameters;                                      \
    at < (signature)->parameters + MOST_PARAMETERS && at->to;                                  \
    at++

/* Returns the row of output o. */
const struct tensor_row *signature_output(const struct signature *signature, int o);
/* Returns the tensor that may be woven into the first output, as it has the same dimensions and
 * type: x or another output. NULL: none. */
const struct tensor_row *kernel_woven_row(enum posenc_kernel kernel);
/* Returns true if a tensor has the first output's memory and layout, as x in place or woven into
 * it. */
bool tensor_shares_output(const struct problem *problem, const struct tensor_row *row);
const struct tensor_layout *tensor_layout(const struct problem *problem,
                                          const struct tensor_row *row);
bool tensor_present(const struct problem *problem, const struct tensor_row *row);
enum posenc_dtype tensor_dtype(const struct problem *problem, const struct tensor_row *row);
/* Returns true if no tensor of the call has a 16-bit type. */
bool problem_is_f32(const struct problem *problem);
int tensor_dims(const struct tensor_row *row);
/* Returns the product of all dimensions, or row->size(). */
int64_t tensor_elements(const struct problem *problem, const struct tensor_row *row);

/* Returns the elements that a perfect kernel moves. */
int64_t tensor_moved(const struct problem *problem, const struct tensor_row *row);

/* Return the argument of a row (tensor, positions or pointer) and its first element, or NULL. The
 * first two are for arguments, the others for a call. */
void *row_argument(union arguments *args, const struct tensor_row *row);
const void *row_data(const union arguments *args, const struct tensor_row *row);
void *call_argument(struct call *call, const struct tensor_row *row);
const void *call_data(const struct call *call, const struct tensor_row *row);
/* Returns the index of a dimension in the call's tensor; -1 if the tensor lacks it. */
int call_dim(const struct call *call, const struct tensor_row *row, enum dim dim);

/* ---- Macros for signatures ---- */

#define ARGUMENT(signature, member)    offsetof(struct posenc_##signature##_args, member)
#define MEMBER(member)                 offsetof(struct problem, member)
#define PRISTINE(member)               offsetof(struct call, member)
#define ARGUMENT_OF(signature, member) ((struct posenc_##signature##_args *)0)->member
#define KIND_OF(argument)                                                                      \
    _Generic((argument), double                                                                \
             : FIELD_F64, float                                                                \
             : FIELD_F32, int64_t                                                              \
             : FIELD_I64, bool                                                                 \
             : FIELD_BOOL, default                                                             \
             : FIELD_ENUM)
#define TAKEN_BY(signature, member)                                                            \
    .to = ARGUMENT(signature, member), .to_size = sizeof ARGUMENT_OF(signature, member),       \
    .kind = KIND_OF(ARGUMENT_OF(signature, member))
/* Declares an argument that is a copy of the problem's member of the same name. */
#define PARAMETER(signature, member)                                                           \
    {                                                                                          \
        TAKEN_BY(signature, member), .from = MEMBER(member),                                   \
                                     .from_size = sizeof((struct problem *)0)->member          \
    }
/* Declares parameter `place` of the problem, followed by default and accepted range. */
#define OWN_PARAMETER(signature, place, member, ...)                                           \
    {                                                                                          \
        TAKEN_BY(signature, member), .from = MEMBER(parameters[place]),                        \
                                     .from_size = sizeof ARGUMENT_OF(signature, member),       \
                                     .name = #member, __VA_ARGS__                              \
    }
/* Initialises name, blank and size of a signature. */
#define BLANK(signature)                                                                       \
    .name = #signature, .blank = blank_##signature,                                            \
    .size = sizeof(struct posenc_##signature##_args)
#define POSENC_SIGNATURE(name)                                                                 \
    static inline void blank_##name(void *to)                                                  \
    {                                                                                          \
        *(struct posenc_##name##_args *)to = posenc_##name##_args_init();                      \
    }
#include <posenc_signatures.def>
/* Initialise a row of `tensors` from the argument of that name, the last ones as usual. */
#define TENSOR(signature, member)   .name = #member, .offset = ARGUMENT(signature, member)
#define INTEGERS(signature, member) TENSOR(signature, member), .form = FORM_INTEGERS
#define X(signature)                                                                           \
    TENSOR(signature, x), .role = ROLE_X, .stream = STREAM_X, .pristine = PRISTINE(x)
#define OUT(signature, member) TENSOR(signature, member), .role = ROLE_OUTPUT
#define POSITIONS(signature)                                                                   \
    {                                                                                          \
        TENSOR(signature, positions), .form = FORM_POSITIONS,                                  \
                                      .dims = { DIM_BATCH, DIM_TOKEN }, .cached = true         \
    }
#define TABLE(signature, member)                                                               \
    TENSOR(signature, member), .type = TYPE_F32, .stream = STREAM_TABLE,                       \
                               .pristine = PRISTINE(table)

/* ---- Making a call ---- */

/* call.c, call_tensors.c and signatures make a call of these parts; call_destroy() frees them. The
 * first part that cannot be made leaves its reason in call->error. */

/* Return true on success; otherwise set call->error. The first fails unless `status` is POSENC_OK,
 * and omits the accepted range if it includes `value`. The second fails unless it does. */
bool call_check(struct call *call, enum posenc_status status, const char *what, int64_t value,
                int64_t least, int64_t most);
bool call_within(struct call *call, enum posenc_status otherwise, const char *what,
                 int64_t value, int64_t least, int64_t most);

/* Allocates n zeroed elements that live as long as the call; NULL if out of memory. */
void *call_keep(struct call *call, int64_t n, size_t item);

/* Copies dense f32 rows into a tensor, rounded to its type. */
void tensor_scatter(const struct posenc_tensor *tensor, const float *dense);

/* Allocates and fills the argument of a row. */
bool make_tensor(struct call *call, const struct tensor_row *row);

/* Makes call->freqs and its argument. */
bool make_freqs(struct call *call, const struct signature *s);

/* Makes all arguments. Frequencies may be shared with other calls; destroy_freqs() keeps those. */
bool make_arguments(struct call *call);
void destroy_freqs(struct call *call);

/* ---- Parts of a call ---- */

/* Returns the part [from, from + count) of a call along one of its signature's cuts. It uses the
 * memory of the whole, which must outlive it. */
struct call call_cut(const struct call *whole, enum dim dim, int64_t from, int64_t count);

/* Return the size of a dimension of the first output (1 if absent), and its index from the last
 * dimension (-1 if absent). */
int64_t call_extent(const struct call *call, enum dim dim);
int call_from_last(const struct call *call, enum dim dim);

#endif
