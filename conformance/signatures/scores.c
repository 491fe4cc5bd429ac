/*
 * What signatures on scores share: shapes of [batch, heads, queries, keys].
 */
#include "shared.h"

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
