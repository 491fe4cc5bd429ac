/*
 * Signatures: what conformance and bench know of each kind of call, as data.  A signature says
 * which tensors its calls have, what their dimensions count, where they stand in the arguments
 * and what fills them; which other arguments follow from the problem; along which dimensions a
 * call may be cut.  Whatever is done to all tensors of a call (making, guarding, poisoning,
 * cutting, counting their bytes) is a loop over its rows.
 *
 * Each stands in a file of its own, conformance/signatures/<name>.c, with what its outputs
 * should be; test_signatures.c finds what one has forgotten.
 */
#ifndef POSENC_SIGNATURE_H
#define POSENC_SIGNATURE_H

#include "fields.h"
#include "problem.h"
#include "storage.h"

/* ---- Dimensions ---- */

/* What a dimension counts.  DIM_DISTANCE is that of an index by query - key. */
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

/* How many there are in a problem. */
int64_t problem_extent(const struct problem *problem, enum dim dim);

/* ---- Inputs ---- */

/* Activations; tables that are f32 whatever the storage, and what learned_grad adds onto; terms
 * of relative_bias; cos and sin of a problem that turns. */
enum stream_id { STREAM_X, STREAM_TABLE, STREAM_C2P, STREAM_P2C, STREAM_COS, STREAM_SIN };

/* n inputs of a stream, in the order of their index, from one on: of cos and sin whole rows, of
 * what is drawn by the recipes of ONNX all.  False when memory runs out. */
bool fill_inputs(float *to, int64_t first, int64_t n, const struct problem *problem,
                 enum stream_id stream);

/* Of the recipe "edges": a value from a draw, of any magnitude that a type has below `most`, a power
 * of two; also some from 1 to 2 where these are wanted. */
float input_edge(uint64_t z, enum posenc_dtype type, float most, bool above);

/* Where problem_draws_positions(). */
int64_t drawn_position(const struct problem *problem, int64_t b, int64_t t);

/* ---- Tensors ---- */

/* A struct posenc_tensor, a struct posenc_positions, or a pointer to f32 or int32. */
enum form { FORM_TENSOR, FORM_POSITIONS, FORM_FLOATS, FORM_INTEGERS };
enum role { ROLE_INPUT, ROLE_X, ROLE_OUTPUT };
/* As the problem has it for x and out, for cos and sin that are inputs, or f32 always. */
enum type { TYPE_CALL, TYPE_TABLE, TYPE_F32 };

enum { MOST_DIMS = 4, MOST_TENSORS = LAYOUTS, MOST_PARAMETERS = 6, MOST_CUTS = 4 };

struct tensor_row {
    const char *name; /* as the notation and every message call it */
    size_t offset;    /* in the arguments */
    enum form form;
    enum role role;
    enum type type;
    enum dim dims[MOST_DIMS]; /* DIM_NONE after the last */
    /* Whether a problem has it; NULL: it always does, or where its kernel takes x. */
    bool (*present)(const struct problem *problem);
    bool one_for_all; /* may lack its first dimension: a row that repeats */
    /* Pointers: elements, where they are not the product of the dimensions; whether batches
     * share them, and the argument that is then 0. */
    int64_t (*size)(const struct problem *problem);
    bool (*shared)(const struct problem *problem);
    size_t stride_batch;
    /* Inputs: a stream of the recipe, or what fills n elements of it (dense, f32 but for
     * integers); where the call keeps the dense copy. */
    enum stream_id stream;
    bool (*fill)(struct call *call, void *to, int64_t n);
    size_t pristine; /* in struct call */
    /* Elements that a perfect kernel moves, where these are not all; whether they stay in the
     * nearest cache. */
    int64_t (*moved)(const struct problem *problem);
    bool cached;
};

/* An argument that is a member of the problem, perhaps as f32: one that several signatures have,
 * or with a name one of the signature's own, which the notation and whatever prints, exports or
 * sweeps problems then know by its row. */
struct parameter {
    size_t from, to, from_size, to_size;
    enum field_kind kind; /* of the argument */
    const char *name;
    const char *const *names; /* of an enum, NULL at the end */
    double value, least,
        most; /* where nothing says otherwise; what is accepted, unless equal */
};

/* As a field of problems, where it has a name. */
struct field parameter_field(const struct parameter *own);

/* ---- Signatures ---- */

