/*
 * Signatures: descriptions of each kind of call, as data. A signature lists the tensors of its calls: their
 * dimensions, their place in the arguments (struct posenc_<name>_args) and the source of their values. It also lists
 * the other arguments, and the dimensions along which a call may be cut. Code for all tensors of a call is a loop
 * over this list.
 *
 * conformance/signatures has the signatures with their expected outputs; signature_learned (tables.c) is a short
 * example. test_signatures.c reports members that a signature lacks.
 */
#ifndef POSENC_SIGNATURE_H
#define POSENC_SIGNATURE_H

#include "fields.h"
#include "problem.h"
#include "storage.h"

/* ---- Dimensions ---- */

/* Things that a dimension counts. DIM_DISTANCE counts the differences query - key. */
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

/* Streams of input values, each of which is independent of the others: x; tables that are always f32, and initial
 * values of learned_grad; terms of relative_bias; cos and sin of rope. */
enum stream_id { STREAM_X, STREAM_TABLE, STREAM_C2P, STREAM_P2C, STREAM_COS, STREAM_SIN };

/* Fills n inputs of a stream from index `first` on; returns false if out of memory. For cos and sin, n and
 * `first` must be whole rows; for the ONNX recipes, all elements. */
bool inputs_fill(float *to, int64_t first, int64_t n, const struct problem *problem,
                 enum stream_id stream);

/* Returns a value of the recipe "edges" for 64 random bits z. Its magnitude may be any that the type has below `most`,
 * a power of two; with `above`, also one from 1 to 2. */
float inputs_draw_edge(uint64_t z, enum posenc_dtype type, float most, bool above);

/* Returns the position of token t in batch b, if problem_draws_positions(). */
int64_t problem_draw_position(const struct problem *problem, int64_t b, int64_t t);

/* ---- Tensors ---- */

/* Type of the argument for a tensor: posenc_tensor, posenc_positions, or a pointer to f32 or int32. */
enum argument_form { FORM_TENSOR, FORM_POSITIONS, FORM_FLOATS, FORM_INTEGERS };
enum tensor_role { ROLE_INPUT, ROLE_X, ROLE_OUTPUT };
/* Element types: that of x and out, that of cos and sin as inputs, or always f32. */
enum tensor_type { TYPE_CALL, TYPE_TABLE, TYPE_F32 };

enum { MOST_DIMS = 4, MOST_TENSORS = LAYOUTS, MOST_PARAMETERS = 6, MOST_CUTS = 4 };

/* Description of a tensor that a signature's calls have. */
struct tensor_spec {
    const char *name; /* in the notation and in messages */
    size_t offset;    /* in the arguments */
    enum argument_form form;
    enum tensor_role role;
    enum tensor_type type;
    enum dim dims[MOST_DIMS]; /* DIM_NONE after the last */
    /* Returns true if a problem has the tensor. NULL: always, or for x if its kernel takes x. */
    bool (*present)(const struct problem *problem);
    bool is_broadcastable; /* the first dimension may be absent or have stride 0 */
    /* Pointers only: returns the number of elements. NULL: the product of the dimensions. */
    int64_t (*size)(const struct problem *problem);
    /* Pointers only: returns true if all batches share one row, with a stride_batch of 0. */
    bool (*shared)(const struct problem *problem);
    size_t stride_batch; /* offset of that argument; 0: none */
    /* Inputs: fills n dense elements, f32 or int32. NULL: they have the values of `stream`. */
    bool (*fill)(struct call *call, void *to, int64_t n);
    enum stream_id stream;
    size_t dense_copy; /* offset of the pointer in struct call to a dense copy; 0: none */
    /* Returns the elements that a perfect kernel moves. NULL: all. */
    int64_t (*moved)(const struct problem *problem);
    bool cached; /* small enough to stay in L1, so that no bytes are counted */
};

/* An argument that is copied from a member of the problem, possibly narrowed from f64 to f32. With a name, it is a
 * parameter that this signature alone has, and a field of its problems. */
struct parameter {
    size_t from, to;                 /* offsets in struct problem and in the arguments */
    enum field_kind from_kind, kind; /* of that member, and of the argument */
    const char *name;
    const char *const *names;  /* of an enum, NULL at the end */
    double value, least, most; /* default; accepted range, or any value if least = most */
};

/* Returns a named parameter as a field of problems. */
struct field parameter_field(const struct parameter *own);
/* Copy a parameter from a problem to the arguments of a call, and back. */
void parameter_store(const struct parameter *p, const struct problem *problem, void *args);
void parameter_load(const struct parameter *p, const void *args, struct problem *problem);

/* ---- Signatures ---- */

/* Work that every kernel of a signature does beside moving its tensors. bench times a loop that does only this work,
 * as a lower bound (bench/limits.c). */
enum work_kind {
    WORK_UNSET,
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

/* Description of a kind of call. */
struct signature {
    const char *name;
    void (*blank)(void *arguments); /* posenc_..._args_init(), of `size` bytes */
    size_t size;
    struct tensor_spec tensors[MOST_TENSORS]; /* in the order of creation; x after out */
    struct parameter parameters[MOST_PARAMETERS];
    size_t freqs;    /* offset of the argument for frequencies; 0: none */
    size_t computed; /* offset of a 64-bit argument that finish() sets; 0: none */

