/* Checks of kernels whose rows belong to queries and keys: biases and terms of attention scores. posenc_check_t5(), for
 * example, rejects a distance of 2^24 as SHAPE. */
#include "checks.h"
#include "members.h"

#include <float.h>
#include <math.h>

static const struct tensor_names names_values = TENSOR_NAMES("values"),
                                 names_c2p = TENSOR_NAMES("c2p"),
                                 names_p2c = TENSOR_NAMES("p2c");

enum { MAX_DISTANCE = (1 << 24) - 1 }; /* f32 holds all whole numbers up to it */

/* Checks that each distance |i + query_offset - j| is at most MAX_DISTANCE. */
static enum posenc_status check_distances(int64_t queries, int64_t keys, int64_t query_offset,
                                          struct posenc_error *error)
{
    int64_t farthest = query_offset;
    if (query_offset >= -MAX_DISTANCE && query_offset <= MAX_DISTANCE) {
        int64_t back = query_offset + queries - 1, ahead = keys - 1 - query_offset;
        farthest = back > ahead ? back : ahead;
    }
    if (farthest >= 0 && farthest <= MAX_DISTANCE)
        return POSENC_OK;
    return reject_range(error, POSENC_ERR_SHAPE, "distance of a query and a key",
                        fabs((double)farthest), 0.0, MAX_DISTANCE);
}

/* Checks scores or a bias, and expands them to [batch, heads, queries, keys]. A bias, which has no x, has at most rank
 * `bias_rank`. */
static enum posenc_status check_scores(struct posenc_const_tensor *x, struct posenc_tensor *out,
                                       bool takes_x, int bias_rank, float x_scale,
                                       struct checked_tensor *checked,
                                       struct posenc_error *error)
{
    const struct activations_rule rule = { .takes_x = takes_x,
                                           .min_rank = 3,
                                           .max_rank = takes_x ? 4 : bias_rank };
    enum posenc_status status = POSENC_OK;
    *checked = (struct checked_tensor){ { 0, 0 }, false };
    if (takes_x)
        status = posenc_check_finite((double)x_scale, "x_scale", error);
    if (!status)
        status = posenc_check_activations(x, out, &rule, checked, error);
    if (status)
        return status;
    posenc_expand_input(x, true);
    posenc_expand_output(out, true);
    return POSENC_OK;
}

/* Checks an f32 table of which one dimension, 0 or 1, has the heads of out. */
static enum posenc_status check_head_table(struct posenc_const_tensor *table,
                                           const struct tensor_names *names, int dimension,
                                           const struct posenc_tensor *out,
                                           struct span out_span, struct posenc_error *error)
{
    enum posenc_status status =
        posenc_check_table(table, names, false, out_span,
                           dimension ? "table (overlaps out)" : "values (overlap out)", error);
    return status ? status
                  : posenc_require_size(table->shape[dimension], out->shape[1],
                                        dimension ? "last dimension of table (heads of out)"
                                                  : "rows of values (heads of out)",
                                        error);
}

/* The loop has no branch, so that compilers vectorise it. */
static bool are_finite(const float *values, int64_t n)
{
    int invalid = 0;
    for (int64_t i = 0; i < n; i++)
        invalid |= !(fabsf(values[i]) <= FLT_MAX);
    return !invalid;
}

static enum posenc_status check_slopes(const struct posenc_alibi_args *call, int64_t batches,
                                       struct posenc_error *error)
{
    int64_t heads = call->out.shape[1];
    for (int64_t b = 0; b < batches; b++) {
        const float *slopes = call->slopes + b * call->slopes_stride_batch;
        if (are_finite(slopes, heads))
            continue;
        for (int64_t h = 0; h < heads; h++) {
            enum posenc_status status =
                posenc_check_finite((double)slopes[h], "slope of a head", error);
            if (status)
                return status;
        }
    }
    return POSENC_OK;
}

enum posenc_status posenc_check_alibi(struct posenc_alibi_args *call, bool takes_x,
                                      struct call_summary *summary, struct posenc_error *error)
{
    struct checked_tensor out;
    enum posenc_status status =
        check_scores(&call->x, &call->out, takes_x, 4, call->x_scale, &out, error);
    *summary = (struct call_summary){ out.empty, (unsigned)call->out.dtype };
    if (status || summary->empty)
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
        status = posenc_check_disjoint(span, out.span, "slopes (overlap out)", error);
    return status ? status : check_slopes(call, batches, error);
}

/* Returns true if thresholds[1], ..., which begin at 1 or more, never decrease. */
static bool are_ascending(const int32_t *thresholds, int64_t n)
{
    int invalid = thresholds[1] < 1;
    for (int64_t b = 2; b < n; b++)
        invalid |= thresholds[b] < thresholds[b - 1];
    return !invalid;
}

