/* The checks of what goes by queries and keys: biases and terms of attention. */
#include "checks.h"

#include <float.h>
#include <math.h>

static const struct tensor_names names_values = TENSOR_NAMES("values"),
                                 names_c2p = TENSOR_NAMES("c2p"),
                                 names_p2c = TENSOR_NAMES("p2c");

enum { MOST_DISTANCE = (1 << 24) - 1 }; /* f32 holds it */

/* Every |i + query_offset - j|. */
static enum posenc_status check_distances(int64_t queries, int64_t keys, int64_t query_offset,
                                          struct posenc_error *error)
{
    int64_t farthest = query_offset;
    if (query_offset >= -MOST_DISTANCE && query_offset <= MOST_DISTANCE) {
        int64_t back = query_offset + queries - 1, ahead = keys - 1 - query_offset;
        farthest = back > ahead ? back : ahead;
    }
    if (farthest >= 0 && farthest <= MOST_DISTANCE)
        return POSENC_OK;
    return posenc_refuse(error, POSENC_ERR_SHAPE, "distance of a query and a key",
                         fabs((double)farthest), 0.0, MOST_DISTANCE);
}

/* Scores or a bias, to [batch, heads, queries, keys]; without x at most of rank `bias_rank`. */
static enum posenc_status check_scores(struct posenc_const_tensor *x, struct posenc_tensor *out,
                                       bool takes_x, int bias_rank, float x_scale,
                                       struct checked *checked, struct posenc_error *error)
{
    const struct activations_rule rule = { takes_x, 3, takes_x ? 4 : bias_rank, 0 };
    enum posenc_status status = POSENC_OK;
    *checked = (struct checked){ { 0, 0 }, false };
    if (takes_x)
        status = posenc_check_finite((double)x_scale, "x_scale", error);
    if (!status)
        status = posenc_check_activations(x, out, &rule, checked, error);
    if (status)
        return status;
    posenc_raise_input(x, true);
    posenc_raise_output(out, true);
    return POSENC_OK;
}

/* An f32 table whose columns, or rows, are the heads of out. */
static enum posenc_status check_heads(struct posenc_const_tensor *table,
                                      const struct tensor_names *names, int dimension,
                                      const struct posenc_tensor *out, struct span out_span,
                                      struct posenc_error *error)
{
    enum posenc_status status =
        posenc_check_rows(table, names, false, out_span,
                          dimension ? "table (overlaps out)" : "values (overlap out)", error);
    return status ? status
                  : posenc_require_size(table->shape[dimension], out->shape[1],
                                        dimension ? "last dimension of table (heads of out)"
                                                  : "rows of values (heads of out)",
                                        error);
}

/* All of them, without a branch for each. */
static bool are_finite(const float *values, int64_t n)
{
    int bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad |= !(fabsf(values[i]) <= FLT_MAX);
    return !bad;
}

static enum posenc_status check_slopes(const struct posenc_alibi_args *call, int64_t batches)
{
    int64_t heads = call->out.shape[1];
    for (int64_t b = 0; b < batches; b++) {
        const float *slopes = call->slopes + b * call->slopes_stride_batch;
        if (are_finite(slopes, heads))
            continue;
        for (int64_t h = 0; h < heads; h++) {
            enum posenc_status status =
                posenc_check_finite((double)slopes[h], "slope of a head", call->error);
            if (status)
                return status;
        }
    }
    return POSENC_OK;
}

enum posenc_status posenc_check_alibi(struct posenc_alibi_args *call, bool takes_x,
                                      struct accepted *accepted)
{
    struct posenc_error *error = call->error;
    struct checked out;
    enum posenc_status status =
        check_scores(&call->x, &call->out, takes_x, 4, call->x_scale, &out, error);
    *accepted = (struct accepted){ out.empty, call->out.dtype };
    if (status || accepted->empty)
        return status;
    status = check_distances(call->out.shape[2], call->out.shape[3], call->query_offset, error);
    if (status)
        return status;
    int64_t heads = call->out.shape[1];
    if (call->out.shape[0] == 1)
        call->slopes_stride_batch = 0;
    int64_t batches = call->slopes_stride_batch == 0 ? 1 : call->out.shape[0];
    struct span span;
    status = posenc_check_arrays(call->slopes, batches, call->slopes_stride_batch, heads,
                                 sizeof(float), "slopes (NULL or not aligned)", &span, error);
    if (!status)
        status = posenc_check_apart(span, out.span, "slopes (overlap out)", error);
    return status ? status : check_slopes(call, batches);
}