    /* Offsets in struct problem of the numbers of channels, and of channels in pairs; 0: none. */
    size_t channels, rotary;
    /* Rotations: returns the error limit of a channel in ulp of its larger product. `fused` says that one product is
     * not rounded. */
    double (*error_limit)(const struct problem *problem, bool fused);
    /* Returns the limit in ulp of the oracle's magnitudes for a program, which may round each operation, in any order.
     * NULL or 0: the correctly rounded result. */
    double (*rounded_limit)(const struct problem *problem);
    /* Returns true if f32 arithmetic of a program may overflow in output row r of finite inputs, beside the magnitudes.
     * NULL: never. */
    bool (*overflows)(const struct call *call, int64_t r);
    bool copies;    /* unrotated channels are copies of x */
    bool uses_head; /* a channel depends on all channels of its head */
    /* Return sizes of DIM_ROW (NULL: problem->rows) and DIM_COLUMN. */
    int64_t (*rows)(const struct problem *problem);
    int64_t (*columns)(const struct problem *problem);

    /* Dimensions along which a call may be cut, from the last of `out` to the first. */
    enum dim cuts[MOST_CUTS];
    /* Dimensions along which threads divide a call: the first, or the second if that is too short. */
    enum dim shares[2];

    /* Names of the fields of its problems (fields.h), without those that all problems have. */
    const char *fields;

    enum work_kind work;
    /* Returns the elements on which that work is done. NULL: all outputs. */
    int64_t (*count_work)(const struct call *call);

