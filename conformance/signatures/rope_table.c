/*
 * rope_table: cosines and sines of the rotary angles (Su et al. 2104.09864).
 */
#include "shared.h"

/* xPos, as far from the centre as an f32 holds 3.5^(distance / scale_base). */
static void draw_xpos(struct draws *d, struct problem *p)
{
    const int64_t base = draw(d, 1, 1024);
    p->freqs.dim = 2 * draw(d, 1, 48);
    p->freqs.xpos_scale_base = (double)base;
    p->freqs.xpos_centre = (double)draw(d, -40, 40) / 2;
    p->freqs.xpos_inverse = draw(d, 0, 1) != 0;
    p->freqs.attention_factor = draw(d, 0, 1) ? 0.0 : 1.1;
    p->position_kind = draw(d, 0, 1) ? POSENC_POSITIONS_I64 : POSENC_POSITIONS_F32;
    p->time_step = 1.0 / 3.0;
    p->tokens = 6;
    for (int64_t t = 0; t < p->tokens; t++)
        d->positions[t] = t == 0 ? 0 : draw(d, -40 * base, 40 * base) - 3;
    p->positions = d->positions;
}

/* In every other length times with a fraction or xPos, in every fourth pairs shared between the
 * axes of a picture. */
static void length(struct problem *p, int64_t n, int v)
{
    struct posenc_freqs_spec *f = &p->freqs;
    f->dim = 2 * n;
    f->convention = POSENC_EXPONENT;
    p->first = v == 1 ? 63 : -1;
    if (v == 2 && n % 2) {
        p->position_kind = POSENC_POSITIONS_F32;
        p->time_step = 0.37;
    }
    f->xpos_scale_base = v == 3 && n % 2 ? 512.0 : 0.0;
    if (v != 1 || n < 4 || n % 4 != 1)
        return;
    p->mrope_grid = 2;
    f->mrope_layout = n % 8 == 1 ? POSENC_MROPE_CHUNKED : POSENC_MROPE_INTERLEAVED;
    f->mrope_section[1] = f->mrope_section[2] = n / 4;
    f->mrope_section[0] = n - n / 4 * 2;
}

#define PAIRS .dims = { DIM_BATCH, DIM_TOKEN, DIM_PAIR }, .moved = tensor_elements

const struct signature signature_rope_table = {
    BLANK(rope_table),
    .tensors = { { OUT(rope_table, cos), PAIRS },
                 { OUT(rope_table, sin), PAIRS },
                 POSITIONS(rope_table) },
    .freqs = ARGUMENT(rope_table, freqs),
    .turning = MEMBER(freqs.dim),
    .fields = FIELDS_PLAN "rotary_dim xpos_scale_base xpos_centre xpos_inverse",
    .cuts = { DIM_TOKEN, DIM_BATCH },
    .shares = { DIM_TOKEN },
    .draw = draw_xpos,
    .length = length,
};
