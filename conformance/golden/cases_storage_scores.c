/*
 * Cases of storage of what queries give keys: see cases_storage.c.
 */
#include "cases_storage.h"

static const char finite[] = "sums of 65520 and more kept finite";

/* ---- ALiBi: whole distances times powers of two ---- */

static void scores(struct problem *p, int64_t heads, int64_t queries, int64_t keys,
                   int64_t query_offset)
{
    p->heads = heads;
    p->queries = queries;
    p->keys = keys;
    p->query_offset = query_offset;
}

/* Slope 2^-max of a single head. */
static void slope(struct problem *p, double max, int64_t keys, int64_t farthest)
{
    scores(p, 1, 1, keys, farthest);
    p->alibi_bias_max = max;
}
static void alibi_overflow(struct problem *p) { slope(p, 7, 6, 8386562); }
static void alibi_least(struct problem *p) { slope(p, 25, 21, 20); }
static void alibi_f16(struct problem *p) { slope(p, 8, 20, 2060); }
static void alibi_bf16(struct problem *p) { slope(p, 8, 20, 270); }
static void alibi_causal(struct problem *p)
{
    scores(p, 3, 4, 7, 2);
    p->causal = true;
}
static void alibi_add(struct problem *p) { scores(p, 4, 3, 33, 290); }
static void alibi_overflow_add(struct problem *p)
{
    alibi_add(p);
    p->x_scale = 8192;
}
static void alibi_scale(struct problem *p)
{
    scores(p, 12, 2, 9, 7);    /* slopes of more than a bit from head 8 on */
    p->x_scale = 0.088388346f; /* 1/sqrt(128) */
}
static void alibi_in_place(struct problem *p)
{
    scores(p, 3, 4, 21, 17);
    p->in_place = true;
    p->pad = 5;
    p->offset_bytes = 2;
}
static void alibi_special(struct problem *p)
{
    scores(p, 4, 4, 33, 20);
    p->special = p->causal = true;
}

static void list_alibi(struct golden *golden)
{
    const enum posenc_kernel bias = POSENC_KERNEL_alibi, add = POSENC_KERNEL_alibi_add;
    const struct stored cases[] = {
        { "h1-overflow-f16", "Storage Overflow", "65520 is an infinity, 65519.992 is 65504",
          bias, EVERY, alibi_overflow },
        { "h1-least-f16", "Storage Subnormal Tie", "odd multiples of 2^-25, halfway: to even",
          bias, EVERY, alibi_least },
        { "h1-ties-f16", "Storage Tie", "distances from 2049 on rounded away from even", bias,
          F16_TOO, alibi_f16 },
        { "h1-ties-bf16", "Storage Tie",
          "distances from 257 on rounded away from even, or cut off", bias, BF16_TOO,
          alibi_bf16 },
        { "h3-causal-stored", "Storage Causal", "-infinity as the largest finite number", bias,
          EVERY, alibi_causal },
        { "h4-stored", "Storage Tie",
          "sums halfway between two scores: to even; distances in bf16: 257 is 256", add, EVERY,
          alibi_add },
        { "h4-overflow-f16", "Storage Overflow", finite, add, F16_TOO, alibi_overflow_add },
        { "h12-scale-stored", "Storage Scale", "the bias rounded before the sum", add, EVERY,
          alibi_scale },
        { "h3-in-place-stored", "Storage InPlace Stride",
          "in place, rows apart, at odd multiples of 2 bytes", add, NARROW, alibi_in_place },
        { "h4-special-f16", "Storage SpecialValues Causal", "inf - inf is NaN", add, F16_TOO,
          alibi_special },
        { "h4-special-bf16", "Storage SpecialValues Causal", "inf - inf is NaN", add, BF16_TOO,
          alibi_special },
    };
    list_stored(golden, cases, COUNT(cases));
}

/* ---- Other biases ---- */

