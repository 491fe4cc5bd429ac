/* Functions that several signatures share (see shared.h). */
#include "shared.h"

int64_t signature_min(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t signature_used_rows(const struct problem *p)
{
    bool shared = p->position_kind == POSENC_POSITIONS_OFFSET || p->batch_shift == 0;
    return signature_min(shared ? p->tokens : p->batch * p->tokens, p->rows);
}

bool signature_check_rotation(struct call *call)
{
    const struct problem *p = &call->problem;
    const enum posenc_status odd = p->rotary_dim % 2 ? POSENC_ERR_ODD : POSENC_OK;
    const int64_t most = p->dim - (p->dim & 1);
    return call_check_range(call, POSENC_ERR_SHAPE, "head_dim", p->dim, 2, INT32_MAX) &&
           call_check(call, odd, "rotary_dim", p->rotary_dim, 2, most) &&
           call_check_range(call, POSENC_ERR_ROTARY_DIM, "rotary_dim", p->rotary_dim, 2, most);
}

/* ---- Columns by relative position ---- */

int64_t signature_columns(const struct problem *p)
{
    if (p->relative == RELATIVE_DEBERTA)
        return 2 * (p->num_buckets ? p->num_buckets : p->max_distance);
    return p->relative == RELATIVE_SHAW ? 2 * p->max_distance + 1 : p->keys;
}

static int64_t one_at_least(int64_t n) { return n > 0 ? n : 1; }

int64_t signature_index_size(const struct problem *p)
{
    return problem_count_distances(one_at_least(p->queries), one_at_least(p->keys));
}

bool signature_fill_index(struct call *call, void *index, int64_t n)
{
    const struct problem *p = &call->problem;
    const struct implementation *by = call->implementation;
    const int64_t queries = one_at_least(p->queries), keys = one_at_least(p->keys),
                  offset = p->query_offset, most = p->max_distance, end = p->keys - p->queries;
    call->columns = signature_columns(p);
    if (p->relative == RELATIVE_TRANSFORMER_XL &&
        !call_check_range(call, POSENC_ERR_ARGUMENT, "query_offset of Transformer-XL", offset,
                          end, end))
        return false;
    struct posenc_error *error = &call->error;
    enum posenc_status status;
    if (p->relative == RELATIVE_DEBERTA)
        status = by->deberta_index(queries, keys, offset, p->num_buckets, most, index, error);
    else if (p->relative == RELATIVE_SHAW)
        status = by->shaw_index(queries, keys, offset, most, index, error);
    else
        status = by->transformer_xl_index(queries, keys, index, error);
    for (int64_t i = 0; i < n && p->scattered && status == POSENC_OK; i++)
        ((int32_t *)index)[i] = (int32_t)problem_scattered_index(p, i, call->columns);
    return status == POSENC_OK;
}
