/*
 * What the library builds for its kernels, made by the real functions (their refusals, too) and
 * then mistaken: slopes, thresholds, positions among padding, indices.
 */
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>

/* What a builder was given, and the n integers that it made. */
struct built {
    int64_t n, last; /* last: the largest of them that there can be */
    int64_t columns; /* keys, tokens */
    int64_t offset, buckets, most;
    const uint8_t *mask;
    int32_t *index;
};

static int64_t clip(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Gives each integer of the builder that the mistake is made in another value, from the first
 * one on. */
static enum posenc_status change(enum how builder, enum posenc_status status,
                                 const struct built *b,
                                 int64_t (*value)(const struct built *b, int64_t e))
{
    if (status != POSENC_OK || mistake_now->how != builder)
        return status;
    mistake_made();
    for (int64_t e = 0; e < b->n; e++)
        b->index[e] = (int32_t)value(b, e);
    return status;
}

/* ---- Slopes ---- */

static enum posenc_status alibi_slopes(int64_t heads, double bias_max, float *slopes)
{
    const enum posenc_status status = posenc_alibi_slopes(heads, bias_max, slopes);
    const bool power = (heads & (heads - 1)) == 0;
    if (status != POSENC_OK || mistake_now->how != HOW_alibi_slopes)
        return status;
    mistake_made();
    /* One geometric sequence however many heads, or from h = 0 where they are a power of two. */
    for (int64_t h = 0; h < heads && (power || SLIP(geometric_slopes)); h++)
        slopes[h] =
            (float)exp2(-bias_max * (double)(h + !SLIP(slopes_from_zero)) / (double)heads);
    return status;
}

/* ---- T5 ---- */

/* The least distance whose bucket, as a logarithm in floating point makes it, is e or more:
 * exact + trunc(log(n / exact) / log(max_distance / exact) (n_buckets - exact)).  The logarithm is
 * one step too low, but not below 0, or in bf16. */
static int64_t threshold_by_log(const struct built *b, int64_t e)
{
    const int64_t exact = b->n / 2;
    const float all = (float)(b->n - exact), span = logf((float)b->most / (float)exact);
    const int64_t from = e > exact ? b->index[e - 1] : exact; /* where the one before begins */
    for (int64_t n = from; exact > 0 && e >= exact && n <= 2 * b->most; n++) {
        const float log_n = logf((float)n / (float)exact);
        const float wrong = SLIP(bf16_thresholds) ? storage_round(POSENC_BF16, log_n)
                            : n > exact           ? nextafterf(log_n, 0.0f)
                                                  : 0.0f;
        if (exact + (int64_t)(wrong / span * all) >= e)
            return n;
    }
    return b->index[e];
}

static enum posenc_status t5_thresholds(int64_t buckets, int64_t most, bool bidirectional,
                                        int32_t *thresholds)
{
    const struct built b = { .n = bidirectional ? buckets / 2 : buckets,
                             .most = most,
                             .index = thresholds };
    return change(HOW_t5_thresholds,
                  posenc_t5_thresholds(buckets, most, bidirectional, thresholds), &b,
                  threshold_by_log);
}

/* ---- Padding ---- */

static int64_t padding_position(const struct built *b, int64_t e)
{
    int64_t count = 0; /* tokens of its batch so far, this one included */
    for (int64_t t = e - e % b->columns; t <= e; t++)
        count += b->mask[t] || SLIP(padding_counted);
    if (!b->mask[e] && !SLIP(padding_keeps_count))
        return b->offset;
    return SLIP(padding_from_zero) ? count - 1 : b->offset + count;
}

static enum posenc_status padding_positions(int64_t batch, int64_t tokens, const uint8_t *mask,
                                            int64_t padding_idx, int32_t *positions)
{
    const struct built b = { .n = batch * tokens,
                             .columns = tokens,
                             .offset = padding_idx,
                             .mask = mask,
                             .index = positions };
    return change(HOW_padding_positions,
                  posenc_padding_positions(batch, tokens, mask, padding_idx, positions), &b,
                  padding_position);
}

/* ---- Rows of a window ---- */

/* The index of the real function, another value for each. */
static int64_t row_or_column(const struct built *b, int64_t e)
{
    const int64_t at = b->index[e], of_class = b->last - 2;
    /* From the last to the first: key - query for query - key, distances in ascending order. */
    if (SLIP(turned_index))
        return b->last - at;
    /* Of the three last rows those for the class token as a query and as a key. */
    if (SLIP(class_swapped))
        return at == of_class ? of_class + 1 : at == of_class + 1 ? of_class : at;
    return clip(at - SLIP(one_column_off), SLIP(clipped_early),
                b->last - (SLIP(clipped_early) || SLIP(one_bucket_short)));
}

/* The index of a window, with `more` tokens that have no place in it and three more rows for
 * each. */
static struct built window(int64_t height, int64_t width, int64_t more, int32_t *index)
{
    const int64_t tokens = height * width + more;
    return (struct built){ .n = tokens * tokens,
                           .last = (2 * height - 1) * (2 * width - 1) - 1 + 3 * more,
                           .index = index };
}

static enum posenc_status swin_index(int64_t height, int64_t width, int32_t *index)
{
    const struct built b = window(height, width, 0, index);
    const bool swapped = SLIP(sides_swapped);
    return change(HOW_swin_index,
                  posenc_swin_index(swapped ? width : height, swapped ? height : width, index),
                  &b, row_or_column);
}

static enum posenc_status beit_index(int64_t height, int64_t width, int32_t *index)
{
    const struct built b = window(height, width, 1, index);
    return change(HOW_beit_index, posenc_beit_index(height, width, index), &b, row_or_column);
}

/* ---- Columns by relative position ---- */

static struct built distances(int64_t queries, int64_t keys, int64_t last, int32_t *index)
{
    return (
        struct built){ .n = queries + keys - 1, .last = last, .columns = keys, .index = index };
}

static enum posenc_status shaw_index(int64_t queries, int64_t keys, int64_t query_offset,
                                     int64_t most, int32_t *index)
{
    const struct built b = distances(queries, keys, 2 * most, index);
    return change(HOW_shaw_index, posenc_shaw_index(queries, keys, query_offset, most, index),
                  &b, row_or_column);
}

static enum posenc_status transformer_xl_index(int64_t queries, int64_t keys, int32_t *index)
{
    const struct built b = distances(queries, keys, keys - 1, index);
    return change(HOW_transformer_xl_index, posenc_transformer_xl_index(queries, keys, index),
                  &b, row_or_column);
}

/* A column of DeBERTa's, whose buckets beyond m = position_buckets/2 are logarithms. */
static int64_t deberta_column(const struct built *b, int64_t e)
{
    const int64_t m = b->buckets / 2, before = e - (b->columns - 1) + b->offset;
    if (SLIP(one_bucket_short))
        return row_or_column(b, e);
    if (m == 0 || llabs(before) <= m)
        return b->index[e];
    /* Distances beyond the last are cut to it first, as in the table of the authors' code. */
    const int64_t far =
        SLIP(clamped_bucket) ? clip(llabs(before), 0, b->most - 1) : llabs(before);
    /* How many beyond m, as a real number; f64 is within 1e-9 of where it is whole. */
    const double beyond =
        log((double)far / (double)m) / log((double)(b->most - 1) / (double)m) * (double)(m - 1);
    const float high = nextafterf(logf((float)far / (float)m), INFINITY) /
                       logf((float)(b->most - 1) / (float)m) * (float)(m - 1);
    const int64_t bucket = m + (int64_t)(SLIP(high_bucket)        ? ceil((double)high)
                                         : SLIP(truncated_bucket) ? trunc(beyond + 1e-9)
                                                                  : ceil(beyond - 1e-9));
    return clip(b->buckets + (before < 0 && !SLIP(unsigned_bucket) ? -bucket : bucket), 0,
                b->last);
}

static enum posenc_status deberta_index(int64_t queries, int64_t keys, int64_t query_offset,
                                        int64_t buckets, int64_t most, int32_t *index)
{
    struct built b = distances(queries, keys, 2 * (buckets > 0 ? buckets : most) - 1, index);
    b.offset = query_offset;
    b.buckets = buckets;
    b.most = most;
    return change(HOW_deberta_index,
                  posenc_deberta_index(queries, keys, query_offset, buckets, most, index), &b,
                  deberta_column);
}

void take_builders(struct implementation *implementation)
{
    implementation->alibi_slopes = alibi_slopes;
    implementation->t5_thresholds = t5_thresholds;
    implementation->padding_positions = padding_positions;
    implementation->swin_index = swin_index;
    implementation->beit_index = beit_index;
    implementation->shaw_index = shaw_index;
    implementation->transformer_xl_index = transformer_xl_index;
    implementation->deberta_index = deberta_index;
}