    /* Sets members of the problem that follow from others; may be NULL, like the next two. */
    void (*derive)(struct problem *problem);
    /* Rejects a problem before anything is allocated: sets call->error and returns false. */
    bool (*check)(struct call *call);
    /* Sets arguments that are neither tensors nor members of the problem. */
    void (*finish)(struct call *call);
};

#define POSENC_SIGNATURE(name) extern const struct signature signature_##name;
#include <posenc_signatures.def>

const struct signature *signature_of(enum posenc_kernel kernel);

/* Returns the offset of the argument that is a copy of the problem's member at offset `member`; 0: none. */
size_t signature_argument(const struct signature *signature, size_t member);

/* Fields that several signatures have. */
#define FIELDS_TOKENS "tokens position_kind position_offset positions batch_shift token_major "
#define FIELDS_FREQS                                                                           \
    FIELDS_TOKENS "numerics freq_spacing scaling rope_theta factor "                           \
                  "original_max_position_embeddings low_freq_factor high_freq_factor "         \
                  "beta_fast beta_slow truncate attention_factor mscale mscale_all_dim "       \
                  "max_position_embeddings seq_len partial_rotary_factor short_factor "        \
                  "long_factor short_factor_last long_factor_last inv_freq mrope_section "     \
                  "mrope_layout mrope_grid time_step "
#define FIELDS_SCORES "values_dtype heads queries keys query_offset "

/* ---- Tensors and parameters of a signature ---- */

/* for (EACH_TENSOR(spec, signature)) visits all tensors of a signature, present in a call or not. */
#define EACH_TENSOR(spec, signature)                                                           \
    const struct tensor_spec *spec = (signature)->tensors;                                     \
    spec < (signature)->tensors + MOST_TENSORS && spec->name;                                  \
    spec++

#define EACH_PARAMETER(at, signature)                                                          \
    const struct parameter *at = (signature)->parameters;                                      \
    at < (signature)->parameters + MOST_PARAMETERS && at->to;                                  \
    at++

/* Returns the tensor of output o. */
const struct tensor_spec *signature_output(const struct signature *signature, int o);
/* Returns the tensor that may be woven into the first output (enum woven), as it has the same dimensions and type: x
 * or another output. NULL: none. */
const struct tensor_spec *kernel_woven_row(enum posenc_kernel kernel);
/* Returns true if a tensor has the first output's memory and layout, as x in place or woven into it. */
bool tensor_shares_output(const struct problem *problem, const struct tensor_spec *spec);
const struct tensor_layout *tensor_layout(const struct problem *problem,
                                          const struct tensor_spec *spec);
bool tensor_present(const struct problem *problem, const struct tensor_spec *spec);
enum posenc_dtype tensor_dtype(const struct problem *problem, const struct tensor_spec *spec);
/* Returns true if no tensor of the call has a 16-bit type. */
bool problem_is_f32(const struct problem *problem);
int tensor_dims(const struct tensor_spec *spec);
/* Returns the product of all dimensions, or spec->size(). */
int64_t tensor_elements(const struct problem *problem, const struct tensor_spec *spec);
/* Returns the elements that a perfect kernel moves. */
int64_t tensor_moved(const struct problem *problem, const struct tensor_spec *spec);

/* Return the argument of a tensor (an argument_form) and its first element, or NULL. The first two take arguments,
 * the others a call. */
void *arguments_get(union arguments *args, const struct tensor_spec *spec);
const void *arguments_data(const union arguments *args, const struct tensor_spec *spec);
void *call_argument(struct call *call, const struct tensor_spec *spec);
const void *call_data(const struct call *call, const struct tensor_spec *spec);
/* Returns the index of a dimension in the call's tensor; -1 if the tensor lacks it. */
int call_dim(const struct call *call, const struct tensor_spec *spec, enum dim dim);

/* ---- Macros for signatures ---- */

#define ARGUMENT(signature, member)    offsetof(struct posenc_##signature##_args, member)
#define MEMBER(member)                 offsetof(struct problem, member)
#define DENSE_COPY(member)             offsetof(struct call, member)
#define ARGUMENT_OF(signature, member) ((struct posenc_##signature##_args *)0)->member
#define KIND_OF(argument)                                                                      \
    _Generic((argument), double                                                                \
             : FIELD_F64, float                                                                \
             : FIELD_F32, int64_t                                                              \
             : FIELD_I64, bool                                                                 \
             : FIELD_BOOL, default                                                             \
             : FIELD_ENUM)
#define PARAMETER_TO(signature, member)                                                        \
    .to = ARGUMENT(signature, member), .kind = KIND_OF(ARGUMENT_OF(signature, member))
/* Initialises an argument that is a copy of the problem's member of the same name. */
#define PARAMETER(signature, member)                                                           \
    {                                                                                          \
        PARAMETER_TO(signature, member), .from = MEMBER(member),                               \
                                         .from_kind = KIND_OF(((struct problem *)0)->member)   \
    }
/* Initialises a member of a struct among the arguments in the same way. */
#define PARAMETER_IN(signature, inside, member)                                                \
    {                                                                                          \
        PARAMETER_TO(signature, inside.member),                                                \
            .from = MEMBER(member), .from_kind = KIND_OF(((struct problem *)0)->member)        \
    }
/* Initialises an argument of this signature alone, which is problem.parameters[place]. Default and accepted range
 * follow. */
#define OWN_PARAMETER(signature, place, member, ...)                                           \
    {                                                                                          \
        PARAMETER_TO(signature, member), .from = MEMBER(parameters[place]),                    \
                                         .from_kind = KIND_OF(ARGUMENT_OF(signature, member)), \
                                         .name = #member, __VA_ARGS__                          \
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
/* Initialise an element of `tensors` from the argument of that name. */
#define TENSOR(signature, member)   .name = #member, .offset = ARGUMENT(signature, member)
#define INTEGERS(signature, member) TENSOR(signature, member), .form = FORM_INTEGERS
#define X(signature)                                                                           \
    TENSOR(signature, x), .role = ROLE_X, .stream = STREAM_X, .dense_copy = DENSE_COPY(x)
#define OUT(signature, member) TENSOR(signature, member), .role = ROLE_OUTPUT
#define POSITIONS(signature)                                                                   \
    {                                                                                          \
        TENSOR(signature, positions), .form = FORM_POSITIONS,                                  \
                                      .dims = { DIM_BATCH, DIM_TOKEN }, .cached = true         \
    }
#define TABLE(signature, member)                                                               \
    TENSOR(signature, member), .type = TYPE_F32, .stream = STREAM_TABLE,                       \
                               .dense_copy = DENSE_COPY(table)

/* ---- Making a call: call.c, call_tensors.c and signatures ---- */

/* Functions that return bool set call->error if they return false. call_destroy() frees all memory. */

/* Returns false. The error names `what` and its value, and has an empty range (1 to 0): there is no accepted range. */
bool call_reject(struct call *call, enum posenc_status status, const char *what, int64_t value);
/* Returns true if `status` is POSENC_OK. Otherwise rejects the call, with the accepted range unless the value is within
 * it. */
bool call_check(struct call *call, enum posenc_status status, const char *what, int64_t value,
                int64_t least, int64_t most);
/* Returns true if a value is in the accepted range; `otherwise` is the status if not. */
bool call_check_range(struct call *call, enum posenc_status otherwise, const char *what,
                      int64_t value, int64_t least, int64_t most);

/* Allocates n zeroed elements that live as long as the call; NULL if out of memory. */
void *call_allocate(struct call *call, int64_t n, size_t item);

/* Copies dense f32 rows into a tensor, rounded to its type. */
void tensor_scatter(const struct posenc_tensor *tensor, const float *dense);

/* Allocates and fills a tensor, and sets its argument. */
bool call_make_tensor(struct call *call, const struct tensor_spec *spec);

/* ---- Parts of a call ---- */

/* Returns the part [from, from + count) of a call along one of its signature's cuts. It uses the memory of the whole,
 * which must outlive it. */
struct call call_cut(const struct call *whole, enum dim dim, int64_t from, int64_t count);

/* Return the size of a dimension of the first output (1 if absent), and its index from the last dimension (-1 if
 * absent). */
int64_t call_extent(const struct call *call, enum dim dim);
int call_dim_from_last(const struct call *call, enum dim dim);

#endif
