/* The checks of what goes by tokens and positions: sinusoidal and learned encodings, rotations.
 */
#include "checks.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_POSITION = INT32_MAX }; /* |position| < 2^31 */
static const char position_what[] = "position of a token";
static const char row_what[] = "position of a token (rows of the table - 1 at most)";

static const struct tensor_names names_cos = TENSOR_NAMES("cos"),
                                 names_sin = TENSOR_NAMES("sin"),
                                 names_weight = TENSOR_NAMES("weight");

/* A stride that nobody set is that of a dense array. */
static void resolve_stride(struct posenc_positions *positions)
{
    if (positions->kind != POSENC_OFFSET && positions->stride_token == 0)
        positions->stride_token = 1;
}

/* Positions of the tokens of `out`, already of rank 4, in an array apart from it. */
static enum posenc_status check_tokens(struct posenc_positions *positions, const int64_t *shape,
                                       struct span out_span, int64_t least, int64_t most,
                                       const char *what, struct posenc_error *error)
{
    struct span span;
    resolve_stride(positions);
    enum posenc_status status =
        posenc_check_positions(positions, shape[0], shape[1], least, most, what, &span, error);
    if (status)
        return status;
    return posenc_check_apart(span, out_span, "positions (overlap an output)", error);
}

/* Returns true if positions on an axis are in the address space, if those on the first axis are. */
static bool axis_is_near(const struct posenc_positions *positions, int32_t axis)
{
    const uintptr_t first = (uintptr_t)positions->data;
    int64_t bytes;
    if (__builtin_mul_overflow(positions->stride_axis,
                               axis * (int64_t)posenc_position_size(positions->kind), &bytes))
        return false;
    return bytes < 0 ? (uint64_t) - (bytes + 1) < first : (uint64_t)bytes < UINTPTR_MAX - first;
}

/* Positions on each axis of the plan, apart from one output or two; those that are the same on
 * all come to stride 0. */
static enum posenc_status check_axes(struct posenc_positions *positions, int32_t n_axes,
                                     const int64_t *shape, const struct span *spans,
                                     int n_spans, int64_t least, int64_t most,
                                     struct posenc_error *error)
{
    enum posenc_status status = POSENC_OK;

    resolve_stride(positions);
    if (positions->kind == POSENC_OFFSET || n_axes == 1)
        positions->stride_axis = 0;
    if (positions->stride_axis == 0)
        n_axes = 1;
    if (positions->data && !axis_is_near(positions, n_axes - 1))
        return posenc_refuse(error, POSENC_ERR_OVERFLOW, "extent of the positions in bytes",
                             (double)UINTPTR_MAX, 0.0, (double)PTRDIFF_MAX);
    for (int32_t axis = 0; axis < n_axes && !status; axis++) {
        if (axis == 1) /* the array itself is good */
            status = posenc_check_axes(positions, n_axes, shape[0], shape[1], error);
        if (status)
            break;
        struct posenc_positions of = posenc_axis(positions, axis);
        int arrays = of.kind == POSENC_OFFSET ? 1 : n_spans;
        for (int i = 0; i < arrays && !status; i++)
            status = check_tokens(&of, shape, spans[i], least, most, position_what, error);
    }
    return status;
}

/* A plan for sinusoidal encodings: one axis, or sections side by side. */
static enum posenc_status check_sinusoidal_plan(const struct posenc_freqs *freqs,
                                                struct posenc_error *error)
{
    if (!freqs)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, "freqs (NULL)", 0.0, 1.0, 0.0);
    if (freqs->view.n_axes != 1 && freqs->section[0] == 0)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT,
                             "axes of the plan (several are for rope_table, or restarted)",
                             (double)freqs->view.n_axes, 1.0, 1.0);
    if (freqs->xpos_step)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, "xPos of the plan (for rope_table)",
                             1.0, 0.0, 0.0);
    return POSENC_OK;
}

