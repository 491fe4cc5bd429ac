/*
 * The front-end: posenc_<kernel>() for each of the list.  A call is checked by its signature,
 * brought to the one form that kernels take (struct posenc_backend in posenc.h), and handed to
 * its backend.
 *
 * Nothing here depends on a kernel but the list and one rule of its names: the kernels that end
 * in _add take x where their signature leaves it open.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "registry.h"
#include "validate.h"

const char *posenc_version(void) { return POSENC_VERSION; }

const char *posenc_status_string(enum posenc_status status)
{
    switch (status) {
    case POSENC_OK:
        return "fine";
    case POSENC_ERR_ARGUMENT:
        return "a required argument is missing or no member of its kind";
    case POSENC_ERR_SHAPE:
        return "a dimension is out of range or two tensors disagree";
    case POSENC_ERR_STRIDE:
        return "the last dimension is not contiguous, or an output overlaps itself";
    case POSENC_ERR_DTYPE:
        return "this kernel does not take this element type";
    case POSENC_ERR_ODD:
        return "a dimension that must be even is odd";
    case POSENC_ERR_ROTARY_DIM:
        return "rotary_dim exceeds head_dim";
    case POSENC_ERR_THETA:
        return "rope_theta is not finite and positive, or gives unusable frequencies";
    case POSENC_ERR_PARAMETER:
        return "a parameter is not finite or out of its range";
    case POSENC_ERR_POSITION:
        return "a position is out of range";
    case POSENC_ERR_OVERLAP:
        return "tensors overlap without being the same";
    case POSENC_ERR_OVERFLOW:
        return "the size of a tensor does not fit in memory";
    case POSENC_ERR_UNKNOWN:
        return "no backend of that name";
    case POSENC_ERR_UNSUPPORTED:
        return "this CPU cannot run that backend";
    case POSENC_ERR_NOT_PROVIDED:
        return "that backend lacks this kernel";
    case POSENC_ERR_MEMORY:
        return "out of memory";
    }
    return "no status of this library";
}

struct posenc_tensor posenc_dense(void *data, int rank, int64_t d0, int64_t d1, int64_t d2,
                                  int64_t d3)
{
    struct posenc_tensor tensor = { .data = data, .dtype = POSENC_F32, .rank = rank };
    const int64_t sizes[4] = { d0, d1, d2, d3 };
    uint64_t stride =
        1; /* unsigned: the product of absurd sizes wraps, and the call refuses them */
    for (int i = (rank < 4 ? rank : 4) - 1; i >= 0; i--) {
        tensor.shape[i] = sizes[i];
        tensor.stride[i] = (int64_t)stride;
        stride *= (uint64_t)sizes[i];
    }
    return tensor;
}

/* ---- What several signatures share ---- */

enum { MOST_POSITION = INT32_MAX }; /* |position| < 2^31 */
static const char position_what[] = "position of a token";
static const char row_what[] = "position of a token (rows of the table - 1 at most)";

static const struct tensor_names names_x = TENSOR_NAMES("x"), names_out = TENSOR_NAMES("out"),
                                 names_cos = TENSOR_NAMES("cos"),
                                 names_sin = TENSOR_NAMES("sin"),
                                 names_table = TENSOR_NAMES("table");

static enum posenc_status check_finite(double value, const char *what,
                                       struct posenc_error *error)
{
    if (fabs(value) <= (double)FLT_MAX) /* not NaN either */
        return POSENC_OK;
    return posenc_refuse(error, POSENC_ERR_PARAMETER, what, value, -(double)FLT_MAX,
                         (double)FLT_MAX);
}

static enum posenc_status require_size(int64_t value, int64_t wanted, const char *what,
                                       struct posenc_error *error)
{
    if (value == wanted)
        return POSENC_OK;
    return posenc_refuse(error, POSENC_ERR_SHAPE, what, (double)value, (double)wanted,
                         (double)wanted);
}

