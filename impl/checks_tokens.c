/* Checks of kernels whose rows belong to tokens: sinusoidal and learned encodings, rotations. posenc_check_rope(), for
 * example, rejects a position that is no row of cos as POSITION. */
#include "checks.h"
#include "members.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MAX_POSITION = INT32_MAX }; /* |position| < 2^31 */

/* Returns the positions that are rows of a table. */
static struct position_range table_range(int64_t rows)
{
    return (struct position_range){ 0, rows - 1,
                                    "position of a token (rows of the table - 1 at most)",
                                    false };
}

/* Activations with heads. */
static const struct activations_rule heads_rule = {
    .takes_x = true, .min_rank = 3, .max_rank = 4, .min_last = 1
};

static const struct tensor_names names_cos = TENSOR_NAMES("cos"),
                                 names_sin = TENSOR_NAMES("sin"),
                                 names_weight = TENSOR_NAMES("weight");

/* A stride of 0 stands for that of a dense array. */
static void set_token_stride(struct posenc_positions *positions)
{
    if (positions->kind != POSENC_POSITIONS_OFFSET && positions->stride_token == 0)
        positions->stride_token = 1;
}

/* Checks the positions of the tokens of an output, whose canonical shape is `shape`. Their array must be disjoint from
 * the output. */
static enum posenc_status check_tokens(struct posenc_positions *positions, const int64_t *shape,
                                       struct span out_span, const struct position_range *range,
                                       struct posenc_error *error)
{
    struct span span;
    set_token_stride(positions);
    enum posenc_status status =
        posenc_check_positions(positions, shape[0], shape[1], range, &span, error);
    if (status)
        return status;
    return posenc_check_disjoint(span, out_span, "positions (overlap an output)", error);
}

/* Returns true if the address of the first position on an axis does not wrap. */
static bool axis_is_addressable(const struct posenc_positions *positions, int32_t axis)
{
    const uintptr_t first = (uintptr_t)positions->data;
    int64_t bytes;
    if (__builtin_mul_overflow(positions->stride_axis,
                               axis * (int64_t)posenc_position_size(positions->kind), &bytes))
        return false;
    return bytes < 0 ? (uint64_t) - (bytes + 1) < first : (uint64_t)bytes < UINTPTR_MAX - first;
}

/* Checks the positions on each axis. Their array must be disjoint from all n_spans outputs. The axis stride becomes 0
 * if all axes share their positions. */
static enum posenc_status check_axes(struct posenc_positions *positions, int32_t n_axes,
                                     const int64_t *shape, const struct span *spans,
                                     int n_spans, const struct position_range *range,
                                     struct posenc_error *error)
{
    enum posenc_status status = POSENC_OK;

    set_token_stride(positions);
    if (positions->kind == POSENC_POSITIONS_OFFSET || n_axes == 1)
        positions->stride_axis = 0;
    if (positions->stride_axis == 0)
        n_axes = 1;
    if (positions->data && !axis_is_addressable(positions, n_axes - 1))
        return posenc_reject_extent(error, posenc_positions_extent);
    for (int32_t axis = 0; axis < n_axes && !status; axis++) {
        if (axis == 1) /* axis 0 alone passed: its errors come first */
            status = posenc_check_axes(positions, n_axes, shape[0], shape[1], error);
        if (status)
            break;
        struct posenc_positions on_axis = posenc_positions_on_axis(positions, axis);
        int checks = on_axis.kind == POSENC_POSITIONS_OFFSET ? 1 : n_spans;
        for (int i = 0; i < checks && !status; i++)
            status = check_tokens(&on_axis, shape, spans[i], range, error);
    }
    return status;
}

/* Returns the positions whose cosines and sines, times the factors of xPos, do not overflow f32. */
static struct position_range freqs_range(const struct posenc_freqs *freqs)
{
    struct position_range range = { -(int64_t)MAX_POSITION, MAX_POSITION, "position of a token",
                                    true };
    if (!freqs->xpos_step)
        return range;
    double reach = freqs->xpos_reach, centre = freqs->xpos_centre;
    if (centre - reach > (double)range.least)
        range.least = (int64_t)ceil(centre - reach);
    if (centre + reach < (double)range.most)
        range.most = (int64_t)floor(centre + reach);
    return range;
}

