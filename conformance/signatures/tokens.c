/*
 * What the signatures share in which the position of a token names a row of a table; and two
 * small functions of all signatures.
 */
#include "shared.h"

int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

void tokens_draw_rows(struct draws *d, struct problem *p, int64_t rows)
{
    p->rows = rows;
    p->tokens = draw(d, 1, MOST_DRAWN_TOKENS);
    p->position_kind = POSENC_POSITIONS_I64;
    for (int64_t t = 0; t < p->tokens; t++)
        d->positions[t] = draw(d, 0, rows - 1);
    p->positions = d->positions;
}

void tokens_length(struct problem *p, int64_t n, int v)
{
    (void)v;
    p->dim = n;
    p->rows = p->tokens + 3;
    p->first = 1;
}

int64_t tokens_rows_used(const struct problem *p)
{
    bool shared = p->position_kind == POSENC_OFFSET || p->batch_shift == 0;
    return lesser(shared ? p->tokens : p->batch * p->tokens, p->rows);
}
