/*
 * rope: the rotation of channels of each head by rows of cosines and sines (Su et al.
 * 2104.09864).
 */
#include "shared.h"

static void defaults(struct problem *p)
{
    p->tokens = 7;
    p->heads = 3;
    p->dim = p->rotary_dim = 64;
    p->rows = 16;
}

/* 32 heads of 128 channels (Llama), in place. */
static void footprint(struct problem *p, size_t bytes)
{
    p->heads = 32;
    p->dim = p->rotary_dim = 128;
    p->tokens = p->rows = at_least_one(bytes / storage_size(p->dtype) / (32 * 128));
    p->in_place = true;
}

static void draw_rotation(struct draws *d, struct problem *p)
{
    p->rotary_dim = 2 * draw(d, 1, 12);
    p->rotary_offset = draw(d, 0, 9);
    p->dim = p->rotary_offset + p->rotary_dim + draw(d, 0, 9);
    p->table_dtype = (enum posenc_dtype)draw(d, POSENC_F32, POSENC_BF16);
    p->heads = draw(d, 1, 3);
    p->transpose = draw(d, 0, 1) != 0;
    tokens_draw_rows(d, p, 50);
}

/* 0.5 of the product, as much of the fma or of the other product, and of the sum, which may be
 * twice as large. */
static double most_error(const struct problem *p, bool fused)
{
    (void)p;
    return fused ? 1.5 : 2.0;
}

static enum posenc_status check_rotary_dim(struct call *call)
{
    const struct problem *p = &call->problem;
    if (p->rotary_dim % 2)
        return call_refuse(call, POSENC_ERR_ODD, "rotary_dim", p->rotary_dim, 2, p->dim);
    if (p->rotary_dim < 2 || p->rotary_dim > p->dim)
        return call_refuse(call, POSENC_ERR_ROTARY_DIM, "rotary_dim", p->rotary_dim, 2, p->dim);
    return POSENC_OK;
}

static enum posenc_status filled(struct call *call, bool done)
{
    return done ? POSENC_OK
                : call_refuse(call, POSENC_ERR_MEMORY, "memory for cos and sin",
                              call->problem.rows, 1, 0);
}

static enum posenc_status fill_cos(struct call *call, void *to, int64_t n)
{
    (void)n;
    return filled(call, fill_rotations(&call->problem, to, NULL));
}

static enum posenc_status fill_sin(struct call *call, void *to, int64_t n)
{
    (void)n;
    return filled(call, fill_rotations(&call->problem, NULL, to));
}

/* In place the channels that do not turn need not be touched. */
static int64_t turned(const struct problem *p, const struct tensor_row *row)
{
    (void)row;
    return p->batch * p->tokens * p->heads * (p->in_place ? p->rotary_dim : p->dim);
}

#define ANGLES      .type = TYPE_TABLE, .dims = { DIM_ROW, DIM_PAIR }
#define ACTIVATIONS .dims = { DIM_BATCH, DIM_TOKEN, DIM_HEAD, DIM_CHANNEL }, .moved = turned

const struct signature signature_rope = {
    BLANK(rope),
    .tensors = { { TENSOR(rope, cos), ANGLES, .fill = fill_cos, .pristine = PRISTINE(cos) },
                 { TENSOR(rope, sin), ANGLES, .fill = fill_sin, .pristine = PRISTINE(sin) },
                 { OUT(rope, out), ACTIVATIONS },
                 { X(rope), ACTIVATIONS },
                 POSITIONS(rope) },
    .parameters = { PARAMETER(rope, transpose), PARAMETER(rope, rotary_offset) },
    .channels = MEMBER(dim),
    .turning = MEMBER(rotary_dim),
    .most_error = most_error,
    .copies = true,
    .fields =
        FIELDS_TOKENS "values_dtype table_dtype heads head_dim rotary_dim rotary_offset rows "
                      "transpose recipe",
    .cuts = { DIM_HEAD, DIM_TOKEN, DIM_BATCH },
    .shares = { DIM_TOKEN, DIM_HEAD },
    .defaults = defaults,
    .footprint = footprint,
    .draw = draw_rotation,
    .check = check_rotary_dim,
};