/* x and out: both checked, of one shape, the same tensor or apart; or out alone. */
static enum posenc_status check_activations(struct posenc_tensor *x, struct posenc_tensor *out,
                                            bool takes_x, int least_rank, int most_rank,
                                            int64_t least_last, struct checked *checked,
                                            struct posenc_error *error)
{
    bool in_place = takes_x && memcmp(x, out, sizeof *x) == 0;
    const struct tensor_rule rule = { &names_out, least_rank, most_rank, least_last, true };
    enum posenc_status status = posenc_check_tensor(out, &rule, checked, error);
    if (status)
        return status;
    if (in_place) { /* as x.data == out.data finds too, but sooner: decoding is all overhead */
        *x = *out;
        return POSENC_OK;
    }
    if (!takes_x) {
        if (x->data)
            return posenc_refuse(error, POSENC_ERR_ARGUMENT, "x (this kernel takes none)", 0.0,
                                 1.0, 0.0);
        *x = (struct posenc_tensor){ 0 };
        return POSENC_OK;
    }
    const struct tensor_rule x_rule = { &names_x, least_rank, most_rank, least_last, false };
    struct checked x_checked;
    status = posenc_check_tensor(x, &x_rule, &x_checked, error);
    if (status)
        return status;
    if (!posenc_same_shape(x, out)) {
        status = require_size(x->rank, out->rank, names_x.rank, error);
        for (int i = 0; !status && i < out->rank; i++)
            status = require_size(x->shape[i], out->shape[i], names_x.shape, error);
        return status;
    }
    return posenc_check_overlap(x, x_checked.span, out, checked->span, true, "x (overlaps out)",
                                error);
}

/* From [tokens, ...] or [batch, tokens, ...]; `wide`: with heads.  To [batch, tokens, heads,
 * dim]. */
static void raise_activations(struct posenc_tensor *tensor, bool wide)
{
    if (!tensor->rank)
        return;
    if (!wide)
        posenc_insert_dimension(tensor, tensor->rank - 1);
    if (tensor->rank == 3)
        posenc_insert_dimension(tensor, 0);
}

/* Positions of the tokens of `out`, already of rank 4, in an array apart from it. */
static enum posenc_status check_tokens(const struct posenc_positions *positions,
                                       const struct posenc_tensor *out, struct span out_span,
                                       int64_t least, int64_t most, const char *what,
                                       struct posenc_error *error)
{
    struct span span;
    enum posenc_status status = posenc_check_positions(positions, out->shape[0], out->shape[1],
                                                       least, most, what, &span, error);
    if (status)
        return status;
    return posenc_check_apart(span, out_span, "positions (overlap an output)", error);
}

/* A table of rank 2 that is read by rows. */
static enum posenc_status check_rows(struct posenc_tensor *table,
                                     const struct tensor_names *names, struct span out_span,
                                     const char *overlap, struct posenc_error *error)
{
    const struct tensor_rule rule = { names, 2, 2, 1, false };
    struct checked checked;
    enum posenc_status status = posenc_check_tensor(table, &rule, &checked, error);
    return status ? status : posenc_check_apart(checked.span, out_span, overlap, error);
}

/* ---- One check per signature ---- */

static enum posenc_status check_sinusoidal(struct posenc_sinusoidal_args *call, bool takes_x,
                                           bool *empty)
{
    struct posenc_error *error = call->error;
    if (!call->freqs)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, "freqs (NULL)", 0.0, 1.0, 0.0);
    if (call->freqs->view.n_axes != 1)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT,
                             "axes of the plan (several are for rope_table)",
                             (double)call->freqs->view.n_axes, 1.0, 1.0);
    if ((unsigned)call->layout > POSENC_COS_SIN)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, "layout", (double)call->layout,
                             POSENC_INTERLEAVED, POSENC_COS_SIN);
    enum posenc_status status = check_finite(call->scale, "scale", error);
    if (!status && call->scale == 0.0)
        status = posenc_refuse(error, POSENC_ERR_PARAMETER, "scale (0 leaves no encoding)", 0.0,
                               1.0, 0.0);
    if (!status && takes_x)
        status = check_finite((double)call->x_scale, "x_scale", error);
    if (status)
        return status;
    struct checked out;
    status = check_activations(&call->x, &call->out, takes_x, 2, 3, 1, &out, error);
    if (status)
        return status;
    *empty = out.empty;
    status = require_size(call->out.shape[call->out.rank - 1], call->freqs->view.dim,
                          "last dimension of out (dim of the plan)", error);
    if (status || *empty)
        return status;
    raise_activations(&call->x, false);
    raise_activations(&call->out, false);
    return check_tokens(&call->positions, &call->out, out.span, -(int64_t)MOST_POSITION,
                        MOST_POSITION, position_what, error);
}

