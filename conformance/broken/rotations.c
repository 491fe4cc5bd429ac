/*
 * Heads that are turned, rope_half and rope_interleaved: pair (i, i + half) from the first
 * channel that turns on; the channels before and after are copied.
 */
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <math.h>

/* The rows that turn x into out in one head, from the first channel that turns on: how many
 * pairs, and how many channels to the end of the head. */
struct rotation {
    int64_t half, rest;
    bool transpose;
    enum posenc_dtype stored;
    const float *x, *cosines, *sines;
    float *out;
};

/* Pair (a, b), of which both are read before either is written. */
static void turn(const struct rotation *r, int64_t a, int64_t b, float c, float s)
{
    const float x0 = r->x[a], x1 = r->x[b];
    if (SLIP(narrow_products) && r->stored != POSENC_F32) {
        r->out[a] = storage_round(r->stored, x0 * c) - storage_round(r->stored, x1 * s);
        r->out[b] = storage_round(r->stored, x1 * c) + storage_round(r->stored, x0 * s);
        return;
    }
    /* As a sinusoidal table is added to embeddings. */
    r->out[a] = SLIP(added) ? x0 + c : fmaf(x0, c, -(x1 * s));
    if (SLIP(leaked_lane))
        r->out[a] += 0.0f * (a + 1 < r->half ? r->x[a + 1] : 0.0f);
    r->out[b] = SLIP(added) ? x1 + s : fmaf(x1, c, (SLIP(clobbered) ? r->x[a] : x0) * s);
}

static void turn_head(const struct rotation *r)
{
    int64_t pairs = r->half, apart = r->half;
    if (SLIP(skipped_tail))
        pairs -= pairs % 4;
    if (SLIP(leading_slice)) {
        while (pairs > 0 && r->cosines[pairs - 1] == 1.0f && r->sines[pairs - 1] == 0.0f)
            pairs--;
        apart = pairs;
    }
    if (SLIP(across_head) && r->rest / 2 > r->half)
        apart = r->rest / 2;
    for (int64_t c = 0; apart != r->half && c < r->rest; c++)
        r->out[c] = r->x[c];
    for (int64_t i = 0; i < pairs; i++) {
        const float s = r->transpose ? -r->sines[i] : r->sines[i];
        const enum posenc_dtype tables = SLIP(tables_in_type_of_x) ? r->stored : POSENC_F32;
        turn(r, i, i + apart,
             storage_round(SLIP(bf16_cosines) ? POSENC_BF16 : tables, r->cosines[i]),
             storage_round(tables, s));
    }
}

void enter_rotation(struct entered *e)
{
    in_f32_open(e);
    const struct posenc_rope_args *a = &e->args.rope;
    const int64_t from = a->rotary_offset, heads = a->out.shape[2], tokens = a->out.shape[1];
    struct rotation r = { .half = a->cos.shape[1],
                          .rest = a->out.shape[3] - from,
                          .transpose = a->transpose,
                          .stored = e->stored };
    for (int64_t k = 0; k < a->out.shape[0] * tokens * heads; k++) {
        const int64_t b = k / heads / tokens, t = k / heads % tokens;
        const int64_t row = (int64_t)position_on(&a->positions, b, t, 0);
        r.x = row_at(input_as_writable(&a->x), b, t, k % heads) + from;
        r.out = row_at(&a->out, b, t, k % heads) + from;
        r.cosines = storage_row(input_as_writable(&a->cos), row);
        r.sines = storage_row(input_as_writable(&a->sin), row);
        for (int64_t c = -from; c < r.rest; c++)
            if (c < 0 || c >= 2 * r.half)
                r.out[c] = r.x[c];
        turn_head(&r);
    }
}