enum posenc_status posenc_check_sinusoidal(struct posenc_sinusoidal_args *call, bool takes_x,
                                           struct accepted *accepted)
{
    struct posenc_error *error = call->error;
    enum posenc_status status = check_sinusoidal_plan(call->freqs, error);
    if (status)
        return status;
    if ((unsigned)call->layout > POSENC_COS_SIN)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, "layout", (double)call->layout,
                             POSENC_INTERLEAVED, POSENC_COS_SIN);
    status = posenc_check_finite(call->scale, "scale", error);
    if (!status && call->scale == 0.0)
        status = posenc_refuse(error, POSENC_ERR_PARAMETER, "scale (0 leaves no encoding)", 0.0,
                               1.0, 0.0);
    if (!status && takes_x)
        status = posenc_check_finite((double)call->x_scale, "x_scale", error);
    if (status)
        return status;
    const struct activations_rule rule = { takes_x, 2, 3, 1 };
    struct checked out;
    status = posenc_check_activations(&call->x, &call->out, &rule, &out, error);
    if (status)
        return status;
    *accepted = (struct accepted){ out.empty, call->out.dtype };
    status = posenc_require_size(call->out.shape[call->out.rank - 1], call->freqs->view.dim,
                                 "last dimension of out (dim of the plan)", error);
    if (status || accepted->empty)
        return status;
    posenc_raise_input(&call->x, false);
    posenc_raise_output(&call->out, false);
    return check_axes(&call->positions, call->freqs->view.n_axes, call->out.shape, &out.span, 1,
                      -(int64_t)MOST_POSITION, MOST_POSITION, error);
}

enum posenc_status posenc_check_learned(struct posenc_learned_args *call, bool takes_x,
                                        struct accepted *accepted)
{
    (void)takes_x; /* always */
    struct posenc_error *error = call->error;
    enum posenc_status status = posenc_check_finite((double)call->x_scale, "x_scale", error);
    if (status)
        return status;
    const struct activations_rule rule = { true, 2, 3, 1 };
    struct checked out;
    status = posenc_check_activations(&call->x, &call->out, &rule, &out, error);
    if (!status)
        status = posenc_check_rows(&call->table, &posenc_names_table, false, out.span,
                                   "table (overlaps out)", error);
    if (!status)
        status = posenc_require_size(call->table.shape[1], call->out.shape[call->out.rank - 1],
                                     "last dimension of table (that of out)", error);
    *accepted = (struct accepted){ out.empty, call->out.dtype };
    if (status || accepted->empty)
        return status;
    posenc_raise_input(&call->x, false);
    posenc_raise_output(&call->out, false);
    return check_tokens(&call->positions, call->out.shape, out.span, 0,
                        call->table.shape[0] - 1, row_what, error);
}

/* Without tokens there is still a gradient: zeros. */
enum posenc_status posenc_check_learned_grad(struct posenc_learned_grad_args *call,
                                             bool takes_x, struct accepted *accepted)
{
    (void)takes_x; /* always */
    struct posenc_error *error = call->error;
    const struct tensor_rule out_rule = {
        .names = &posenc_names_out, .least_rank = 2, .most_rank = 2, .least_last = 1
    };
    const struct tensor_rule x_rule = { .names = &posenc_names_x,
                                        .least_rank = 2,
                                        .most_rank = 3,
                                        .least_last = 1,
                                        .any_dtype = true };
    struct checked out, x;
    enum posenc_status status = posenc_check_output(&call->out, &out_rule, &out, error);
    if (!status)
        status = posenc_check_input(&call->x, &x_rule, &x, error);
    if (!status)
        status = posenc_require_size(call->x.shape[call->x.rank - 1], call->out.shape[1],
                                     "last dimension of x (that of out)", error);
    if (!status)
        status = posenc_check_apart(x.span, out.span, "x (overlaps out)", error);
    if (status)
        return status;
    posenc_raise_input(&call->x, false);
    if (x.empty)
        call->x.shape[0] = call->x.shape[1] = 0; /* nobody has to count 2^31 batches of none */
    else
        status = check_tokens(&call->positions, call->x.shape, out.span, 0,
                              call->out.shape[0] - 1, row_what, error);
    *accepted = (struct accepted){ out.empty, call->x.dtype };
    return status;
}

/* Positions whose cosines and sines, times what xPos makes of them, f32 can hold. */
static void limit_positions(const struct posenc_freqs *freqs, int64_t *least, int64_t *most)
{
    *least = -(int64_t)MOST_POSITION;
    *most = MOST_POSITION;
    if (!freqs->xpos_step)
        return;
    double reach = posenc_xpos_reach(freqs), centre = freqs->xpos_centre;
    if (centre - reach > (double)*least)
        *least = (int64_t)ceil(centre - reach);
    if (centre + reach < (double)*most)
        *most = (int64_t)floor(centre + reach);
}

