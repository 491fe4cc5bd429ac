/*
 * Cases of storage: f16 and bf16 in memory, arithmetic in f32, one more rounding at the end.
 *
 * References are f64 rounded to odd, so one tensor serves every type that holds the inputs:
 * those rounded to bf16 are f16 and f32 values too, but for special ones, which are either
 * type's own.  What a case promises by its flags (ties, subnormals, overflow, that two
 * roundings differ from one) published_storage.c counts.
 */
#include "cases_storage.h"

static const char ieee[] = "IEEE 754-2019 section 4.3.1; bfloat16: the upper half of binary32";

void list_stored(struct golden *golden, const struct stored *cases, int64_t n)
{
    static const bool has[][3] = { [EVERY] = { true, true, true },
                                   [F16_TOO] = { true, true, false },
                                   [BF16_TOO] = { true, false, true },
                                   [NARROW] = { false, true, true } };
    for (int64_t k = 0; k < n; k++)
        for (int type = POSENC_F32; type <= POSENC_BF16; type++) {
            const struct stored *s = &cases[k];
            if (!has[s->types][type])
                continue;
            struct problem *p =
                add_case(golden, s->kernel, s->flags, s->note, ieee, "%s", s->suffix);
            p->dtype = (enum posenc_dtype)type;
            if (s->kernel != POSENC_KERNEL_rope_table && s->kernel != POSENC_KERNEL_sinusoidal)
                p->values = s->types == F16_TOO ? POSENC_F16 : POSENC_BF16;
            s->make(p);
        }
}

/* ---- Rotations ---- */

static void rotation(struct problem *p, int64_t dim, int64_t rotary_dim, int64_t rotary_offset)
{
    p->dim = dim;
    p->rotary_dim = rotary_dim;
    p->rotary_offset = rotary_offset;
    p->heads = 2;
    p->tokens = 3;
    p->rows = 16;
    p->first = 1;
}

static void rope_whole(struct problem *p) { rotation(p, 64, 64, 0); }
static void rope_tail(struct problem *p)
{
    rotation(p, 42, 42, 0);
    p->heads = 3;
}
static void rope_partial(struct problem *p) { rotation(p, 80, 32, 0); }
static void rope_window(struct problem *p) { rotation(p, 48, 16, 12); }
static void rope_bf16_tables(struct problem *p)
{
    rotation(p, 32, 32, 0);
    p->table_dtype = POSENC_BF16;
}
static void rope_f16_tables(struct problem *p)
{
    rotation(p, 32, 32, 0);
    p->table_dtype = POSENC_F16;
}
static void rope_in_place(struct problem *p)
{
    rotation(p, 64, 64, 0);
    p->in_place = p->transpose = true;
    p->pad = 3;
    p->offset_bytes = 2;
}
static void rope_special(struct problem *p)
{
    rotation(p, 20, 12, 4);
    p->tokens = 4;
    p->special = true;
}

static void list_rotations(struct golden *golden, enum posenc_kernel k)
{
    const struct stored cases[] = {
        { "hd64-stored", "Storage Pairing", "products or sums rounded to the storage type", k,
          EVERY, rope_whole },
        { "hd42-stored", "Storage Pairing", "a tail shorter than a vector of 16-bit elements",
          k, EVERY, rope_tail },
        { "hd80-r32-stored", "Storage Partial", "the tail rotated too", k, EVERY,
          rope_partial },
        { "hd48-r16-o12-stored", "Storage RotaryOffset",
          "an offset in bytes, or in elements of the wrong size", k, EVERY, rope_window },
        { "hd32-bf16-tables", "Storage TableStorage",
          "cosines of bf16 read as f32, or x rounded to their type", k, EVERY,
          rope_bf16_tables },
        { "hd32-f16-tables", "Storage TableStorage", "the same of f16", k, EVERY,
          rope_f16_tables },
        { "hd64-stored-in-place", "Storage InPlace Stride Transpose",
          "x0 read after it was written; rows at odd multiples of 2 bytes", k, NARROW,
          rope_in_place },
        { "hd20-r12-special-f16", "Storage SpecialValues Subnormal Partial",
          "subnormals of f16 flushed; NaN or infinity lost; -0", k, F16_TOO, rope_special },
        { "hd20-r12-special-bf16", "Storage SpecialValues Subnormal Partial",
          "subnormals of bf16 flushed; a NaN narrowed to infinity", k, BF16_TOO, rope_special },
    };
    list_stored(golden, cases, COUNT(cases));
}

/* ---- Tables ---- */

static void sine_usual(struct problem *p)
{
    p->freqs.dim = 64;
    at_few(p);
}
static void sine_odd(struct problem *p)
{
    p->freqs.dim = 5;
    p->layout = POSENC_COS_SIN;
    at_few(p);
}
static void sine_endpoint(struct problem *p)
{
    p->freqs.dim = 48;
    p->layout = POSENC_SIN_COS;
    p->freqs.convention = POSENC_ENDPOINT;
    p->freqs.profile = POSENC_HF_F32;
    at_few(p);
}