/* From 1 on, without a branch for each. */
static bool are_in_order(const int32_t *thresholds, int64_t n)
{
    int bad = thresholds[1] < 1;
    for (int64_t b = 2; b < n; b++)
        bad |= thresholds[b] < thresholds[b - 1];
    return !bad;
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
    if (are_in_order(call->thresholds, n)) /* n is 2 at least */
        return POSENC_OK;
    for (int64_t b = 1, least = 1; b < n; least = call->thresholds[b++])
        if (call->thresholds[b] < least)
            return posenc_refuse(
                error, POSENC_ERR_PARAMETER,
                "threshold of a bucket (at least 1 and that of the one before)",
                call->thresholds[b], (double)least, INT32_MAX);
    return POSENC_OK;
}

enum posenc_status posenc_check_t5(struct posenc_t5_args *call, bool takes_x,
                                   struct accepted *accepted)
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
    struct checked out;
    enum posenc_status status =
        check_scores(&call->x, &call->out, takes_x, 3, call->x_scale, &out, error);
    *accepted = (struct accepted){ out.empty, call->out.dtype };
    if (status || accepted->empty)
        return status;
    status = check_distances(call->out.shape[2], call->out.shape[3], call->query_offset, error);
    if (!status)
        status = check_heads(&call->table, &posenc_names_table, 1, &call->out, out.span, error);
    if (!status)
        status = posenc_require_size(call->table.shape[0], call->num_buckets,
                                     "rows of table (num_buckets)", error);
    return status ? status : check_thresholds(call, out.span);
}

/* Distances of the call in [first, first + n). */
static enum posenc_status check_values(const struct posenc_distance_args *call)
{
    int64_t n = call->values.shape[1];
    int64_t least = call->query_offset - (call->out.shape[3] - 1);
    int64_t most = call->query_offset + call->out.shape[2] - 1;
    if (call->first > least || call->first < -(int64_t)INT32_MAX)
        return posenc_refuse(call->error, POSENC_ERR_SHAPE,
                             "first (the least distance of the call at most)",
                             (double)call->first, -(double)INT32_MAX, (double)least);
    if (most - call->first >= n)
        return posenc_refuse(
            call->error, POSENC_ERR_SHAPE,
            "last dimension of values (up to the largest distance of the call)", (double)n,
            (double)(most - call->first + 1), (double)INT32_MAX);
    return POSENC_OK;
}

enum posenc_status posenc_check_distance(struct posenc_distance_args *call, bool takes_x,
                                         struct accepted *accepted)
{
    struct posenc_error *error = call->error;
    struct checked out;
    enum posenc_status status =
        check_scores(&call->x, &call->out, takes_x, 3, call->x_scale, &out, error);
    *accepted = (struct accepted){ out.empty, call->out.dtype };
    if (status || accepted->empty)
        return status;
    status = check_distances(call->out.shape[2], call->out.shape[3], call->query_offset, error);
    if (!status)
        status = check_heads(&call->values, &names_values, 0, &call->out, out.span, error);
    return status ? status : check_values(call);
}

enum posenc_status posenc_check_window(struct posenc_window_args *call, bool takes_x,
                                       struct accepted *accepted)
{
    struct posenc_error *error = call->error;
    struct checked out;
    enum posenc_status status =
        check_scores(&call->x, &call->out, takes_x, 3, call->x_scale, &out, error);
    *accepted = (struct accepted){ out.empty, call->out.dtype };
    if (status || accepted->empty)
        return status;
    status = check_heads(&call->table, &posenc_names_table, 1, &call->out, out.span, error);
    if (status)
        return status;
    int64_t n = call->out.shape[2] * call->out.shape[3]; /* no overflow: out is in memory */
    return posenc_check_index(call->index, n, call->table.shape[0], out.span, error);
}

