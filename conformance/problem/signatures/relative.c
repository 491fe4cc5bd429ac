/*
 * relative: terms of attention by relative position (DeBERTa, He et al. 2006.03654; Shaw et al.
 * 1803.02155; Transformer-XL, Dai et al. 1901.02860).
 */
#include "shared.h"

/* 12 heads, 256 buckets to 512, both terms (DeBERTa v3); scores and terms are each about a third
 * of the bytes. */
static void footprint(struct problem *p, size_t bytes)
{
    enum { CONTEXT = 512 };
    p->heads = 12;
    p->num_buckets = 256;
    p->max_distance = 512;
    const size_t per_head = bytes / storage_size(p->dtype) / 3 / (size_t)p->heads;
    size_t side = 1;
    while (side < CONTEXT && (side + 1) * (side + 1) <= per_head)
        side++;
    p->queries = p->keys = (int64_t)side;
    p->query_offset = 0;
    p->batch = at_least_one(per_head / (side * side));
    p->in_place = kernel_takes_x(p->kernel);
}

static void draw_terms(struct draws *d, struct problem *p)
{
    columns_draw(d, p);
    p->with_p2c = draw(d, 0, 1) != 0;
    p->without_c2p = p->with_p2c && draw(d, 0, 1) != 0;
    p->scale = draw(d, 0, 1) ? 0x1p-20 : 0.0721687824;
}

static bool has_c2p(const struct problem *p) { return !p->without_c2p; }
static bool has_p2c(const struct problem *p) { return p->with_p2c; }

/* Of each row as many columns as it has scores. */
static int64_t c2p_moved(const struct problem *p, const struct tensor_row *row)
{
    (void)row;
    return p->batch * p->heads * p->queries * lesser(p->keys, columns_of(p));
}

static int64_t p2c_moved(const struct problem *p, const struct tensor_row *row)
{
    (void)row;
    return p->batch * p->heads * p->keys * lesser(p->queries, columns_of(p));
}

#define SCORES .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_KEY }, .moved = tensor_elements

const struct signature signature_relative = {
    BLANK(relative),
    .tensors = { { OUT(relative, out), SCORES },
                 { X(relative), SCORES },
                 COLUMNS_INDEX(relative),
                 { TENSOR(relative, c2p), .present = has_c2p,
                   .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_COLUMN }, .stream = STREAM_C2P,
                   .pristine = PRISTINE(c2p), .moved = c2p_moved },
                 { TENSOR(relative, p2c), .present = has_p2c,
                   .dims = { DIM_BATCH, DIM_HEAD, DIM_KEY, DIM_COLUMN }, .stream = STREAM_P2C,
                   .pristine = PRISTINE(p2c), .moved = p2c_moved } },
    .parameters = { PARAMETER(relative, scale), PARAMETER(relative, x_scale) },
    .columns = columns_of,
    .fields = FIELDS_SCORES "x_scale scale relative position_buckets max_distance without_c2p "
                            "with_p2c",
    .cuts = { DIM_KEY, DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
    .defaults = columns_defaults,
    .footprint = footprint,
    .draw = draw_terms,
};
