/*
 * What signatures on scores share: shapes of [batch, heads, queries, keys].
 */
#include "shared.h"

void scores_defaults(struct problem *p)
{
    p->heads = 4;
    p->queries = 5;
    p->keys = 9;
    p->query_offset = 4;
}

void scores_draw(struct draws *d, struct problem *p)
{
    p->heads = draw(d, 1, 3);
    p->queries = draw(d, 1, 9);
    p->keys = draw(d, 1, 40);
    p->query_offset = draw(d, -700, 700);
}

void scores_length(struct problem *p, int64_t n, int v)
{
    p->heads = 3;
    p->keys = n;
    p->queries = 1 + v;
    p->query_offset = v == 3 ? -2 : n - p->queries;
    p->causal = v & 1;
    p->bidirectional = !(v & 1);
    p->num_buckets = 8;
    p->max_distance = 20;
}

void scores_footprint(struct problem *p, size_t bytes)
{
    const int64_t per_head = (int64_t)(bytes / storage_size(p->dtype)) / p->heads;
    p->keys = per_head < 1 ? 1 : lesser(per_head, 2048);
    p->queries = per_head < p->keys ? 1 : per_head / p->keys;
    p->query_offset = p->keys > p->queries ? p->keys - p->queries : 0;
    p->batch = 1;
    p->in_place = kernel_in_place(p->kernel);
}