/* c2p or p2c: terms of `rows` queries or keys, apart from out, whose rank and type it has. */
static enum posenc_status check_term(struct posenc_const_tensor *term,
                                     const struct tensor_names *names, int rank, int64_t rows,
                                     const struct posenc_tensor *out, struct span out_span,
                                     struct posenc_error *error)
{
    const struct tensor_rule rule = { .names = names,
                                      .least_rank = rank,
                                      .most_rank = rank,
                                      .least_last = 1,
                                      .any_dtype = true };
    struct checked checked;
    enum posenc_status status = posenc_check_input(term, &rule, &checked, error);
    if (!status)
        status = posenc_require_dtype(term->dtype, out->dtype, names->dtype, error);
    if (status)
        return status;
    posenc_raise_input(term, true);
    for (int i = 0; i < 3 && !status; i++)
        status = posenc_require_size(term->shape[i], i < 2 ? out->shape[i] : rows, names->size,
                                     error);
    return status
               ? status
               : posenc_check_apart(checked.span, out_span, "c2p or p2c (overlap out)", error);
}

enum posenc_status posenc_check_relative(struct posenc_relative_args *call, bool takes_x,
                                         struct accepted *accepted)
{
    struct posenc_error *error = call->error;
    struct checked out;
    int rank = call->out.rank;
    enum posenc_status status = posenc_check_finite((double)call->scale, "scale", error);
    if (!status)
        status = check_scores(&call->x, &call->out, takes_x, 4, call->x_scale, &out, error);
    if (status)
        return status;
    *accepted = (struct accepted){ out.empty, call->out.dtype };
    bool has_c2p = call->c2p.data, has_p2c = call->p2c.data;
    if (accepted->empty)
        return POSENC_OK;
    if (!has_c2p && !has_p2c)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, "c2p and p2c (both NULL)", 0.0, 1.0,
                             0.0);
    if (has_c2p)
        status = check_term(&call->c2p, &names_c2p, rank, call->out.shape[2], &call->out,
                            out.span, error);
    else
        call->c2p = (struct posenc_const_tensor){ 0 };
    if (!status && has_p2c)
        status = check_term(&call->p2c, &names_p2c, rank, call->out.shape[3], &call->out,
                            out.span, error);
    else if (!status)
        call->p2c = (struct posenc_const_tensor){ 0 };
    if (status)
        return status;
    int64_t columns = has_c2p ? call->c2p.shape[3] : call->p2c.shape[3];
    if (has_p2c)
        status = posenc_require_size(call->p2c.shape[3], columns,
                                     "last dimension of p2c (that of c2p)", error);
    return status ? status
                  : posenc_check_index(call->index, call->out.shape[2] + call->out.shape[3] - 1,
                                       columns, out.span, error);
}

/* Without keys there are still sums: zeros. */
enum posenc_status posenc_check_relative_sum(struct posenc_relative_sum_args *call,
                                             bool takes_x, struct accepted *accepted)
{
    (void)takes_x; /* always */
    struct posenc_error *error = call->error;
    const struct tensor_rule out_rule = { .names = &posenc_names_out,
                                          .least_rank = 3,
                                          .most_rank = 4,
                                          .least_last = 1,
                                          .any_dtype = true };
    struct checked out, x;
    enum posenc_status status = posenc_check_output(&call->out, &out_rule, &out, error);
    int rank = call->out.rank;
    const struct tensor_rule x_rule = { .names = &posenc_names_x,
                                        .least_rank = rank,
                                        .most_rank = rank,
                                        .least_last = 0,
                                        .any_dtype = true };
    if (!status)
        status = posenc_check_input(&call->x, &x_rule, &x, error);
    if (!status)
        status = posenc_require_dtype(call->x.dtype, call->out.dtype,
                                      "dtype of x (that of out)", error);
    for (int i = 0; !status && i < rank - 1; i++)
        status = posenc_require_size(call->x.shape[i], call->out.shape[i], posenc_names_x.shape,
                                     error);
    if (!status)
        status = posenc_check_apart(x.span, out.span, "x (overlaps out)", error);
    if (status)
        return status;
    *accepted = (struct accepted){ out.empty, call->out.dtype };
    posenc_raise_input(&call->x, true);
    posenc_raise_output(&call->out, true);
    if (out.empty || x.empty)
        return POSENC_OK;
    return posenc_check_index(call->index, call->x.shape[2] + call->x.shape[3] - 1,
                              call->out.shape[3], out.span, error);
}
