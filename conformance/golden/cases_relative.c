/*
 * Cases of what queries give keys: slopes by batch, biases by distance and by window, terms by
 * relative position.
 */
#include "golden.h"

static const char flash[] =
    "flash-attention flash_attn_interface.py, alibi_slopes [batch, heads]";
static const char kerple[] = "arXiv:2205.09921 section 4; KERPLE megatron/mpu/layers.py";
static const char sandwich[] = "arXiv:2212.10356 section 4";
static const char swin[] = "arXiv:2103.14030 section 3.2; Swin-Transformer WindowAttention";
static const char beit[] = "arXiv:2106.08254; transformers modeling_beit.py";
static const char *const relative_sources[] = {
    [RELATIVE_DEBERTA] = "arXiv:2006.03654 section 3.1; transformers modeling_deberta_v2.py",
    [RELATIVE_SHAW] = "arXiv:1803.02155 sections 3.2, 3.3",
    [RELATIVE_TRANSFORMER_XL] = "arXiv:1901.02860 section 3.3, appendix B",
};

#define COUNT(list) ((int64_t)(sizeof(list) / sizeof *(list)))

static struct problem *scores(struct golden *golden, enum posenc_kernel kernel,
                              const char *flags, const char *note, const char *source,
                              const char *suffix, int64_t heads, int64_t queries, int64_t keys,
                              int64_t query_offset)
{
    struct problem *p = add_case(golden, kernel, flags, note, source, "%s", suffix);
    p->heads = heads;
    p->queries = queries;
    p->keys = keys;
    p->query_offset = query_offset;
    return p;
}

/* What each *_add is tried with beside a plain sum. */
static const struct {
    const char *name, *flags, *note;
} sums[] = {
    { "add-scale", "Scale Batch", "scale applied to the bias as well, or the product rounded" },
    { "add-in-place", "InPlace Stride", "in place, rows apart, unaligned" },
    { "add-special", "SpecialValues", "NaN or infinity lost" },
};

static void vary(struct problem *p, int k)
{
    if (k == 0) {
        p->x_scale = 0.088388346f; /* 1/sqrt(128) */
        p->batch = 2;
    } else if (k == 1) {
        p->in_place = true;
        p->pad = 3;
        p->offset_bytes = 12;
    } else {
        p->special = true;
    }
}

/* ---- Slopes by batch ---- */

static void list_slopes(struct golden *golden)
{
    static const char note[] = "the slopes of the first batch for all of them";
    const enum posenc_kernel bias = POSENC_KERNEL_alibi, add = POSENC_KERNEL_alibi_add;
    struct problem *p;
    add_group(golden, "slopes_by_batch");
    p = scores(golden, bias, "SlopesByBatch Batch", note, flash, "b3-h4", 4, 2, 9, 7);
    p->batch = 3;
    p->slopes_by_batch = true;
    p = scores(golden, bias, "SlopesByBatch Batch Causal", note, flash, "b2-h1-causal", 1, 4, 6,
               2);
    p->batch = 2;
    p->slopes_by_batch = p->causal = true;
    for (int k = 0; k < COUNT(sums); k++) {
        p = scores(golden, add, "SlopesByBatch Batch", note, flash, sums[k].name, 5, 3, 19, 16);
        vary(p, k);
        p->batch = 3;
        p->slopes_by_batch = true;
        p->causal = k == 1;
    }
}

/* ---- Biases by distance ---- */

static void list_distances(struct golden *golden)
{
    const enum posenc_kernel bias = POSENC_KERNEL_distance_bias,
                             add = POSENC_KERNEL_distance_bias_add;
    struct problem *p;
    add_group(golden, "distance");
    scores(golden, bias, "Distance", "key - query taken for query - key", kerple, "h3-square",
           3, 7, 7, 0);
    scores(golden, bias, "Distance", "one query, its distances from the last key on", kerple,
           "h4-decode", 4, 1, 37, 36);
    scores(golden, bias, "Distance Negative", "distances below 0 by their magnitude", sandwich,
           "h2-before", 2, 3, 9, -5);
    scores(golden, bias, "Distance LargePosition", "distances from 0 on in the table", sandwich,
           "h2-far", 2, 3, 20, 100000);
    p = scores(golden, bias, "Distance Stride",
               "more distances than the call has: rows of the table farther apart", kerple,
               "h5-more-distances", 5, 3, 18, 15);
    p->distances = 40;
    p = scores(golden, bias, "Distance Stride", "rows apart, unaligned", sandwich, "h3-pad", 3,
               4, 21, 17);
    p->pad = 3;
    p->offset_bytes = 4;
    scores(golden, bias, "Distance", "a single score", kerple, "h1-one", 1, 1, 1, 0);
    for (int k = 0; k < COUNT(sums); k++)
        vary(scores(golden, add, sums[k].flags, sums[k].note, kerple, sums[k].name, 3, 4, 19,
                    15),
             k);
}