static void t5(struct problem *p)
{
    scores(p, 3, 3, 21, 3);
    p->num_buckets = 32;
    p->max_distance = 128;
    p->bidirectional = true;
}
static void t5_special(struct problem *p)
{
    t5(p);
    p->special = true;
}
static void t5_overflow(struct problem *p)
{
    t5(p);
    p->x_scale = 8192;
}
static void t5_causal(struct problem *p)
{
    scores(p, 1, 1, 161, 153);
    p->num_buckets = 32;
    p->max_distance = 128;
}
static void distance(struct problem *p) { scores(p, 3, 4, 19, 15); }
/* Scales that make subnormal scores as large as what is added. */
static void distance_f16_special(struct problem *p)
{
    distance(p);
    p->special = true;
    p->x_scale = 0x1p12f;
}
static void distance_bf16_special(struct problem *p)
{
    distance(p);
    p->special = true;
    p->x_scale = 0x1p120f;
}
static void distance_overflow(struct problem *p)
{
    distance(p);
    p->x_scale = 8192;
}
static void window(struct problem *p)
{
    p->heads = 3;
    p->window_height = 2;
    p->window_width = 3;
}
static void window_overflow(struct problem *p)
{
    window(p);
    p->x_scale = 8192;
}
static void window_class(struct problem *p)
{
    window(p);
    p->window_class = p->special = true;
}
static void deberta(struct problem *p)
{
    scores(p, 2, 4, 19, 9);
    p->num_buckets = 8;
    p->max_distance = 16;
    p->with_p2c = true;
    p->scale = 0.0721687824; /* 1/sqrt(3 64) */
}
static void deberta_overflow(struct problem *p)
{
    deberta(p);
    p->x_scale = 8192;
}
static void deberta_special(struct problem *p)
{
    deberta(p);
    p->special = true;
}

/* Terms times a power of two are exact, so that the rounding to be seen is the last one. */
static void shaw(struct problem *p, double scale)
{
    scores(p, 2, 5, 9, 4);
    p->relative = RELATIVE_SHAW;
    p->max_distance = 16;
    p->scale = scale;
}
static void shaw_f16_least(struct problem *p) { shaw(p, 0x1p-20); }
static void shaw_bf16_least(struct problem *p) { shaw(p, 0x1p-133); }
static void shaw_overflow(struct problem *p)
{
    shaw(p, 8192);
    p->with_p2c = true;
}

/* A sum of two terms is exact in f32 and often halfway between two stored values; x adds less
 * than half an ulp of f32, which the first rounding drops. */
static void two_roundings(struct problem *p)
{
    scores(p, 2, 16, 16, 0);
    p->relative = RELATIVE_SHAW;
    p->max_distance = 4;
    p->with_p2c = true;
    p->x_scale = 0x1p-27f;
}
static void weights(struct problem *p)
{
    scores(p, 2, 4, 30, 15);
    p->relative = RELATIVE_SHAW;
    p->max_distance = 2;
}
static void weights_special(struct problem *p)
{
    weights(p);
    p->special = true;
}

