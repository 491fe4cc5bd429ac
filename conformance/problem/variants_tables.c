/*
 * Variants of tables and of what adds them: see variants.c.
 */
#include "variants.h"

/* Closest to zeros of a sine or cosine (dim 512, pair 25; dim 768, pair 317), both ends of the
 * range, both sides of a block and of 2^20. */
static const int64_t hard_positions[] = { 0,           1,          63,          64,
                                          65,          1715512116, -1715512116, 2147483647,
                                          -2147483647, 497577,     -497577,     1048575,
                                          1048576,     16777217,   -2 };
static const int64_t far_positions[] = { 1715512116, -1715512116, 2147483647 };

static void llama31(struct posenc_freqs_spec *f)
{
    f->rope_theta = 500000.0;
    f->scaling = POSENC_SCALING_LLAMA3;
    f->factor = 8.0;
    f->low_freq_factor = 1.0;
    f->high_freq_factor = 4.0;
    f->original_max_position_embeddings = 8192.0;
}

static void gpt_oss(struct posenc_freqs_spec *f)
{
    f->rope_theta = 150000.0;
    f->scaling = POSENC_SCALING_YARN;
    f->factor = 32.0;
    f->truncate = false;
    f->original_max_position_embeddings = 4096.0;
}

/* Phi-4-mini at 131072 tokens, its factors evenly spaced. */
static void phi4_mini(struct problem *p)
{
    p->freqs.scaling = POSENC_SCALING_LONGROPE;
    p->freqs.factor = 32.0;
    p->freqs.original_max_position_embeddings = 4096.0;
    p->freqs.seq_len = 131072;
    p->short_factor_last = 1.0;
    p->long_factor_last = 47.77;
}

/* Encodings of two axes side by side; 16 bits. */
static const char *sinusoidal_placed(struct problem *p, int v)
{
    struct posenc_freqs_spec *f = &p->freqs;
    p->mrope_grid = v < 17 ? 7 : 0;
    p->tokens = 37;
    switch (v) {
    case 15: /* MAE's, of a position each in two axes */
        f->dim = 96;
        f->mrope_layout = POSENC_MROPE_RESTARTED;
        f->mrope_section[0] = f->mrope_section[1] = 24;
        p->layout = POSENC_SIN_COS;
        p->position_kind = POSENC_POSITIONS_I32;
        p->batch = 2;
        p->batch_shift = 100;
        return "d96-axes";
    case 16: /* DETR's order and fractions; sections of which neither fills vectors */
        f->dim = 60;
        f->mrope_layout = POSENC_MROPE_RESTARTED;
        f->mrope_section[0] = 7;
        f->mrope_section[1] = 23;
        p->scale = 0.5;
        p->x_scale = 1.7320508f;
        p->pad = 3;
        return "d60-axes-times";
    case 17:
        f->dim = 67;
        variant_stored(p, POSENC_F16, 3);
        p->layout = POSENC_COS_SIN;
        p->position_kind = POSENC_OFFSET;
        p->first = -20;
        p->scale = 0.125;
        p->in_place = p->special = true;
        return "d67";
    case 18:
        f->dim = 130;
        variant_stored(p, POSENC_BF16, 0);
        p->layout = POSENC_SIN_COS;
        p->position_kind = POSENC_POSITIONS_I64;
        p->first = 131000;
        p->batch = 2;
        p->batch_shift = 500;
        p->x_scale = 11.313708f;
        return "d130";
    default:
        return NULL;
    }
}

/* xPos, near its centre, far from it and between positions; 16 bits. */
static const char *rope_table_stored(struct problem *p, int v)
{
    struct posenc_freqs_spec *f = &p->freqs;
    p->tokens = 37;
    p->position_kind = POSENC_OFFSET;
    f->xpos_scale_base = v < 20 ? 512.0 : 0.0;
    switch (v) {
    case 17:
        p->first = 40;
        f->xpos_centre = 32.0;
        return "d64-xpos";
    case 18: /* scaled by factors of 2^-28 to 2^28, next to zeros of sines as well */
        f->dim = 512;
        f->xpos_scale_base = 0x1p27;
        f->xpos_inverse = true;
        variant_at(p, POSENC_POSITIONS_I32, far_positions,
                   sizeof far_positions / sizeof *far_positions);
        return "d512-xpos-inverse";
    case 19:
        f->dim = 66;
        f->attention_factor = 1.25;
        f->xpos_centre = 20.5;
        p->position_kind = POSENC_POSITIONS_F32;
        p->time_step = -0.37;
        p->tokens = 37;
        return "d66-xpos-times";
    case 20:
        f->dim = 128;
        llama31(f);
        variant_stored(p, POSENC_F16, 3);
        p->first = 131000;
        return "d128-llama31";
    case 21:
        f->dim = 66;
        variant_stored(p, POSENC_BF16, 0);
        variant_at(p, POSENC_POSITIONS_I32, hard_positions,
                   sizeof hard_positions / sizeof *hard_positions);
        return "d66-hard";
    default:
        return NULL;
    }
}

