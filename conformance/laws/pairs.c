/*
 * Tables and their pairs: see pairs.h.
 */
#include "pairs.h"

#include <stdlib.h>

const struct call *run_table_at(struct tally *t, const struct problem *p, int64_t first,
                                int64_t tokens)
{
    struct problem at = *p;
    at.first = first;
    at.tokens = tokens;
    return tally_run(t, &at, NULL, NULL);
}

double table_error(const struct problem *p)
{
    double last = (double)(llabs(p->first) + p->tokens);
    if (p->freqs.profile == POSENC_EXACT)
        return TABLE_ERROR;
    double iterated = p->freqs.profile == POSENC_GGML_F32 ? (double)p->freqs.dim / 50.0 : 0.0;
    return TABLE_ERROR + last * (1.0 + iterated) * 0x1p-24;
}

int64_t sine_at(const struct problem *p, int64_t i)
{
    int64_t half = p->freqs.dim / 2;
    return p->layout == POSENC_INTERLEAVED ? 2 * i : p->layout == POSENC_SIN_COS ? i : half + i;
}

int64_t cosine_at(const struct problem *p, int64_t i)
{
    int64_t half = p->freqs.dim / 2;
    return p->layout == POSENC_INTERLEAVED ? 2 * i + 1
           : p->layout == POSENC_SIN_COS   ? half + i
                                           : i;
}

struct pair pair_at(const struct call *table, int64_t r, int64_t i)
{
    const struct problem *p = &table->problem;
    const float *first = call_row(table, 0, r);
    if (table->n_outputs == 2) /* rope_table: cos, sin */
        return (struct pair){ (double)call_row(table, 1, r)[i], (double)first[i] };
    return (struct pair){ (double)first[sine_at(p, i)], (double)first[cosine_at(p, i)] };
}

double pair_product(struct pair a, struct pair b) { return a.s * b.s + a.c * b.c; }