static void list_terms(struct golden *golden)
{
    const enum posenc_kernel bias = POSENC_KERNEL_relative_bias,
                             add = POSENC_KERNEL_relative_bias_add,
                             sum = POSENC_KERNEL_relative_sum;
    const struct stored cases[] = {
        { "deberta-stored", "Storage Terms LogBuckets", "the first term rounded before the sum",
          bias, EVERY, deberta },
        { "shaw-least-f16", "Storage Terms Subnormal Tie", "results of k 2^-24, halfway", bias,
          F16_TOO, shaw_f16_least },
        { "shaw-least-bf16", "Storage Terms Subnormal Tie", "results of k 2^-133, halfway",
          bias, BF16_TOO, shaw_bf16_least },
        { "shaw-overflow-f16", "Storage Terms Overflow", finite, bias, F16_TOO, shaw_overflow },
        { "deberta-stored", "Storage Terms LogBuckets", "the bias rounded before the sum", add,
          EVERY, deberta },
        { "deberta-overflow-f16", "Storage Terms Overflow", finite, add, F16_TOO,
          deberta_overflow },
        { "deberta-special-f16", "Storage Terms SpecialValues", "NaN or infinity lost", add,
          F16_TOO, deberta_special },
        { "deberta-special-bf16", "Storage Terms SpecialValues", "NaN or infinity lost", add,
          BF16_TOO, deberta_special },
        { "two-roundings-f16", "Storage Terms Tie TwoRoundings",
          "a sum rounded to f16 at once, where f32 comes first", add, F16_TOO, two_roundings },
        { "two-roundings-bf16", "Storage Terms Tie TwoRoundings",
          "a sum rounded to bf16 at once, where f32 comes first", add, BF16_TOO,
          two_roundings },
        { "shaw-stored", "Storage Clip", "sums kept in the type of x", sum, EVERY, weights },
        { "shaw-special-f16", "Storage SpecialValues Clip", "NaN spread to other columns", sum,
          F16_TOO, weights_special },
        { "shaw-special-bf16", "Storage SpecialValues Clip", "NaN spread to other columns", sum,
          BF16_TOO, weights_special },
    };
    list_stored(golden, cases, COUNT(cases));
}

static void list_biases(struct golden *golden)
{
    static const char rounded[] = "the bias rounded before the sum";
    static const char lost[] = "a subnormal read as 0; NaN or infinity lost";
    const struct stored cases[] = {
        { "h3-stored", "Storage Buckets", "a value cut off instead of rounded",
          POSENC_KERNEL_t5_bias, EVERY, t5 },
        { "h3-stored", "Storage Buckets", rounded, POSENC_KERNEL_t5_bias_add, EVERY, t5 },
        { "h3-special-f16", "Storage SpecialValues", lost, POSENC_KERNEL_t5_bias_add, F16_TOO,
          t5_special },
        { "h3-special-bf16", "Storage SpecialValues", lost, POSENC_KERNEL_t5_bias_add, BF16_TOO,
          t5_special },
        { "h3-overflow-f16", "Storage Overflow", finite, POSENC_KERNEL_t5_bias_add, F16_TOO,
          t5_overflow },
        { "b32-m128-uni-stored", "Storage Buckets",
          "keys after the query not in bucket 0; the last bucket never used",
          POSENC_KERNEL_t5_bias_add, EVERY, t5_causal },
        { "h3-stored", "Storage Distance", "a value cut off instead of rounded",
          POSENC_KERNEL_distance_bias, EVERY, distance },
        { "h3-stored", "Storage Distance", rounded, POSENC_KERNEL_distance_bias_add, EVERY,
          distance },
        { "h3-special-f16", "Storage SpecialValues", lost, POSENC_KERNEL_distance_bias_add,
          F16_TOO, distance_f16_special },
        { "h3-special-bf16", "Storage SpecialValues", lost, POSENC_KERNEL_distance_bias_add,
          BF16_TOO, distance_bf16_special },
        { "h3-overflow-f16", "Storage Overflow", finite, POSENC_KERNEL_distance_bias_add,
          F16_TOO, distance_overflow },
        { "w2x3-stored", "Storage Window", "a value cut off instead of rounded",
          POSENC_KERNEL_window_bias, EVERY, window },
        { "w2x3-stored", "Storage Window", rounded, POSENC_KERNEL_window_bias_add, EVERY,
          window },
        { "w2x3-overflow-f16", "Storage Overflow", finite, POSENC_KERNEL_window_bias_add,
          F16_TOO, window_overflow },
        { "w2x3-class-special-f16", "Storage Window ClassToken SpecialValues", lost,
          POSENC_KERNEL_window_bias_add, F16_TOO, window_class },
    };
    list_stored(golden, cases, COUNT(cases));
}

void list_stored_scores(struct golden *golden)
{
    list_alibi(golden);
    list_biases(golden);
    list_terms(golden);
}