enum posenc_status posenc_check_rope_table(struct posenc_rope_table_args *call, bool takes_x,
                                           struct accepted *accepted)
{
    (void)takes_x; /* never */
    struct posenc_error *error = call->error;
    if (!call->freqs)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, "freqs (NULL)", 0.0, 1.0, 0.0);
    const struct posenc_freqs_view *plan = &call->freqs->view;
    if (plan->dim % 2 != 0)
        return posenc_refuse(error, POSENC_ERR_ODD, "dim of the plan", (double)plan->dim, 1.0,
                             0.0);
    struct tensor_rule rule = {
        .names = &names_cos, .least_rank = 2, .most_rank = 3, .least_last = 1, .any_dtype = true
    };
    struct checked cosine, sine;
    enum posenc_status status = posenc_check_output(&call->cos, &rule, &cosine, error);
    rule.names = &names_sin;
    if (!status)
        status = posenc_check_output(&call->sin, &rule, &sine, error);
    if (!status)
        status = posenc_require_dtype(call->sin.dtype, call->cos.dtype,
                                      "dtype of sin (that of cos)", error);
    if (!status)
        status = posenc_require_size(call->cos.shape[call->cos.rank - 1], plan->n_pairs,
                                     "last dimension of cos (pairs of the plan)", error);
    if (status)
        return status;
    if (call->sin.rank != call->cos.rank ||
        memcmp(call->sin.shape, call->cos.shape, (size_t)call->cos.rank * sizeof(int64_t)) != 0)
        return posenc_refuse(error, POSENC_ERR_SHAPE, "shape of sin (that of cos)", 0.0, 1.0,
                             0.0);
    *accepted = (struct accepted){ cosine.empty, call->cos.dtype };
    if (accepted->empty)
        return POSENC_OK;
    const struct posenc_const_tensor cos = posenc_view(call->cos);
    status = posenc_check_overlap(&cos, cosine.span, &call->sin, sine.span, false,
                                  "sin (overlaps cos)", error);
    if (status)
        return status;
    posenc_raise_output(&call->cos, false);
    posenc_raise_output(&call->sin, false);
    int64_t least, most;
    limit_positions(call->freqs, &least, &most);
    return check_axes(&call->positions, plan->n_axes, call->cos.shape,
                      (const struct span[2]){ cosine.span, sine.span }, 2, least, most, error);
}

/* Rows of cosines and sines, and the channels they turn. */
struct angles {
    struct posenc_const_tensor *cos, *sin;
    int64_t rotary_offset, head_dim;
};

/* cos and sin are of one type and shape, and turn channels that a head has. */
static enum posenc_status check_angles(const struct angles *angles, struct span out_span,
                                       struct posenc_error *error)
{
    struct posenc_const_tensor *cos = angles->cos, *sin = angles->sin;
    enum posenc_status status =
        posenc_check_rows(cos, &names_cos, true, out_span, "cos (overlaps out)", error);
    if (!status)
        status =
            posenc_check_rows(sin, &names_sin, true, out_span, "sin (overlaps out)", error);
    if (!status)
        status =
            posenc_require_dtype(sin->dtype, cos->dtype, "dtype of sin (that of cos)", error);
    if (!status)
        status = posenc_require_size(sin->shape[0], cos->shape[0], "rows of sin (those of cos)",
                                     error);
    if (!status)
        status = posenc_require_size(sin->shape[1], cos->shape[1],
                                     "last dimension of sin (that of cos)", error);
    if (status)
        return status;
    int64_t rotary_dim = 2 * cos->shape[1], most = angles->head_dim - rotary_dim;
    if (most < 0)
        return posenc_refuse(error, POSENC_ERR_ROTARY_DIM,
                             "rotary_dim, twice the last dimension of cos (head_dim at most)",
                             (double)rotary_dim, 2.0,
                             (double)(angles->head_dim - angles->head_dim % 2));
    if (angles->rotary_offset < 0 || angles->rotary_offset > most)
        return posenc_refuse(error, POSENC_ERR_ROTARY_DIM,
                             "rotary_offset (head_dim - rotary_dim at most)",
                             (double)angles->rotary_offset, 0.0, (double)most);
    return POSENC_OK;
}