/* Sinusoidal encodings need frequencies of one axis, or of axes whose sections are side by side. */
static enum posenc_status check_sinusoidal_freqs(const struct posenc_freqs *freqs,
                                                 struct posenc_error *error)
{
    if (!freqs)
        return reject(error, POSENC_ERR_ARGUMENT, "freqs (NULL)");
    if (freqs->view.n_axes != 1 && freqs->section[0] == 0)
        return reject_range(error, POSENC_ERR_ARGUMENT,
                            "axes of the frequencies (several need "
                            "POSENC_MROPE_LAYOUT_QWEN2_VL_VISION, or rope_table)",
                            (double)freqs->view.n_axes, 1.0, 1.0);
    if (freqs->xpos_step)
        return reject_range(error, POSENC_ERR_ARGUMENT,
                            "xPos of the frequencies (for rope_table)", 1.0, 0.0, 0.0);
    return POSENC_OK;
}

enum posenc_status posenc_check_sinusoidal(struct posenc_sinusoidal_args *call, bool takes_x,
                                           struct call_summary *summary,
                                           struct posenc_error *error)
{
    enum posenc_status status = check_sinusoidal_freqs(call->freqs, error);
    if (status)
        return status;
    if ((unsigned)call->layout > POSENC_LAYOUT_COS_SIN)
        return reject_range(error, POSENC_ERR_ARGUMENT, "layout", (double)call->layout,
                            POSENC_LAYOUT_INTERLEAVED, POSENC_LAYOUT_COS_SIN);
    status = posenc_check_finite(call->scale, "scale", error);
    if (!status && call->scale == 0.0)
        status = reject(error, POSENC_ERR_PARAMETER, "scale (0 leaves no encoding)");
    if (!status && takes_x)
        status = posenc_check_finite((double)call->x_scale, "x_scale", error);
    if (status)
        return status;
    const struct activations_rule rule = {
        .takes_x = takes_x, .min_rank = 2, .max_rank = 3, .min_last = 1
    };
    struct checked_tensor out;
    status = posenc_check_activations(&call->x, &call->out, &rule, &out, error);
    if (status)
        return status;
    *summary = (struct call_summary){ out.empty, (unsigned)call->out.dtype };
    status = posenc_require_size(call->out.shape[call->out.rank - 1], call->freqs->view.dim,
                                 "last dimension of out (dim of the frequencies)", error);
    if (status || summary->empty)
        return status;
    posenc_expand_input(&call->x, false);
    posenc_expand_output(&call->out, false);
    const struct position_range range = freqs_range(call->freqs);
    return check_axes(&call->positions, call->freqs->view.n_axes, call->out.shape, &out.span, 1,
                      &range, error);
}

enum posenc_status posenc_check_learned(struct posenc_learned_args *call, bool takes_x,
                                        struct call_summary *summary,
                                        struct posenc_error *error)
{
    (void)takes_x; /* true */
    enum posenc_status status = posenc_check_finite((double)call->x_scale, "x_scale", error);
    if (status)
        return status;
    const struct activations_rule rule = {
        .takes_x = true, .min_rank = 2, .max_rank = 3, .min_last = 1
    };
    struct checked_tensor out;
    status = posenc_check_activations(&call->x, &call->out, &rule, &out, error);
    if (!status)
        status = posenc_check_table(&call->table, &posenc_names_table, false, out.span,
                                    "table (overlaps out)", error);
    if (!status)
        status = posenc_require_size(call->table.shape[1], call->out.shape[call->out.rank - 1],
                                     "last dimension of table (that of out)", error);
    *summary = (struct call_summary){ out.empty, (unsigned)call->out.dtype };
    if (status || summary->empty)
        return status;
    posenc_expand_input(&call->x, false);
    posenc_expand_output(&call->out, false);
    const struct position_range range = table_range(call->table.shape[0]);
    return check_tokens(&call->positions, call->out.shape, out.span, &range, error);
}

/* Without tokens the gradient is zeros, so a call is empty only if out is. */
enum posenc_status posenc_check_learned_grad(struct posenc_learned_grad_args *call,
                                             bool takes_x, struct call_summary *summary,
                                             struct posenc_error *error)
{
    (void)takes_x; /* true */
    const struct tensor_rule out_rule = {
        .names = &posenc_names_out, .min_rank = 2, .max_rank = 2, .min_last = 1
    };
    const struct tensor_rule x_rule = {
        .names = &posenc_names_x, .min_rank = 2, .max_rank = 3, .min_last = 1, .any_dtype = true
    };
    struct checked_tensor out, x;
    enum posenc_status status = posenc_check_output(&call->out, &out_rule, &out, error);
    if (!status)
        status = posenc_check_input(&call->x, &x_rule, &x, error);
    if (!status)
        status = posenc_require_size(call->x.shape[call->x.rank - 1], call->out.shape[1],
                                     "last dimension of x (that of out)", error);
    if (!status)
        status = posenc_check_disjoint(x.span, out.span, "x (overlaps out)", error);
    if (status)
        return status;
    posenc_expand_input(&call->x, false);
    const struct position_range range = table_range(call->out.shape[0]);
    if (x.empty)
        call->x.shape[0] = call->x.shape[1] =
            0; /* kernels need not loop over 2^31 empty batches */
    else
        status = check_tokens(&call->positions, call->x.shape, out.span, &range, error);
    *summary = (struct call_summary){ out.empty, (unsigned)call->x.dtype };
    return status;
}

