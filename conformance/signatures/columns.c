/*
 * What relative and relative_sum share: columns by relative position, those of DeBERTa, Shaw and
 * Transformer-XL.
 */
#include "shared.h"

void columns_draw(struct draws *d, struct problem *p)
{
    static const int64_t sizes[][2] = {
        { 256, 512 }, { 32, 128 }, { 4, 6 }, { 8, 257 }, { 0, 20 }
    };
    const int64_t *size = sizes[draw(d, 0, 4)];
    scores_draw(d, p);
    p->relative = (enum relative)draw(d, RELATIVE_DEBERTA, RELATIVE_TRANSFORMER_XL);
    p->num_buckets = p->relative == RELATIVE_DEBERTA ? size[0] : 0;
    p->max_distance = p->relative == RELATIVE_DEBERTA ? size[1] : draw(d, 1, 20);
    if (p->relative == RELATIVE_SHAW)
        p->query_offset /= 40;
    if (p->relative == RELATIVE_TRANSFORMER_XL)
        p->query_offset = p->keys - p->queries;
}

int64_t columns_of(const struct problem *p)
{
    switch (p->relative) {
    case RELATIVE_DEBERTA:
        return 2 * (p->num_buckets ? p->num_buckets : p->max_distance);
    case RELATIVE_SHAW:
        return 2 * p->max_distance + 1;
    case RELATIVE_TRANSFORMER_XL:
        break;
    }
    return p->keys;
}

static int64_t one_at_least(int64_t n) { return n > 0 ? n : 1; }

int64_t columns_index_size(const struct problem *p)
{
    return problem_distances(one_at_least(p->queries), one_at_least(p->keys));
}

int64_t columns_index_moved(const struct problem *p, const struct tensor_row *row)
{
    (void)row;
    return problem_distances(p->queries, p->keys);
}

enum posenc_status columns_fill_index(struct call *call, void *index, int64_t n)
{
    const struct problem *p = &call->problem;
    const int64_t queries = one_at_least(p->queries), keys = one_at_least(p->keys);
    enum posenc_status status = POSENC_OK;
    (void)n;
    switch (p->relative) {
    case RELATIVE_DEBERTA:
        status = call_subject(call)->deberta_index(queries, keys, p->query_offset,
                                                   p->num_buckets, p->max_distance, index);
        break;
    case RELATIVE_SHAW:
        status = call_subject(call)->shaw_index(queries, keys, p->query_offset, p->max_distance,
                                                index);
        break;
    case RELATIVE_TRANSFORMER_XL:
        if (p->query_offset != p->keys - p->queries)
            return call_refuse(call, POSENC_ERR_ARGUMENT, "query_offset of Transformer-XL",
                               p->query_offset, p->keys - p->queries, p->keys - p->queries);
        status = call_subject(call)->transformer_xl_index(queries, keys, index);
        break;
    }
    if (status != POSENC_OK)
        return call_refuse(call, status, "max_distance, num_buckets or a distance",
                           p->max_distance, 1, 1 << 20);
    call->columns = columns_of(p);
    return POSENC_OK;
}