enum posenc_status posenc_check_rope(struct posenc_rope_args *call, bool takes_x,
                                     struct accepted *accepted)
{
    (void)takes_x; /* always */
    const struct activations_rule rule = { true, 3, 4, 1 };
    struct checked out;
    enum posenc_status status =
        posenc_check_activations(&call->x, &call->out, &rule, &out, call->error);
    if (status)
        return status;
    const struct angles angles = { &call->cos, &call->sin, call->rotary_offset,
                                   call->out.shape[call->out.rank - 1] };
    status = check_angles(&angles, out.span, call->error);
    *accepted = (struct accepted){ out.empty, call->out.dtype | call->cos.dtype };
    if (status || accepted->empty)
        return status;
    posenc_raise_input(&call->x, true);
    posenc_raise_output(&call->out, true);
    return check_tokens(&call->positions, call->out.shape, out.span, 0, call->cos.shape[0] - 1,
                        row_what, call->error);
}

/* ---- rope_qk_norm ---- */

/* Brings the weight to [heads, head_dim], with a stride of 0 if heads share it. */
static enum posenc_status check_weight(struct posenc_const_tensor *weight, int64_t heads,
                                       int64_t head_dim, struct span out_span,
                                       struct posenc_error *error)
{
    const struct tensor_rule rule = {
        .names = &names_weight, .least_rank = 1, .most_rank = 2, .least_last = 1
    };
    struct checked checked;
    enum posenc_status status = posenc_check_input(weight, &rule, &checked, error);
    if (!status)
        status = posenc_check_apart(checked.span, out_span, "weight (overlaps out)", error);
    if (!status)
        status = posenc_require_size(weight->shape[weight->rank - 1], head_dim,
                                     "last dimension of weight (head_dim)", error);
    if (!status && weight->rank == 2)
        status = posenc_require_size(weight->shape[0], heads,
                                     "first dimension of weight (heads)", error);
    if (status || weight->rank == 2)
        return status;
    weight->rank = 2;
    weight->shape[0] = heads;
    weight->shape[1] = head_dim;
    weight->stride[0] = 0;
    weight->stride[1] = 1;
    return POSENC_OK;
}

/* Checks epsilon, and the offset of weights. */
static enum posenc_status check_norm(const struct posenc_rope_qk_norm_args *call, int64_t heads,
                                     int64_t head_dim)
{
    const double least_epsilon = 0x1p-64, most_channels = 0x1p24; /* whole numbers in f32 */
    const double channels = (double)head_dim * (double)(call->across_heads ? heads : 1);
    struct posenc_error *error = call->error;

    if (!((double)call->epsilon >= least_epsilon && call->epsilon <= FLT_MAX))
        return posenc_refuse(error, POSENC_ERR_PARAMETER, "epsilon", (double)call->epsilon,
                             least_epsilon, (double)FLT_MAX);
    if (channels > most_channels)
        return posenc_refuse(error, POSENC_ERR_SHAPE, "channels of a norm", channels, 1.0,
                             most_channels);
    return posenc_check_finite((double)call->weight_offset, "weight_offset", error);
}

enum posenc_status posenc_check_rope_qk_norm(struct posenc_rope_qk_norm_args *call,
                                             bool takes_x, struct accepted *accepted)
{
    (void)takes_x; /* always */
    const struct activations_rule rule = { true, 3, 4, 1 };
    struct checked out;
    enum posenc_status status =
        posenc_check_activations(&call->x, &call->out, &rule, &out, call->error);
    if (status)
        return status;
    const int64_t heads = call->out.shape[call->out.rank - 2],
                  head_dim = call->out.shape[call->out.rank - 1];
    const struct angles angles = { &call->cos, &call->sin, call->rotary_offset, head_dim };
    status = check_norm(call, heads, head_dim);
    if (!status)
        status = check_angles(&angles, out.span, call->error);
    if (!status)
        status = check_weight(&call->weight, heads, head_dim, out.span, call->error);
    *accepted = (struct accepted){ out.empty, call->out.dtype | call->cos.dtype };
    if (status || accepted->empty)
        return status;
    posenc_raise_input(&call->x, true);
    posenc_raise_output(&call->out, true);
    return check_tokens(&call->positions, call->out.shape, out.span, 0, call->cos.shape[0] - 1,
                        row_what, call->error);
}