enum posenc_status posenc_check_rope_table(struct posenc_rope_table_args *call, bool takes_x,
                                           struct call_summary *summary,
                                           struct posenc_error *error)
{
    (void)takes_x; /* false */
    if (!call->freqs)
        return reject(error, POSENC_ERR_ARGUMENT, "freqs (NULL)");
    const struct posenc_freqs_view *view = &call->freqs->view;
    if (view->dim % 2 != 0)
        return reject_value(error, POSENC_ERR_ODD, "dim of the frequencies", (double)view->dim);
    struct tensor_rule rule = {
        .names = &names_cos, .min_rank = 2, .max_rank = 3, .min_last = 1, .any_dtype = true
    };
    struct checked_tensor cosine, sine;
    enum posenc_status status = posenc_check_output(&call->cos, &rule, &cosine, error);
    rule.names = &names_sin;
    if (!status)
        status = posenc_check_output(&call->sin, &rule, &sine, error);
    if (!status)
        status = posenc_require_dtype(call->sin.dtype, call->cos.dtype,
                                      "dtype of sin (that of cos)", error);
    if (!status)
        status = posenc_require_size(call->cos.shape[call->cos.rank - 1], view->n_pairs,
                                     "last dimension of cos (pairs of the frequencies)", error);
    if (status)
        return status;
    if (call->sin.rank != call->cos.rank ||
        memcmp(call->sin.shape, call->cos.shape, (size_t)call->cos.rank * sizeof(int64_t)) != 0)
        return reject(error, POSENC_ERR_SHAPE, "shape of sin (that of cos)");
    *summary = (struct call_summary){ cosine.empty, (unsigned)call->cos.dtype };
    if (summary->empty)
        return POSENC_OK;
    const struct posenc_const_tensor cos = posenc_const_view(call->cos);
    status = posenc_check_overlap(&cos, cosine.span, &call->sin, sine.span, false,
                                  "sin (overlaps cos)", error);
    if (status)
        return status;
    posenc_expand_output(&call->cos, false);
    posenc_expand_output(&call->sin, false);
    const struct position_range range = freqs_range(call->freqs);
    return check_axes(&call->positions, view->n_axes, call->cos.shape,
                      (const struct span[2]){ cosine.span, sine.span }, 2, &range, error);
}

/* A table of cosines and sines, and the channels of a head that it rotates. */
struct rotation_table {
    struct posenc_const_tensor *cos, *sin;
    int64_t rotary_offset, head_dim;
};

/* Checks that cos and sin have one dtype and shape, and that the rotated channels fit into a head. */
static enum posenc_status check_rotation_table(const struct rotation_table *table,
                                               struct span out_span, struct posenc_error *error)
{
    struct posenc_const_tensor *cos = table->cos, *sin = table->sin;
    enum posenc_status status =
        posenc_check_table(cos, &names_cos, true, out_span, "cos (overlaps out)", error);
    if (!status)
        status =
            posenc_check_table(sin, &names_sin, true, out_span, "sin (overlaps out)", error);
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
    int64_t rotary_dim = 2 * cos->shape[1], most = table->head_dim - rotary_dim;
    if (most < 0)
        return reject_range(error, POSENC_ERR_ROTARY_DIM,
                            "rotary_dim, twice the last dimension of cos (head_dim at most)",
                            (double)rotary_dim, 2.0,
                            (double)(table->head_dim - table->head_dim % 2));
    if (table->rotary_offset < 0 || table->rotary_offset > most)
        return reject_range(error, POSENC_ERR_ROTARY_DIM,
                            "rotary_offset (head_dim - rotary_dim at most)",
                            (double)table->rotary_offset, 0.0, (double)most);
    return POSENC_OK;
}

enum posenc_status posenc_check_rope(struct posenc_rope_args *call, bool takes_x,
                                     struct call_summary *summary, struct posenc_error *error)
{
    (void)takes_x; /* true */
    struct checked_tensor out;
    enum posenc_status status =
        posenc_check_activations(&call->x, &call->out, &heads_rule, &out, error);
    if (status)
        return status;
    const struct rotation_table table = { &call->cos, &call->sin, call->rotary_offset,
                                          call->out.shape[call->out.rank - 1] };
    status = check_rotation_table(&table, out.span, error);
    *summary = (struct call_summary){ out.empty,
                                      (unsigned)call->out.dtype | (unsigned)call->cos.dtype };
    if (status || summary->empty)
        return status;
    posenc_expand_input(&call->x, true);
    posenc_expand_output(&call->out, true);
    const struct position_range range = table_range(call->cos.shape[0]);
    return check_tokens(&call->positions, call->out.shape, out.span, &range, error);
}