/* Cosines at position 0 are the scale itself: two rows, of positions 0 and 1. */
static void scaled(struct problem *p, double scale)
{
    p->freqs.dim = 8;
    p->tokens = 2;
    p->scale = scale;
}
static void sine_f16_infinite(struct problem *p) { scaled(p, 65520); }
static void sine_f16_largest(struct problem *p) { scaled(p, 0x1.ffdffep15); }
static void sine_bf16_infinite(struct problem *p) { scaled(p, 0x1.ffp127); }
static void sine_bf16_largest(struct problem *p) { scaled(p, 0x1.fefffep127); }
static void sine_f16_even(struct problem *p) { scaled(p, 1 + 0x1p-11); }
static void sine_bf16_even(struct problem *p) { scaled(p, 1 + 0x1.8p-7); }
static void sine_f16_least(struct problem *p) { scaled(p, 2.5 * 0x1p-24); }
static void sine_bf16_least(struct problem *p) { scaled(p, 2.5 * 0x1p-133); }
static void sine_f16_none(struct problem *p) { scaled(p, 0x1p-25); }

static void table_usual(struct problem *p)
{
    p->freqs.dim = 64;
    p->freqs.scaling = POSENC_SCALING_YARN;
    p->freqs.factor = 4;
    p->freqs.original_max_position_embeddings = 4096;
    at_few(p);
}
static void table_framework(struct problem *p)
{
    table_usual(p);
    p->freqs.profile = POSENC_HF_F32;
}
static void table_zero(struct problem *p)
{
    p->freqs.dim = 512;
    p->first = 1715512116;
    p->tokens = 1;
}

static void list_tables(struct golden *golden)
{
    const enum posenc_kernel sine = POSENC_KERNEL_sinusoidal, table = POSENC_KERNEL_rope_table;
    const struct stored cases[] = {
        { "d64-stored", "Storage LargePosition",
          "a position or an angle rounded to the storage type", sine, EVERY, sine_usual },
        { "d5-stored", "Storage OddDim Layout", "the zero column of an odd row, in 2 bytes",
          sine, EVERY, sine_odd },
        { "d48-endpoint-stored", "Storage Profile Endpoint", "as d64-stored", sine, EVERY,
          sine_endpoint },
        { "d8-overflow-f16", "Storage Scale Overflow",
          "65520, halfway past the largest f16, is an infinity", sine, EVERY,
          sine_f16_infinite },
        { "d8-largest-f16", "Storage Scale", "the f32 below 65520 is 65504, not an infinity",
          sine, EVERY, sine_f16_largest },
        { "d8-overflow-bf16", "Storage Scale Overflow",
          "a finite f32 halfway past the largest bf16 is an infinity", sine, BF16_TOO,
          sine_bf16_infinite },
        { "d8-largest-bf16", "Storage Scale", "the f32 below that is the largest bf16", sine,
          BF16_TOO, sine_bf16_largest },
        { "d8-even-f16", "Storage Scale Tie", "1 + 2^-11 rounded up: ties are even", sine,
          F16_TOO, sine_f16_even },
        { "d8-even-bf16", "Storage Scale Tie", "1 + 3 2^-8 rounded down: ties are even", sine,
          BF16_TOO, sine_bf16_even },
        { "d8-least-f16", "Storage Scale Tie Subnormal",
          "subnormals of f16 are whole multiples of 2^-24", sine, EVERY, sine_f16_least },
        { "d8-least-bf16", "Storage Scale Tie Subnormal",
          "subnormals of bf16 are whole multiples of 2^-133", sine, BF16_TOO, sine_bf16_least },
        { "d8-none-f16", "Storage Scale Tie", "half the least f16 is 0: ties are even", sine,
          F16_TOO, sine_f16_none },
        { "r64-stored", "Storage AttentionFactor Yarn LargePosition",
          "cosines rounded before the attention factor", table, EVERY, table_usual },
        { "r64-stored", "Storage AttentionFactor Yarn Profile",
          "cosines rounded before the attention factor", table, EVERY, table_framework },
        { "r512-stored", "Storage Convergent LargePosition",
          "a cosine of 1e-13 is 0 in f16, and is not in bf16", table, EVERY, table_zero },
    };
    list_stored(golden, cases, COUNT(cases));
}

/* ---- Sums with tokens ---- */