/* What a kernel cannot avoid to do beside moving its tensors, whoever writes it: bench times a loop that
 * does that and nothing else, and so tells what binds (bench/limits.c). */
enum work_kind {
    WORK_UNSAID,
    WORK_NONE,
    WORK_ANGLES, /* forms cosines and sines */
    WORK_TURN,   /* turns pairs of channels by given ones, */
    WORK_NORM,   /* of heads that it normalises before */
    WORK_SLOPE,  /* multiplies distances */
    WORK_LINE,   /* moves a line from row to row */
    WORK_RUNS,   /* the same, with one value on and on before it */
    WORK_FETCH,  /* reads by an index that nobody knows before */
    WORK_TERMS,  /* reads terms by columns */
    WORK_SUMS    /* adds in a given order */
};

struct signature {
    const char *name;
    void (*blank)(void *arguments); /* posenc_..._args_init(), of `size` bytes */
    size_t size;
    struct tensor_row tensors[MOST_TENSORS]; /* in the order they are made; x after out */
    struct parameter parameters[MOST_PARAMETERS];
    size_t freqs;    /* the argument that is a plan; 0: none */
    size_t computed; /* one that `finish` computes, 64 bits; 0: none */

    /* What a channel, and twice a pair, counts: members of struct problem; 0: none. */
    size_t channels, turning;
    /* Where pairs of channels turn: the most ulp of the larger of its products that a channel may
     * be off, with one product of a rotation fused or without; whether channels that do not turn
     * are copies of x.  Whether a channel depends on all of its head. */
    double (*most_error)(const struct problem *problem, bool fused);
    bool copies, gathers;
    int64_t (*rows)(const struct problem *problem); /* NULL: problem->rows */
    int64_t (*columns)(const struct problem *problem);

    /* Dimensions along which a call may be cut, the last of `out` first; that which threads
     * share, and what they share where it is too short for all. */
    enum dim cuts[MOST_CUTS];
    enum dim shares[2];

    /* Names of the fields of its problems (fields.h), but for those that every problem has. */
    const char *fields;

    /* What else a call does, and of how many elements, where not of all outputs. */
    enum work_kind work;
    int64_t (*worked)(const struct call *call);

    /* Where needed: members of the problem that follow from others; refusals before anything
     * is made; arguments that are neither tensors nor members of the problem. */
    void (*settle)(struct problem *problem);
    bool (*check)(struct call *call);
    void (*finish)(struct call *call);
};

#define POSENC_SIGNATURE(name) extern const struct signature signature_##name;
#include <posenc_signatures.def>

const struct signature *signature_of(enum posenc_kernel kernel);

/* Its own parameters as they are where nothing says otherwise. */
void signature_own_defaults(const struct signature *signature, struct problem *problem);

/* The argument that is a member of the problem; 0: there is none. */
size_t signature_argument(const struct signature *signature, size_t member);

/* What several signatures have in their fields. */
#define FIELDS_TOKENS "tokens position_kind position_offset positions batch_shift token_major "
#define FIELDS_PLAN                                                                            \
    FIELDS_TOKENS "profile freq_convention scaling rope_theta factor "                         \
                  "original_max_position_embeddings low_freq_factor high_freq_factor "         \
                  "beta_fast beta_slow truncate attention_factor mscale mscale_all_dim "       \
                  "max_position_embeddings seq_len partial_rotary_factor short_factor "        \
                  "long_factor short_factor_last long_factor_last inv_freq mrope_section "     \
                  "mrope_layout mrope_grid time_step "
#define FIELDS_SCORES "values_dtype heads queries keys query_offset "

/* ---- Their rows ---- */

/* for (EACH_TENSOR(row, signature)): all that a signature has, present or not. */
#define EACH_TENSOR(row, signature)                                                            \
    const struct tensor_row *row = (signature)->tensors;                                       \
    row < (signature)->tensors + MOST_TENSORS && row->name;                                    \
    row++

/* for (EACH_PARAMETER(own, signature)) */
#define EACH_PARAMETER(at, signature)                                                          \
    const struct parameter *at = (signature)->parameters;                                      \
    at < (signature)->parameters + MOST_PARAMETERS && at->to;                                  \
    at++

/* The row of output o. */
const struct tensor_row *output_row(const struct signature *signature, int o);
/* The tensor that may be woven into the first output, whose dimensions and type it has: x, or
 * another output.  NULL: the kernel has none. */
