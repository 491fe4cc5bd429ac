/*
 * Cases of what shapes a table beyond one position a token and one frequency a pair: sinusoidal
 * encodings of several axes, xPos; and the window of a head that turns.
 */
#include "golden.h"

static const char mae[] = "mae util/pos_embed.py get_2d_sincos_pos_embed";
static const char detr[] = "detr models/position_encoding.py PositionEmbeddingSine";
static const char vaswani[] = "arXiv:1706.03762 section 3.5, for each axis";
static const char torchscale[] =
    "arXiv:2212.10554 section 3.2; torchscale component/xpos_relative_position.py XPOS";
static const char flash[] = "flash-attention flash_attn/layers/rotary.py, scale_base";
static const char deepseek[] = "DeepSeek-V3 inference/model.py MLA.forward";
static const char ggml[] = "ggml.h ggml_rope_set_offset";

#define COUNT(list) ((int64_t)(sizeof(list) / sizeof *(list)))

/* ---- Sinusoidal encodings of several axes ---- */

/* Tokens are a picture row by row, the first axis down, the second to the right.  MAE has x
 * first, so its pictures are turned: down their columns. */
static struct problem *picture(struct golden *golden, const char *note, const char *source,
                               const char *suffix, int64_t first_pairs, int64_t second_pairs,
                               int64_t grid, int64_t tokens)
{
    struct problem *p =
        add_case(golden, POSENC_KERNEL_sinusoidal, "Axes Layout", note, source, "%s", suffix);
    p->freqs.dim = 2 * (first_pairs + second_pairs);
    p->freqs.mrope_layout = POSENC_MROPE_RESTARTED;
    p->freqs.mrope_section[0] = first_pairs;
    p->freqs.mrope_section[1] = second_pairs;
    p->layout = POSENC_SIN_COS;
    p->position_kind = POSENC_POSITIONS_I32;
    p->mrope_grid = grid;
    p->tokens = tokens;
    return p;
}

static void list_mae(struct golden *golden)
{
    static const char order[] =
        "y first (the halves are x, y whatever they are called), or one sequence of all sines";
    picture(golden, order, mae, "mae-d768", 192, 192, 2, 4)->first = 12;
    picture(golden, order, mae, "mae-d1024", 256, 256, 2, 4)->first = 6;
    picture(golden, "positions by token instead of by row and column", mae, "mae-d16-14x14", 4,
            4, 14, 196);
    picture(golden, "a picture that is not square", mae, "mae-d24-3x5", 6, 6, 3, 15);
}

/* y 2 pi / (y_last + 1e-6) for y = 0, 1, ...: token t is at t + t step. */
static double normalised(int64_t last) { return 6.283185307179586 / ((double)last + 1e-6) - 1; }

static void list_detr(struct golden *golden)
{
    static const char note[] = "x before y; sines and cosines of a pair apart";
    struct problem *p = picture(golden, note, detr, "detr-d256", 64, 64, 3, 6);
    p->layout = POSENC_INTERLEAVED;
    p->first = 1;
    for (int across = 0; across < 2; across++) {
        const int64_t last = across ? 34 : 25;
        p = picture(golden, "coordinates up to 2 pi as f64, or counted from 0 to 1", detr,
                    across ? "detr-normalised-row" : "detr-normalised-column", 16, 16,
                    across ? last + 1 : 1, last + 1);
        golden->vectors.cases[golden->vectors.n - 1].flags = "Axes Layout Time";
        p->layout = POSENC_INTERLEAVED;
        p->position_kind = POSENC_POSITIONS_F32;
        p->time_step = normalised(last);
    }
}

static void list_pictures(struct golden *golden)
{
    struct problem *p;
    add_group(golden, "sinusoidal_2d");
    list_mae(golden);
    list_detr(golden);
    p = picture(golden, "equal axes assumed; the cosines first", vaswani, "d22-uneven", 3, 8, 3,
                6);
    p->layout = POSENC_COS_SIN;
    p->first = -2;
    p = picture(golden, "a third axis left out: video", vaswani, "d32-three-axes", 4, 5, 3, 9);
    p->freqs.dim = 2 * (4 + 5 + 7);
    p->freqs.mrope_section[2] = 7;
    p->first = 131071;
    picture(golden, "one axis is a plain encoding", vaswani, "d20-one-axis", 10, 0, 4, 6);
    p = picture(golden, "one position on all axes", vaswani, "d20-offset", 4, 6, 0, 5);
    p->position_kind = POSENC_OFFSET;
    p->first = 70;
    p = picture(golden, "the frequencies of a framework restarted by axis", vaswani, "d28", 8,
                6, 3, 6);
    p->freqs.profile = POSENC_HF_F32;
    p->scale = 0.5;
    for (int odd = 0; odd < 2; odd++) {
        p = picture(golden, "x of one axis added to the other's", vaswani,
                    odd ? "d14-in-place" : "d38-batch", odd ? 3 : 9, odd ? 4 : 10, 2, 4);
        p->kernel = POSENC_KERNEL_sinusoidal_add;
        p->in_place = odd != 0;
        p->batch = odd ? 1 : 2;
        p->batch_shift = odd ? 0 : 100;
        p->token_major = !odd;
        p->pad = 3;
        p->x_scale = 0.5f;
    }
}