/* Checks that thresholds[0] is 0 and that the others are ascending, from 1 or more. */
static enum posenc_status check_thresholds(const struct posenc_t5_buckets *buckets,
                                           struct span out_span, struct posenc_error *error)
{
    const int32_t *thresholds = buckets->thresholds;
    int64_t n = buckets->bidirectional ? buckets->num_buckets / 2 : buckets->num_buckets;
    struct span span;
    enum posenc_status status = posenc_check_array(
        thresholds, n, sizeof(int32_t), "thresholds (NULL or not aligned)", &span, error);
    if (!status)
        status = posenc_check_disjoint(span, out_span, "thresholds (overlap out)", error);
    if (status)
        return status;
    if (thresholds[0] != 0)
        return reject_range(error, POSENC_ERR_PARAMETER, "threshold of bucket 0", thresholds[0],
                            0.0, 0.0);
    if (are_ascending(thresholds, n)) /* n is at least 2 */
        return POSENC_OK;
    for (int64_t b = 1, least = 1; b < n; least = thresholds[b++])
        if (thresholds[b] < least)
            return reject_range(error, POSENC_ERR_PARAMETER,
                                "threshold of a bucket (at least 1 and that of the one before)",
                                thresholds[b], (double)least, INT32_MAX);
    return POSENC_OK;
}

enum posenc_status posenc_check_t5(struct posenc_t5_args *call, bool takes_x,
                                   struct call_summary *summary, struct posenc_error *error)
{
    enum { MAX_BUCKETS = 4096 };
    if ((call->buckets.reserved[0] | call->buckets.reserved[1]) != 0)
        return reject(error, POSENC_ERR_ARGUMENT, "reserved members of the buckets (not 0)");
    int64_t least = call->buckets.bidirectional ? 4 : 2;
    if (call->buckets.num_buckets < least || call->buckets.num_buckets > MAX_BUCKETS)
        return reject_range(error, POSENC_ERR_SHAPE, "num_buckets",
                            (double)call->buckets.num_buckets, (double)least, MAX_BUCKETS);
    if (call->buckets.bidirectional && call->buckets.num_buckets % 2 != 0)
        return reject_value(error, POSENC_ERR_SHAPE, "num_buckets (even when bidirectional)",
                            (double)call->buckets.num_buckets);
    struct checked_tensor out;
    enum posenc_status status =
        check_scores(&call->x, &call->out, takes_x, 3, call->x_scale, &out, error);
    *summary = (struct call_summary){ out.empty, (unsigned)call->out.dtype };
    if (status || summary->empty)
        return status;
    status = check_distances(call->out.shape[2], call->out.shape[3], call->query_offset, error);
    if (!status)
        status =
            check_head_table(&call->table, &posenc_names_table, 1, &call->out, out.span, error);
    if (!status)
        status = posenc_require_size(call->table.shape[0], call->buckets.num_buckets,
                                     "rows of table (num_buckets)", error);
    return status ? status : check_thresholds(&call->buckets, out.span, error);
}

/* Checks that `values` covers all distances of the call: [first, first + n). */
static enum posenc_status check_value_range(const struct posenc_distance_args *call,
                                            struct posenc_error *error)
{
    int64_t n = call->values.shape[1];
    int64_t least = call->query_offset - (call->out.shape[3] - 1);
    int64_t most = call->query_offset + call->out.shape[2] - 1;
    if (call->first > least || call->first < -(int64_t)INT32_MAX)
        return reject_range(error, POSENC_ERR_SHAPE,
                            "first (the least distance of the call at most)",
                            (double)call->first, -(double)INT32_MAX, (double)least);
    if (most - call->first >= n)
        return reject_range(error, POSENC_ERR_SHAPE,
                            "last dimension of values (up to the largest distance of the call)",
                            (double)n, (double)(most - call->first + 1), (double)INT32_MAX);
    return POSENC_OK;
}

enum posenc_status posenc_check_distance(struct posenc_distance_args *call, bool takes_x,
                                         struct call_summary *summary,
                                         struct posenc_error *error)
{
    struct checked_tensor out;
    enum posenc_status status =
        check_scores(&call->x, &call->out, takes_x, 3, call->x_scale, &out, error);
    *summary = (struct call_summary){ out.empty, (unsigned)call->out.dtype };
    if (status || summary->empty)
        return status;
    status = check_distances(call->out.shape[2], call->out.shape[3], call->query_offset, error);
    if (!status)
        status = check_head_table(&call->values, &names_values, 0, &call->out, out.span, error);
    return status ? status : check_value_range(call, error);
}

enum posenc_status posenc_check_window(struct posenc_window_args *call, bool takes_x,
                                       struct call_summary *summary, struct posenc_error *error)
{
    struct checked_tensor out;
    enum posenc_status status =
        check_scores(&call->x, &call->out, takes_x, 3, call->x_scale, &out, error);
    *summary = (struct call_summary){ out.empty, (unsigned)call->out.dtype };
    if (status || summary->empty)
        return status;
    status =
        check_head_table(&call->table, &posenc_names_table, 1, &call->out, out.span, error);
    if (status)
        return status;
    int64_t n = call->out.shape[2] * call->out.shape[3]; /* no overflow: out is in memory */
    return posenc_check_index(call->index, n, call->table.shape[0], out.span, error);
}

/* Checks c2p or p2c, the terms of `rows` queries or keys. It must have the rank and dtype of out and be disjoint from
 * it. */