/* ---- Windows ---- */

static struct problem *window(struct golden *golden, enum posenc_kernel kernel,
                              const char *flags, const char *note, const char *source,
                              const char *suffix, int64_t heads, int64_t height, int64_t width)
{
    struct problem *p = add_case(golden, kernel, flags, note, source, "%s", suffix);
    p->heads = heads;
    p->window_height = height;
    p->window_width = width;
    return p;
}

static void list_windows(struct golden *golden)
{
    const enum posenc_kernel bias = POSENC_KERNEL_window_bias,
                             add = POSENC_KERNEL_window_bias_add;
    static const char turned[] = "heights and widths exchanged";
    struct problem *p;
    add_group(golden, "window");
    window(golden, bias, "Window", "published rows 4 3 1 0, 5 4 2 1, 7 6 4 3, 8 7 5 4", swin,
           "swin-2x2", 3, 2, 2);
    window(golden, bias, "Window", "the window of Swin: heads and rows of the table exchanged",
           swin, "swin-7x7", 1, 7, 7);
    window(golden, bias, "Window", turned, swin, "swin-2x3", 3, 2, 3);
    window(golden, bias, "Window", turned, swin, "swin-5x2", 2, 5, 2);
    window(golden, bias, "Window", "a window of one row", swin, "swin-1x5", 2, 1, 5);
    window(golden, bias, "Window ClassToken", "the class token's three rows exchanged", beit,
           "beit-2x2", 3, 2, 2)
        ->window_class = true;
    window(golden, bias, "Window ClassToken", turned, beit, "beit-6x7", 1, 6, 7)->window_class =
        true;
    window(golden, bias, "Window ClassToken", "the class token without others", beit,
           "beit-1x1", 2, 1, 1)
        ->window_class = true;
    for (int k = 0; k < COUNT(sums); k++)
        vary(window(golden, add, sums[k].flags, sums[k].note, swin, sums[k].name, 2, 3, 4), k);
    p = window(golden, add, "Window ClassToken Batch", "windows taken for heads", beit,
               "beit-add", 3, 2, 2);
    p->window_class = true;
    p->batch = 4;
}

/* ---- Terms by relative position ---- */

static struct problem *terms(struct golden *golden, enum posenc_kernel kernel,
                             enum relative relative, const char *flags, const char *note,
                             const char *suffix, int64_t queries, int64_t keys,
                             int64_t query_offset)
{
    struct problem *p = scores(golden, kernel, flags, note, relative_sources[relative], suffix,
                               2, queries, keys, query_offset);
    p->relative = relative;
    return p;
}

/* Which terms there are: c2p, p2c, both. */
static void list_deberta_v3(struct golden *golden)
{
    static const char *const names[] = { "deberta-v3-c2p", "deberta-v3-p2c", "deberta-v3" };
    for (int k = 0; k < COUNT(names); k++) {
        struct problem *p = terms(
            golden, POSENC_KERNEL_relative_bias, RELATIVE_DEBERTA, "Terms LogBuckets",
            "256 buckets up to 512, at distances -512 to 512: -511 and 511 a column too far, "
            "512 beyond the table, 128 and 129 where buckets begin",
            names[k], 1, 1025, 512);
        p->heads = 1;
        p->num_buckets = 256;
        p->max_distance = 512;
        p->without_c2p = k == 1;
        p->with_p2c = k > 0;
        p->scale = k == 2 ? 0.0721687824 : 0.0883883461; /* 1/sqrt(3 64), 1/sqrt(2 64) */
    }
}

static void small_deberta(struct problem *p)
{
    p->num_buckets = 8;
    p->max_distance = 20;
    p->with_p2c = true;
    p->scale = 0.0721687824;
}