static enum posenc_status check_learned(struct posenc_learned_args *call, bool takes_x,
                                        bool *empty)
{
    (void)takes_x; /* always */
    struct posenc_error *error = call->error;
    enum posenc_status status = check_finite((double)call->x_scale, "x_scale", error);
    if (status)
        return status;
    struct checked out;
    status = check_activations(&call->x, &call->out, true, 2, 3, 1, &out, error);
    if (!status)
        status =
            check_rows(&call->table, &names_table, out.span, "table (overlaps out)", error);
    if (!status)
        status = require_size(call->table.shape[1], call->out.shape[call->out.rank - 1],
                              "last dimension of table (that of out)", error);
    *empty = out.empty;
    if (status || *empty)
        return status;
    raise_activations(&call->x, false);
    raise_activations(&call->out, false);
    return check_tokens(&call->positions, &call->out, out.span, 0, call->table.shape[0] - 1,
                        row_what, error);
}

/* Positions on each axis of the plan; those that are the same on all come to stride 0. */
static enum posenc_status check_axes(struct posenc_rope_table_args *call, struct span cosine,
                                     struct span sine)
{
    struct posenc_positions *positions = &call->positions;
    int32_t n_axes = call->freqs->view.n_axes;
    enum posenc_status status = POSENC_OK;

    if (positions->kind == POSENC_OFFSET || n_axes == 1)
        positions->stride_axis = 0;
    if (positions->stride_axis == 0)
        n_axes = 1;
    for (int32_t axis = 0; axis < n_axes && !status; axis++) {
        struct posenc_positions of = posenc_axis(positions, axis);
        status = check_tokens(&of, &call->cos, cosine, -(int64_t)MOST_POSITION, MOST_POSITION,
                              position_what, call->error);
        if (!status && of.kind != POSENC_OFFSET)
            status = check_tokens(&of, &call->sin, sine, -(int64_t)MOST_POSITION, MOST_POSITION,
                                  position_what, call->error);
    }
    return status;
}

static enum posenc_status check_rope_table(struct posenc_rope_table_args *call, bool takes_x,
                                           bool *empty)
{
    (void)takes_x; /* never */
    struct posenc_error *error = call->error;
    if (!call->freqs)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, "freqs (NULL)", 0.0, 1.0, 0.0);
    const struct posenc_freqs_view *plan = &call->freqs->view;
    if (plan->dim % 2 != 0)
        return posenc_refuse(error, POSENC_ERR_ODD, "dim of the plan", (double)plan->dim, 1.0,
                             0.0);
    const struct tensor_rule cos_rule = { &names_cos, 2, 3, 1, true };
    const struct tensor_rule sin_rule = { &names_sin, 2, 3, 1, true };
    struct checked cosine, sine;
    enum posenc_status status = posenc_check_tensor(&call->cos, &cos_rule, &cosine, error);
    if (!status)
        status = posenc_check_tensor(&call->sin, &sin_rule, &sine, error);
    if (!status)
        status = require_size(call->cos.shape[call->cos.rank - 1], plan->n_pairs,
                              "last dimension of cos (pairs of the plan)", error);
    if (status)
        return status;
    if (!posenc_same_shape(&call->cos, &call->sin))
        return posenc_refuse(error, POSENC_ERR_SHAPE, "shape of sin (that of cos)", 0.0, 1.0,
                             0.0);
    *empty = cosine.empty;
    if (*empty)
        return POSENC_OK;
    status = posenc_check_overlap(&call->cos, cosine.span, &call->sin, sine.span, false,
                                  "sin (overlaps cos)", error);
    if (status)
        return status;
    raise_activations(&call->cos, false);
    raise_activations(&call->sin, false);
    return check_axes(call, cosine.span, sine.span);
}