/* ---- rope_qk_norm ---- */

/* Checks the weight and expands it to [heads, head_dim], with a stride of 0 if heads share it. */
static enum posenc_status check_weight(struct posenc_const_tensor *weight, int64_t heads,
                                       int64_t head_dim, struct span out_span,
                                       struct posenc_error *error)
{
    const struct tensor_rule rule = {
        .names = &names_weight, .min_rank = 1, .max_rank = 2, .min_last = 1
    };
    struct checked_tensor checked;
    enum posenc_status status = posenc_check_input(weight, &rule, &checked, error);
    if (!status)
        status = posenc_check_disjoint(checked.span, out_span, "weight (overlaps out)", error);
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
                                     int64_t head_dim, struct posenc_error *error)
{
    const double min_epsilon = 0x1p-64, max_channels = 0x1p24; /* f32 holds any such count */
    const double channels = (double)head_dim * (double)(call->across_heads ? heads : 1);

    if (!((double)call->epsilon >= min_epsilon && call->epsilon <= FLT_MAX))
        return reject_range(error, POSENC_ERR_PARAMETER, "epsilon", (double)call->epsilon,
                            min_epsilon, (double)FLT_MAX);
    if (channels > max_channels)
        return reject_range(error, POSENC_ERR_SHAPE, "channels of a norm", channels, 1.0,
                            max_channels);
    return posenc_check_finite((double)call->weight_offset, "weight_offset", error);
}

enum posenc_status posenc_check_rope_qk_norm(struct posenc_rope_qk_norm_args *call,
                                             bool takes_x, struct call_summary *summary,
                                             struct posenc_error *error)
{
    (void)takes_x; /* true */
    struct checked_tensor out;
    enum posenc_status status =
        posenc_check_activations(&call->x, &call->out, &heads_rule, &out, error);
    if (status)
        return status;
    const int64_t heads = call->out.shape[call->out.rank - 2],
                  head_dim = call->out.shape[call->out.rank - 1];
    const struct rotation_table table = { &call->cos, &call->sin, call->rotary_offset,
                                          head_dim };
    status = check_norm(call, heads, head_dim, error);
    if (!status)
        status = check_rotation_table(&table, out.span, error);
    if (!status)
        status = check_weight(&call->weight, heads, head_dim, out.span, error);
    *summary = (struct call_summary){ out.empty,
                                      (unsigned)call->out.dtype | (unsigned)call->cos.dtype };
    if (status || summary->empty)
        return status;
    posenc_expand_input(&call->x, true);
    posenc_expand_output(&call->out, true);
    const struct position_range range = table_range(call->cos.shape[0]);
    return check_tokens(&call->positions, call->out.shape, out.span, &range, error);
}

/* ---- Members of the arguments, and their defaults ---- */

/* clang-format off */
DEFAULTS(sinusoidal, .scale = 1.0, .x_scale = 1.0f)
MEMBERS(sinusoidal, "tb", "t", OUT(sinusoidal, out, "btc"), TENSOR(sinusoidal, x, "btc"), POSITIONS(sinusoidal))
DEFAULTS(learned, .x_scale = 1.0f)
MEMBERS(learned, "tb", "t", OUT(learned, out, "btc"), TENSOR(learned, x, "btc"), POSITIONS(learned))
DEFAULTS(learned_grad, .accumulate = false)
MEMBERS(learned_grad, "c", "rt", OUT(learned_grad, out, "rc"), TENSOR(learned_grad, x, "btc"))
DEFAULTS(rope_table, .freqs = NULL)
MEMBERS(rope_table, "tb", "t", OUT(rope_table, cos, "btc"), OUT(rope_table, sin, "btc"), POSITIONS(rope_table))
DEFAULTS(rope, .transpose = false)
MEMBERS(rope, "tbh", "t", OUT(rope, out, "bthc"), TENSOR(rope, x, "bthc"), POSITIONS(rope))
DEFAULTS(rope_qk_norm, .epsilon = 1e-6f)
MEMBERS(rope_qk_norm, "tb", "t", OUT(rope_qk_norm, out, "bthc"), TENSOR(rope_qk_norm, x, "bthc"), POSITIONS(rope_qk_norm))
/* clang-format on */