/* ---- xPos ---- */

static struct problem *xpos(struct golden *golden, const char *flags, const char *note,
                            const char *source, const char *suffix, double centre, bool keys)
{
    struct problem *p = add_case(golden, POSENC_KERNEL_rope_table, flags, note, source, "%s-%s",
                                 suffix, keys ? "keys" : "queries");
    p->freqs.dim = 64;
    p->freqs.xpos_scale_base = 512;
    p->freqs.xpos_centre = centre;
    p->freqs.xpos_inverse = keys;
    return p;
}

static void list_xpos(struct golden *golden)
{
    static const int64_t middle[] = { 0, 1, 63, 64, 1023, 1024, 1025, 2047 };
    static const int64_t far[] = { 0, 5000, -5000, 20000, -20000, 35000, -35000 };
    static const char centre[] = "half of an odd length rounded the other way; "
                                 "the scale of a position rather than of one from the centre";
    struct problem *p;
    add_group(golden, "xpos");
    for (int keys = 0; keys < 2; keys++) {
        xpos(golden, "XPos", centre, torchscale, "torchscale-13", 7, keys != 0)->tokens = 13;
        xpos(golden, "XPos", centre, flash, "flash-attention-13", 6, keys != 0)->tokens = 13;
        p = xpos(golden, "XPos LargePosition", "keys scaled as queries are", torchscale,
                 "half-2048", 1024, keys != 0);
        at_positions(p, middle, COUNT(middle));
        p = xpos(golden, "XPos LargePosition Negative",
                 "a power in f32; an overflow on the way to a finite result", torchscale, "far",
                 0, keys != 0);
        at_positions(p, far, COUNT(far));
        for (int type = POSENC_F32; type <= POSENC_BF16; type++) {
            p = xpos(golden, "XPos Storage Overflow",
                     "an f16 overflows 5000 tokens from the centre, a bf16 does not",
                     torchscale, "stored", 0, keys != 0);
            p->dtype = (enum posenc_dtype)type;
            at_positions(p, far, 3);
        }
    }
    p = xpos(golden, "XPos Time Batch", "the scale of a whole position at a time", torchscale,
             "times", 2.5, false);
    p->position_kind = POSENC_POSITIONS_F32;
    p->tokens = 4;
    p->time_step = 0.3;
    p->batch = 2;
    p->batch_shift = 511;
    p = xpos(golden, "XPos AttentionFactor Yarn", "one of two factors of a cosine left out",
             torchscale, "yarn", 33, true);
    p->freqs.scaling = POSENC_SCALING_YARN;
    p->freqs.factor = 4;
    p->freqs.original_max_position_embeddings = 4096;
    p->first = 60;
    p->tokens = 6;
    p = xpos(golden, "XPos Negative", "a scale_base other than 512; blocks across zero",
             torchscale, "base1-d6", 0.5, false);
    p->freqs.dim = 6;
    p->freqs.xpos_scale_base = 1;
    p->first = -9;
    p->tokens = 20;
}

/* ---- The window of a head that turns ---- */

static struct problem *turning(struct golden *golden, enum posenc_kernel kernel,
                               const char *flags, const char *note, const char *source,
                               const char *suffix, int64_t dim, int64_t rotary_dim,
                               int64_t rotary_offset)
{
    struct problem *p = add_case(golden, kernel, flags, note, source, "%s", suffix);
    p->dim = dim;
    p->rotary_dim = rotary_dim;
    p->rotary_offset = rotary_offset;
    p->heads = 2;
    p->tokens = 3;
    p->rows = 16;
    p->first = 1;
    return p;
}

static void list_turning(struct golden *golden, enum posenc_kernel k)
{
    struct problem *p;
    turning(golden, k, "RotaryOffset", "DeepSeek's MLA: the last 64 channels of 192", deepseek,
            "hd192-r64-o128", 192, 64, 128);
    turning(golden, k, "RotaryOffset", "a window in the middle: copies before it and after it",
            ggml, "hd48-r16-o12", 48, 16, 12);
    turning(golden, k, "RotaryOffset", "pairs counted from the head, not from the window", ggml,
            "hd21-r8-o5", 21, 8, 5)
        ->tokens = 5;
    turning(golden, k, "RotaryOffset Transpose", "transpose ignored", ggml,
            "hd40-r20-o20-transpose", 40, 20, 20)
        ->transpose = true;
    p = turning(golden, k, "RotaryOffset InPlace Stride Batch",
                "in place: channels before the window lost", ggml, "hd70-r34-o3-in-place", 70,
                34, 3);
    p->in_place = true;
    p->batch = 2;
    p->pad = 3;
    p->offset_bytes = 4;
    p = turning(golden, k, "RotaryOffset SpecialValues",
                "copies keep NaN, -0 and subnormals on both sides", ggml, "hd24-r4-o10-special",
                24, 4, 10);
    p->special = true;
    p->tokens = 4;
}

void list_axes(struct golden *golden)
{
    list_pictures(golden);
    list_xpos(golden);
    add_group(golden, "rope_offset");
    list_turning(golden, POSENC_KERNEL_rope_half);
    list_turning(golden, POSENC_KERNEL_rope_interleaved);
}