static enum posenc_status check_rope(struct posenc_rope_args *call, bool takes_x, bool *empty)
{
    (void)takes_x; /* always */
    struct posenc_error *error = call->error;
    struct checked out;
    enum posenc_status status =
        check_activations(&call->x, &call->out, true, 3, 4, 1, &out, error);
    if (!status)
        status = check_rows(&call->cos, &names_cos, out.span, "cos (overlaps out)", error);
    if (!status)
        status = check_rows(&call->sin, &names_sin, out.span, "sin (overlaps out)", error);
    if (!status)
        status = require_size(call->sin.shape[0], call->cos.shape[0],
                              "rows of sin (those of cos)", error);
    if (!status)
        status = require_size(call->sin.shape[1], call->cos.shape[1],
                              "last dimension of sin (that of cos)", error);
    if (status)
        return status;
    int64_t rotary_dim = 2 * call->cos.shape[1], head_dim = call->out.shape[call->out.rank - 1];
    if (rotary_dim > head_dim)
        return posenc_refuse(error, POSENC_ERR_ROTARY_DIM,
                             "rotary_dim, twice the last dimension of cos (head_dim at most)",
                             (double)rotary_dim, 2.0, (double)head_dim);
    *empty = out.empty;
    if (*empty)
        return POSENC_OK;
    raise_activations(&call->x, true);
    raise_activations(&call->out, true);
    return check_tokens(&call->positions, &call->out, out.span, 0, call->cos.shape[0] - 1,
                        row_what, error);
}

/* Every |i + query_offset - j| below 2^24, so that f32 holds it. */
static enum posenc_status check_distances(int64_t queries, int64_t keys, int64_t query_offset,
                                          struct posenc_error *error)
{
    const int64_t most = (1 << 24) - 1;
    int64_t farthest = query_offset;
    if (query_offset >= -most && query_offset <= most) {
        int64_t back = query_offset + queries - 1, ahead = keys - 1 - query_offset;
        farthest = back > ahead ? back : ahead;
    }
    if (farthest >= 0 && farthest <= most)
        return POSENC_OK;
    return posenc_refuse(error, POSENC_ERR_SHAPE, "distance of a query and a key",
                         fabs((double)farthest), 0.0, (double)most);
}

/* Scores or a bias, to [batch, heads, queries, keys]. */
static enum posenc_status check_scores(struct posenc_tensor *x, struct posenc_tensor *out,
                                       bool takes_x, float x_scale, int64_t query_offset,
                                       struct checked *checked, struct posenc_error *error)
{
    enum posenc_status status = POSENC_OK;
    if (takes_x)
        status = check_finite((double)x_scale, "x_scale", error);
    if (!status)
        status = check_activations(x, out, takes_x, 3, takes_x ? 4 : 3, 0, checked, error);
    if (status)
        return status;
    raise_activations(x, true);
    raise_activations(out, true);
    return checked->empty ? POSENC_OK
                          : check_distances(out->shape[2], out->shape[3], query_offset, error);
}