/* Positions beyond one integer a token: times with a fraction, tokens of a picture. */
static const char *placed(struct problem *p, int v)
{
    struct posenc_freqs_spec *f = &p->freqs;
    const bool table = kernel_signature(p->kernel) == SIGNATURE_rope_table;
    p->position_kind = POSENC_POSITIONS_F32;
    p->time_step = 0.37;
    if (v == 14) {
        f->dim = table ? 66 : 67;
        p->layout = POSENC_COS_SIN;
        p->first = -50;
        return "d67-times";
    }
    if (!table)
        return sinusoidal_placed(p, v);
    if (v > 16)
        return rope_table_stored(p, v);
    p->mrope_grid = 7;
    if (v == 15) { /* Qwen3-VL */
        f->dim = 128;
        f->rope_theta = 5e6;
        f->mrope_layout = POSENC_MROPE_INTERLEAVED;
        f->mrope_section[0] = 24;
        f->mrope_section[1] = f->mrope_section[2] = 20;
        p->position_kind = POSENC_POSITIONS_I32;
        p->first = -3;
        p->batch = 2;
        p->batch_shift = 131072;
        p->pad = 3;
        return "d128-interleaved";
    }
    if (v == 16) { /* Qwen2-VL's pictures, and between their patches */
        f->dim = 80;
        f->mrope_layout = POSENC_MROPE_RESTARTED;
        f->mrope_section[0] = f->mrope_section[1] = 20;
        return "d80-restarted";
    }
    return NULL;
}

/* The scaling families beyond: rows with a step over a block and a tail. */
static const char *extended(struct problem *p, int v)
{
    struct posenc_freqs_spec *f = &p->freqs;
    p->tokens = 37;
    switch (v) {
    case 10:
        f->dim = 128;
        f->scaling = POSENC_SCALING_DYNAMIC;
        f->factor = 2.0;
        f->max_position_embeddings = 4096.0;
        f->seq_len = 100001;
        p->first = 99965;
        return "d128-dynamic";
    case 11:
        f->dim = 66;
        f->scaling = POSENC_SCALING_NTK;
        f->factor = 8.0;
        p->layout = POSENC_COS_SIN;
        p->first = -20;
        return "d66-ntk";
    case 12:
        f->dim = 96;
        phi4_mini(p);
        p->first = 131040;
        p->in_place = true;
        return "d96-longrope";
    case 13:
        f->dim = 80;
        f->rope_theta = 1e6;
        f->scaling = POSENC_SCALING_PROPORTIONAL;
        f->partial_rotary_factor = 0.25;
        p->layout = POSENC_SIN_COS;
        p->first = -5;
        return "d80-proportional";
    default:
        return placed(p, v);
    }
}

const char *table_variant(struct problem *p, int v)
{
    struct posenc_freqs_spec *f = &p->freqs;
    switch (v) {
    case 0:
        p->tokens = 130;
        return "d64-t130";
    case 1:
        f->dim = kernel_signature(p->kernel) == SIGNATURE_rope_table ? 6 : 7;
        p->layout = POSENC_SIN_COS;
        p->batch = 2;
        p->first = -3;
        return "d7-negative";
    case 2:
        f->dim = 130;
        f->convention = POSENC_ENDPOINT;
        p->layout = POSENC_COS_SIN;
        p->tokens = 33;
        p->first = -77;
        p->scale = 0.125;
        p->x_scale = 11.313708f;
        return "d130-endpoint";
    case 3:
        f->dim = 512;
        p->tokens = 99;
        p->first = 2147483648 - 99;
        return "d512-p2e31";
    case 4:
        f->dim = 96;
        f->scaling = POSENC_SCALING_LINEAR;
        f->factor = 4.0;
        variant_at(p, POSENC_POSITIONS_I64, NULL, 21);
        p->batch = 3;
        p->first = 50;
        p->batch_shift = 1000;
        p->pad = 3;
        p->offset_bytes = 4;
        p->token_major = true;
        return "d96-i64";
    case 5:
        f->dim = 128;
        llama31(f);
        p->tokens = 70;
        p->first = 131000;
        p->in_place = true;
        return "d128-llama31";
    case 6:
        gpt_oss(f);
        p->layout = POSENC_SIN_COS;
        p->tokens = 70;
        p->first = 4090;
        p->special = true;
        return "d64-yarn";
    case 7:
        f->dim = kernel_signature(p->kernel) == SIGNATURE_rope_table ? 2 : 1;
        return "d1";
    case 8:
    case 9:
        f->dim = v == 8 ? 512 : 768;
        variant_at(p, POSENC_POSITIONS_I32, hard_positions,
                   sizeof hard_positions / sizeof *hard_positions);
        return v == 8 ? "d512-hard" : "d768-hard";
    default:
        return extended(p, v);
    }
}
