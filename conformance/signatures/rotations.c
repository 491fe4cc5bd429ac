/*
 * What signatures share that turn pairs of a head's channels by rows of cosines and sines.
 */
#include "shared.h"

void rotations_draw(struct draws *d, struct problem *p)
{
    p->rotary_dim = 2 * draw(d, 1, 12);
    p->rotary_offset = draw(d, 0, 9);
    p->dim = p->rotary_offset + p->rotary_dim + draw(d, 0, 9);
    p->table_dtype = (enum posenc_dtype)draw(d, POSENC_F32, POSENC_BF16);
    p->heads = draw(d, 1, 3);
}

void rotations_length(struct problem *p, int64_t n, int v)
{
    static const int64_t tails[] = { 0, 3, 1, 0 };
    tokens_length(p, n, v);
    p->rotary_dim = 2 * n;
    p->rotary_offset = v == 2 ? n % 3 : 0;
    p->dim = p->rotary_offset + 2 * n + tails[v];
    p->heads = 1 + v % 3;
    p->transpose = v == 1;
}

enum posenc_status rotations_check(struct call *call)
{
    const struct problem *p = &call->problem;
    if (p->rotary_dim % 2)
        return call_refuse(call, POSENC_ERR_ODD, "rotary_dim", p->rotary_dim, 2, p->dim);
    if (p->rotary_dim < 2 || p->rotary_dim > p->dim)
        return call_refuse(call, POSENC_ERR_ROTARY_DIM, "rotary_dim", p->rotary_dim, 2, p->dim);
    return POSENC_OK;
}

static enum posenc_status fill_angles(struct call *call, bool sines, void *to)
{
    return fill_rotation(&call->problem, sines, to)
               ? POSENC_OK
               : call_refuse(call, POSENC_ERR_MEMORY, "memory for cos and sin",
                             call->problem.rows, 1, 0);
}

enum posenc_status rotations_fill_cos(struct call *call, void *to, int64_t n)
{
    (void)n;
    return fill_angles(call, false, to);
}

enum posenc_status rotations_fill_sin(struct call *call, void *to, int64_t n)
{
    (void)n;
    return fill_angles(call, true, to);
}