static enum posenc_status check_alibi(struct posenc_alibi_args *call, bool takes_x, bool *empty)
{
    struct posenc_error *error = call->error;
    struct checked out = { { 0, 0 }, false };
    enum posenc_status status = check_scores(&call->x, &call->out, takes_x, call->x_scale,
                                             call->query_offset, &out, error);
    *empty = out.empty;
    if (status || *empty)
        return status;
    int64_t heads = call->out.shape[1];
    struct span span;
    status = posenc_check_array(call->slopes, heads, sizeof(float),
                                "slopes (NULL or not aligned)", &span, error);
    if (!status)
        status = posenc_check_apart(span, out.span, "slopes (overlap out)", error);
    for (int64_t h = 0; !status && h < heads; h++)
        status = check_finite((double)call->slopes[h], "slope of a head", error);
    return status;
}

/* thresholds[0] = 0, alone; then never less than the one before. */
static enum posenc_status check_thresholds(const struct posenc_t5_args *call,
                                           struct span out_span)
{
    struct posenc_error *error = call->error;
    int64_t n = call->bidirectional ? call->num_buckets / 2 : call->num_buckets;
    struct span span;
    enum posenc_status status = posenc_check_array(
        call->thresholds, n, sizeof(int32_t), "thresholds (NULL or not aligned)", &span, error);
    if (!status)
        status = posenc_check_apart(span, out_span, "thresholds (overlap out)", error);
    if (status)
        return status;
    if (call->thresholds[0] != 0)
        return posenc_refuse(error, POSENC_ERR_PARAMETER, "threshold of bucket 0",
                             call->thresholds[0], 0.0, 0.0);
    for (int64_t b = 1, least = 1; b < n; least = call->thresholds[b++])
        if (call->thresholds[b] < least)
            return posenc_refuse(
                error, POSENC_ERR_PARAMETER,
                "threshold of a bucket (at least 1 and that of the one before)",
                call->thresholds[b], (double)least, INT32_MAX);
    return POSENC_OK;
}

static enum posenc_status check_t5(struct posenc_t5_args *call, bool takes_x, bool *empty)
{
    enum { MOST_BUCKETS = 4096 };
    struct posenc_error *error = call->error;
    int64_t least = call->bidirectional ? 4 : 2;
    if (call->num_buckets < least || call->num_buckets > MOST_BUCKETS)
        return posenc_refuse(error, POSENC_ERR_SHAPE, "num_buckets", (double)call->num_buckets,
                             (double)least, MOST_BUCKETS);
    if (call->bidirectional && call->num_buckets % 2 != 0)
        return posenc_refuse(error, POSENC_ERR_SHAPE, "num_buckets (even when bidirectional)",
                             (double)call->num_buckets, 1.0, 0.0);
    struct checked out = { { 0, 0 }, false };
    enum posenc_status status = check_scores(&call->x, &call->out, takes_x, call->x_scale,
                                             call->query_offset, &out, error);
    *empty = out.empty;
    if (status || *empty)
        return status;
    status = check_rows(&call->table, &names_table, out.span, "table (overlaps out)", error);
    if (!status)
        status = require_size(call->table.shape[0], call->num_buckets,
                              "rows of table (num_buckets)", error);
    if (!status)
        status = require_size(call->table.shape[1], call->out.shape[1],
                              "last dimension of table (heads of out)", error);
    return status ? status : check_thresholds(call, out.span);
}

/* ---- The calls ---- */

/* Folded by the compiler: `name` is a literal. */
static inline bool ends_in_add(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && memcmp(name + length - 4, "_add", 4) == 0;
}

#define POSENC_KERNEL(name, signature, stage, summary)                                         \
    enum posenc_status posenc_##name(const struct posenc_backend *backend,                     \
                                     const struct posenc_##signature##_args *args)             \
    {                                                                                          \
        if (!args || args->size != sizeof *args)                                               \
            return POSENC_ERR_ARGUMENT;                                                        \
        struct posenc_##signature##_args call = *args;                                         \
        bool empty = false;                                                                    \
        enum posenc_status status = check_##signature(&call, ends_in_add(#name), &empty);      \
        if (!status)                                                                           \
            status = posenc_resolve(&backend, POSENC_KERNEL_##name, call.error);               \
        return status || empty ? status : backend->name(&call);                                \
    }
#include "posenc_kernels.def"