static enum posenc_status check_term(struct posenc_const_tensor *term,
                                     const struct tensor_names *names, int rank, int64_t rows,
                                     const struct posenc_tensor *out, struct span out_span,
                                     struct posenc_error *error)
{
    const struct tensor_rule rule = {
        .names = names, .min_rank = rank, .max_rank = rank, .min_last = 1, .any_dtype = true
    };
    struct checked_tensor checked;
    enum posenc_status status = posenc_check_input(term, &rule, &checked, error);
    if (!status)
        status = posenc_require_dtype(term->dtype, out->dtype, names->dtype, error);
    if (status)
        return status;
    posenc_expand_input(term, true);
    for (int i = 0; i < 3 && !status; i++)
        status = posenc_require_size(term->shape[i], i < 2 ? out->shape[i] : rows, names->size,
                                     error);
    return status ? status
                  : posenc_check_disjoint(checked.span, out_span, "c2p or p2c (overlap out)",
                                          error);
}

enum posenc_status posenc_check_relative(struct posenc_relative_args *call, bool takes_x,
                                         struct call_summary *summary,
                                         struct posenc_error *error)
{
    struct checked_tensor out;
    int rank = call->out.rank;
    enum posenc_status status = posenc_check_finite((double)call->scale, "scale", error);
    if (!status)
        status = check_scores(&call->x, &call->out, takes_x, 4, call->x_scale, &out, error);
    if (status)
        return status;
    *summary = (struct call_summary){ out.empty, (unsigned)call->out.dtype };
    bool has_c2p = call->c2p.data, has_p2c = call->p2c.data;
    if (summary->empty)
        return POSENC_OK;
    if (!has_c2p && !has_p2c)
        return reject(error, POSENC_ERR_ARGUMENT, "c2p and p2c (both NULL)");
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

/* Without keys the sums are zeros, so a call is empty only if out is. */
enum posenc_status posenc_check_relative_sum(struct posenc_relative_sum_args *call,
                                             bool takes_x, struct call_summary *summary,
                                             struct posenc_error *error)
{
    (void)takes_x; /* true */
    struct tensor_rule rule = { .names = &posenc_names_out,
                                .min_rank = 3,
                                .max_rank = 4,
                                .min_last = 1,
                                .any_dtype = true };
    struct checked_tensor out, x;
    enum posenc_status status = posenc_check_output(&call->out, &rule, &out, error);
    int rank = call->out.rank;
    rule.names = &posenc_names_x;
    rule.min_rank = rule.max_rank = rank;
    rule.min_last = 0;
    if (!status)
        status = posenc_check_input(&call->x, &rule, &x, error);
    if (!status)
        status = posenc_require_dtype(call->x.dtype, call->out.dtype,
                                      "dtype of x (that of out)", error);
    for (int i = 0; !status && i < rank - 1; i++)
        status = posenc_require_size(call->x.shape[i], call->out.shape[i], posenc_names_x.shape,
                                     error);
    if (!status)
        status = posenc_check_disjoint(x.span, out.span, "x (overlaps out)", error);
    if (status)
        return status;
    *summary = (struct call_summary){ out.empty, (unsigned)call->out.dtype };
    posenc_expand_input(&call->x, true);
    posenc_expand_output(&call->out, true);
    if (out.empty || x.empty)
        return POSENC_OK;
    return posenc_check_index(call->index, call->x.shape[2] + call->x.shape[3] - 1,
                              call->out.shape[3], out.span, error);
}

/* ---- Members of the arguments, and their defaults ---- */

/* clang-format off */
DEFAULTS(alibi, .x_scale = 1.0f)
MEMBERS(alibi, "hbi", "i", OUT(alibi, out, "bhij"), TENSOR(alibi, x, "bhij"), SLOPES, QUERY_OFFSET(alibi))
DEFAULTS(t5, .x_scale = 1.0f)
MEMBERS(t5, "hbi", "i", OUT(t5, out, "bhij"), TENSOR(t5, x, "bhij"), TENSOR(t5, table, ".h"), QUERY_OFFSET(t5))
DEFAULTS(distance, .x_scale = 1.0f)
MEMBERS(distance, "hbi", "i", OUT(distance, out, "bhij"), TENSOR(distance, x, "bhij"), TENSOR(distance, values, "h."), QUERY_OFFSET(distance))
DEFAULTS(window, .x_scale = 1.0f)
MEMBERS(window, "hbi", "i", OUT(window, out, "bhij"), TENSOR(window, x, "bhij"), TENSOR(window, table, ".h"), ARRAY(window, index, "ij"))
DEFAULTS(relative, .scale = 1.0f, .x_scale = 1.0f)
MEMBERS(relative, "hbi", "i", OUT(relative, out, "bhij"), TENSOR(relative, x, "bhij"), TENSOR(relative, c2p, "bhi."), TENSOR(relative, p2c, "bhj."), ARRAY(relative, index, "i"))
DEFAULTS(relative_sum, .index = NULL)
MEMBERS(relative_sum, "hbi", "i", OUT(relative_sum, out, "bhic"), TENSOR(relative_sum, x, "bhij"), ARRAY(relative_sum, index, "i"))
/* clang-format on */