static void list_deberta(struct golden *golden)
{
    const enum posenc_kernel bias = POSENC_KERNEL_relative_bias,
                             add = POSENC_KERNEL_relative_bias_add;
    struct problem *p;
    list_deberta_v3(golden);
    small_deberta(terms(golden, bias, RELATIVE_DEBERTA, "Terms LogBuckets",
                        "p2c of the query, or its column of key - query", "deberta-square", 13,
                        13, 0));
    small_deberta(terms(golden, bias, RELATIVE_DEBERTA, "Terms LogBuckets",
                        "one query at the end", "deberta-decode", 1, 30, 29));
    p = terms(golden, bias, RELATIVE_DEBERTA, "Terms Clip",
              "distances themselves, without buckets", "deberta-base", 9, 21, 6);
    p->max_distance = 8;
    p->with_p2c = true;
    for (int k = 0; k < COUNT(sums); k++) {
        p = terms(golden, add, RELATIVE_DEBERTA, sums[k].flags, sums[k].note, sums[k].name, 5,
                  19, 9);
        small_deberta(p);
        vary(p, k);
    }
}

static void list_shaw(struct golden *golden)
{
    static const struct {
        const char *name;
        int64_t most, queries, keys, query_offset;
    } all[] = { { "shaw-k2", 2, 6, 9, 1 },
                { "shaw-k16", 16, 1, 41, 20 },
                { "shaw-k16-near", 16, 5, 7, 0 } };
    const enum posenc_kernel bias = POSENC_KERNEL_relative_bias,
                             sum = POSENC_KERNEL_relative_sum;
    for (int64_t k = 0; k < COUNT(all); k++) {
        terms(golden, bias, RELATIVE_SHAW, "Terms Clip",
              "query - key for key - query; beyond k not clipped", all[k].name, all[k].queries,
              all[k].keys, all[k].query_offset)
            ->max_distance = all[k].most;
        terms(golden, sum, RELATIVE_SHAW, "Clip",
              "columns of no key not 0; of clipped ones the last key", all[k].name,
              all[k].queries, all[k].keys, all[k].query_offset)
            ->max_distance = all[k].most;
    }
    struct problem *p =
        terms(golden, POSENC_KERNEL_relative_bias_add, RELATIVE_SHAW, "Terms Clip Scale Batch",
              "the scale of the terms taken for that of the scores", "shaw-add", 5, 9, 4);
    p->max_distance = 2;
    p->batch = 2;
    p->scale = 0.125;
    p->x_scale = 0.125f;
    p = terms(golden, sum, RELATIVE_SHAW, "Clip Order",
              "sums in pairs, by parts or from the last key on", "shaw-long", 2, 300, 150);
    p->max_distance = 1;
    p = terms(golden, sum, RELATIVE_SHAW, "Clip Order Batch Stride",
              "rows apart, unaligned, by batch", "shaw-batch", 4, 33, 16);
    p->max_distance = 2;
    p->batch = 2;
    p->token_major = false;
    p->pad = 3;
    p->offset_bytes = 4;
    p = terms(golden, sum, RELATIVE_SHAW, "Clip SpecialValues",
              "NaN in another column; -0 where the sum begins at +0", "shaw-special", 4, 33,
              16);
    p->max_distance = 12;
    p->special = true;
    p = terms(golden, sum, RELATIVE_DEBERTA, "LogBuckets Order", "the gradient of c2p",
              "deberta", 5, 60, 30);
    p->num_buckets = 8;
    p->max_distance = 20;
}

static void list_transformer_xl(struct golden *golden)
{
    static const struct {
        const char *name, *note;
        int64_t queries, keys;
    } all[] = { { "transformer-xl-memory", "the shift without the memory's keys", 5, 12 },
                { "transformer-xl", "the column of distance 0 first", 6, 6 },
                { "transformer-xl-decode", "one query: nothing to shift", 1, 9 } };
    for (int64_t k = 0; k < COUNT(all); k++)
        terms(golden, POSENC_KERNEL_relative_bias, RELATIVE_TRANSFORMER_XL, "Terms Shift",
              all[k].note, all[k].name, all[k].queries, all[k].keys,
              all[k].keys - all[k].queries);
    struct problem *p = terms(
        golden, POSENC_KERNEL_relative_bias_add, RELATIVE_TRANSFORMER_XL, "Terms Shift Scale",
        "the scale before the sum: (q k + shifted) scale", "transformer-xl-add", 5, 12, 7);
    p->scale = 0.125;
    p->x_scale = 0.125f;
    terms(golden, POSENC_KERNEL_relative_sum, RELATIVE_TRANSFORMER_XL, "Shift",
          "the gradient, shifted back", "transformer-xl", 5, 12, 7);
}

void list_relative(struct golden *golden)
{
    list_slopes(golden);
    list_distances(golden);
    list_windows(golden);
    add_group(golden, "relative");
    list_deberta(golden);
    list_shaw(golden);
    list_transformer_xl(golden);
}
