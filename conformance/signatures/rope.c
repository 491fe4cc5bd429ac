/*
 * rope: the rotation of channels of each head by rows of cosines and sines (Su et al.
 * 2104.09864).
 */
#include "shared.h"

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
    rotations_draw(d, p);
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

/* In place the channels that do not turn need not be touched. */
static int64_t turned(const struct problem *p, const struct tensor_row *row)
{
    (void)row;
    return p->batch * p->tokens * p->heads * (p->in_place ? p->rotary_dim : p->dim);
}

#define ACTIVATIONS .dims = { DIM_BATCH, DIM_TOKEN, DIM_HEAD, DIM_CHANNEL }, .moved = turned

const struct signature signature_rope = {
    BLANK(rope),
    .tensors = { ANGLES(rope, cos),
                 ANGLES(rope, sin),
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
    .defaults = rotations_defaults,
    .footprint = footprint,
    .draw = draw_rotation,
    .length = rotations_length,
    .check = rotations_check,
};