static void learned(struct problem *p)
{
    p->dim = 37;
    p->rows = 32;
    p->tokens = 5;
    p->first = 2;
}
static void learned_scale(struct problem *p)
{
    learned(p);
    p->x_scale = 22.627416997969522f; /* sqrt(512) */
}
static void learned_batch(struct problem *p)
{
    learned(p);
    p->dim = 16;
    p->batch = 3;
    p->token_major = true;
}
static void learned_in_place(struct problem *p)
{
    learned(p);
    p->in_place = true;
    p->pad = 1;
    p->offset_bytes = 2;
}
/* Scales that make a subnormal x as large as what is added. */
static void learned_f16_special(struct problem *p)
{
    learned(p);
    p->special = true;
    p->x_scale = 0x1p12f;
}
static void learned_bf16_special(struct problem *p)
{
    learned(p);
    p->special = true;
    p->x_scale = 0x1p120f;
}
static void learned_overflow(struct problem *p)
{
    learned(p);
    p->x_scale = 8192;
}
static void gradient(struct problem *p)
{
    static const int64_t rows[] = { 3, 1, 3, 0, 3, 3, 6, 1, 3, 3, 3, 3 };
    p->dim = 21;
    p->rows = 8;
    at_positions(p, rows, COUNT(rows));
}
static void gradient_special(struct problem *p)
{
    gradient(p);
    p->special = true;
}
static void sine_add(struct problem *p)
{
    p->freqs.dim = 37;
    p->tokens = 4;
    p->first = 131070;
}
static void sine_add_framework(struct problem *p)
{
    sine_add(p);
    p->freqs.profile = POSENC_HF_F32;
    p->layout = POSENC_COS_SIN;
    p->scale = 0.5;
    p->x_scale = 22.627416997969522f;
}
static void sine_add_f16_special(struct problem *p)
{
    sine_add(p);
    p->special = true;
    p->x_scale = 0x1p12f;
}
static void sine_add_bf16_special(struct problem *p)
{
    sine_add(p);
    p->special = true;
    p->x_scale = 0x1p120f;
}
static void sine_add_overflow(struct problem *p)
{
    sine_add(p);
    p->x_scale = 8192;
}

static void list_tokens(struct golden *golden)
{
    const enum posenc_kernel add = POSENC_KERNEL_learned_add, grad = POSENC_KERNEL_learned_grad,
                             sine = POSENC_KERNEL_sinusoidal_add;
    const struct stored cases[] = {
        { "d37-stored", "Storage", "the f32 row rounded before the sum", add, EVERY, learned },
        { "d37-scale-stored", "Storage Scale", "the product rounded to the storage type", add,
          EVERY, learned_scale },
        { "d16-token-major-stored", "Storage Batch Stride",
          "strides in bytes of f32 where elements have 2", add, EVERY, learned_batch },
        { "d37-in-place-stored", "Storage InPlace Stride",
          "x read after it was written; rows at odd multiples of 2 bytes", add, NARROW,
          learned_in_place },
        { "d37-special-f16", "Storage SpecialValues",
          "an f16 subnormal read as 0; a NaN or an infinity lost", add, F16_TOO,
          learned_f16_special },
        { "d37-special-bf16", "Storage SpecialValues", "the same of bf16", add, BF16_TOO,
          learned_bf16_special },
        { "d37-overflow-f16", "Storage Overflow", "sums of 65520 and more kept finite", add,
          F16_TOO, learned_overflow },
        { "d21-stored", "Storage Gradient", "sums kept in the type of x", grad, EVERY,
          gradient },
        { "d21-special-f16", "Storage Gradient SpecialValues",
          "NaN and infinities of f16 spread to other rows", grad, F16_TOO, gradient_special },
        { "d21-special-bf16", "Storage Gradient SpecialValues", "the same of bf16", grad,
          BF16_TOO, gradient_special },
        { "d37-stored", "Storage LargePosition", "the table value rounded before the sum", sine,
          EVERY, sine_add },
        { "d37-cossin-stored", "Storage Profile Layout Scale OddDim",
          "the zero column of an odd row: x, scaled and rounded once", sine, EVERY,
          sine_add_framework },
        { "d37-special-f16", "Storage SpecialValues", "an f16 subnormal read as 0", sine,
          F16_TOO, sine_add_f16_special },
        { "d37-special-bf16", "Storage SpecialValues",
          "a bf16 subnormal read as 0; NaN or infinity lost", sine, BF16_TOO,
          sine_add_bf16_special },
        { "d37-overflow-f16", "Storage Overflow", "sums of 65520 and more kept finite", sine,
          F16_TOO, sine_add_overflow },
    };
    list_stored(golden, cases, COUNT(cases));
}

void list_storage(struct golden *golden)
{
    add_group(golden, "storage");
    list_rotations(golden, POSENC_KERNEL_rope_half);
    list_rotations(golden, POSENC_KERNEL_rope_interleaved);
    list_tables(golden);
    list_tokens(golden);
    list_stored_scores(golden);
}