const struct tensor_row *kernel_woven_row(enum posenc_kernel kernel);
/* Whether it lies in the memory of the first output, by whose layout it goes: x in place, or what
 * is woven into that. */
bool tensor_follows(const struct problem *problem, const struct tensor_row *row);
const struct tensor_layout *tensor_layout(const struct problem *problem,
                                          const struct tensor_row *row);
bool tensor_present(const struct problem *problem, const struct tensor_row *row);
enum posenc_dtype tensor_dtype(const struct problem *problem, const struct tensor_row *row);
/* Whether no tensor of its call is stored in 16 bits. */
bool problem_is_f32(const struct problem *problem);
int tensor_dims(const struct tensor_row *row);
/* Elements of all its dimensions. */
int64_t tensor_elements(const struct problem *problem, const struct tensor_row *row);

/* Elements that a perfect kernel moves. */
int64_t tensor_moved(const struct problem *problem, const struct tensor_row *row);

/* Where arguments have it: the tensor, the positions or the pointer; its first element, NULL
 * where there is none.  The same of a call. */
void *row_argument(union arguments *args, const struct tensor_row *row);
const void *row_data(const union arguments *args, const struct tensor_row *row);
void *call_argument(struct call *call, const struct tensor_row *row);
const void *call_data(const struct call *call, const struct tensor_row *row);
/* Which dimension of the call's tensor that is; -1: it has none, or does without it. */
int call_dim(const struct call *call, const struct tensor_row *row, enum dim dim);

/* ---- How they are written down ---- */

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
#define PARAMETER(signature, member)                                                           \
    {                                                                                          \
        TAKEN_BY(signature, member), .from = MEMBER(member),                                   \
                                     .from_size = sizeof((struct problem *)0)->member          \
    }
/* The one at that place of the problem's `own`; its value and what is accepted follow. */
#define OWN(signature, place, member, ...)                                                     \
    {                                                                                          \
        TAKEN_BY(signature, member), .from = MEMBER(own[place]),                               \
                                     .from_size = sizeof ARGUMENT_OF(signature, member),       \
                                     .name = #member, __VA_ARGS__                              \
    }
#define BLANK(signature)                                                                       \
    .name = #signature, .blank = blank_##signature,                                            \
    .size = sizeof(struct posenc_##signature##_args)
#define POSENC_SIGNATURE(name)                                                                 \
    static inline void blank_##name(void *to)                                                  \
    {                                                                                          \
        *(struct posenc_##name##_args *)to = posenc_##name##_args_init();                      \
    }
#include <posenc_signatures.def>
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

/* call.c, call_tensors.c and signatures make a call of these parts, and leave them to call_destroy().  The first
 * that cannot be made leaves its reason in call->error. */

/* Whether the status is POSENC_OK; if not, notes that the call is refused for this value, where
 * others from `least` to `most` are accepted: a range that has the value itself is not named.  The same
 * of a value that has to be among those. */
bool call_check(struct call *call, enum posenc_status status, const char *what, int64_t value,
                int64_t least, int64_t most);
bool call_within(struct call *call, enum posenc_status otherwise, const char *what,
                 int64_t value, int64_t least, int64_t most);

/* Memory of our own for n elements, zeroed; NULL where it was refused. */
void *call_keep(struct call *call, int64_t n, size_t item);

/* Copies dense rows of f32 into a tensor, rounding them to its type. */
void tensor_scatter(const struct posenc_tensor *tensor, const float *dense);

/* The argument of a row of the call's signature: memory for it, filled. */
bool make_tensor(struct call *call, const struct tensor_row *row);

/* call->freqs, and the argument. */
bool make_plan(struct call *call, const struct signature *s);

/* All arguments; the plan among them, unless other calls have it, too. */
bool make_arguments(struct call *call);
void destroy_plan(struct call *call);

/* ---- Parts of a call ---- */

/* The part [from, from + count) of a call along one of the dimensions of its signature's cuts.
 * It has the memory of the whole, which has to outlive it. */
struct call call_cut(const struct call *whole, enum dim dim, int64_t from, int64_t count);

/* How many of a dimension the first output has, 1 where it is without; its number from the last
 * one, -1. */
int64_t call_extent(const struct call *call, enum dim dim);
int call_from_last(const struct call *call, enum dim dim);

#endif
