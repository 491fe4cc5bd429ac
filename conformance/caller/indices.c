/*
 * Builders of rows and columns, as offers: positions with padding, windows, relative positions.
 */
#include "offers.h"

#include <math.h>
#include <string.h>

static bool is_wrong(char *complaint, int64_t at, double got, int64_t wanted)
{
    return got != (double)wanted &&
           !complain(complaint, "element %lld is %g, by the header %lld", (long long)at, got,
                     (long long)wanted);
}

/* ---- Padding ---- */

enum { BATCH, TOKENS, MASK, PADDING, POSITIONS };

static wide count_padding(const struct trial *t, int i)
{
    (void)i;
    const wide batch = t->whole[BATCH], tokens = t->whole[TOKENS];
    return batch < 0 || tokens < 0 ? -1 : batch * tokens;
}

static double element_mask(struct draws *d, const struct trial *t, int i)
{
    (void)t;
    (void)i;
    return draw_one_in(d, 3) ? 0.0 : (double)draw_below(d, 256);
}

static wide padding_of(const struct trial *t, int64_t e)
{
    const int64_t tokens = t->whole[TOKENS];
    wide position = t->whole[PADDING];
    for (int64_t k = e - e % tokens; element_of(t, MASK, e) != 0.0 && k <= e; k++)
        position += element_of(t, MASK, k) != 0.0;
    return position;
}

static struct verdict judge_padding(const struct trial *t)
{
    struct verdict v = { 0, 0 };
    const wide batch = t->whole[BATCH], tokens = t->whole[TOKENS];
    const wide n = count_padding(t, MASK);
    due(&v, n != 0 && (!t->data[MASK] || !t->data[POSITIONS]), STATUS(ARGUMENT));
    due(&v, n < 0, STATUS(SHAPE));
    for (int64_t e = 0; t->backed[MASK] && e < n; e++) {
        const wide position = padding_of(t, e);
        due(&v, position < 0 || position > INT32_MAX, STATUS(POSITION));
    }
    /* Sizes of no array, and numbers of no position, whether or not there are any. */
    v.may |= batch > INT32_MAX || tokens > INT32_MAX ? STATUS(SHAPE) : 0u;
    v.may |= n <= 0 ? STATUS(POSITION) | STATUS(ARGUMENT) : 0u;
    return v;
}

static enum posenc_status call_padding(struct trial *t, struct posenc_error *error)
{
    (void)error;
    return posenc_padding_positions(t->whole[BATCH], t->whole[TOKENS], (void *)t->data[MASK],
                                    t->whole[PADDING], (void *)t->data[POSITIONS]);
}

static bool right_padding(const struct trial *t, char complaint[MOST_TEXT])
{
    for (int64_t e = 0; e < (int64_t)count_padding(t, MASK); e++)
        if (is_wrong(complaint, e, element_of(t, POSITIONS, e), (int64_t)padding_of(t, e)))
            return false;
    return true;
}

/* ---- Windows ---- */

static bool has_class(const struct trial *t)
{
    return strcmp(t->offer->name, "beit_index") == 0;
}

static wide count_window(const struct trial *t, int i)
{
    const wide n = (wide)t->whole[0] * t->whole[1] + has_class(t);
    const bool small = t->whole[0] >= 1 && t->whole[1] >= 1 && n < 1 << 20;
    (void)i;
    return small ? n * n : -1;
}

static enum posenc_status call_window(struct trial *t, struct posenc_error *error)
{
    (void)error;
    return has_class(t) ? posenc_beit_index(t->whole[0], t->whole[1], (void *)t->data[2])
                        : posenc_swin_index(t->whole[0], t->whole[1], (void *)t->data[2]);
}

static void settle_window(struct draws *d, struct trial *t)
{
    t->whole[0] = 1 + draw_below(d, 12);
    t->whole[1] = 1 + draw_below(d, 10);
}

static bool right_window(const struct trial *t, char complaint[MOST_TEXT])
{
    const int64_t height = t->whole[0], width = t->whole[1], first = has_class(t),
                  n = first + height * width, rows = (2 * height - 1) * (2 * width - 1);
    for (int64_t e = 0; e < n * n; e++) {
        const int64_t query = e / n - first, key = e % n - first;
        int64_t wanted = query < 0 ? (key < 0 ? rows + 2 : rows) : rows + 1;
        if (query >= 0 && key >= 0)
            wanted = (query / width - key / width + height - 1) * (2 * width - 1) +
                     query % width - key % width + width - 1;
        if (is_wrong(complaint, e, element_of(t, 2, e), wanted))
            return false;
    }
    return true;
}

/* ---- Relative positions ---- */

enum { QUERIES, KEYS, OFFSET, BUCKETS, DISTANCE, INDEX };

static wide count_relative(const struct trial *t, int i)
{
    (void)i;
    return t->whole[QUERIES] < 1 || t->whole[KEYS] < 1
               ? -1
               : (wide)t->whole[QUERIES] + t->whole[KEYS] - 1;
}

static bool is_called(const struct trial *t, const char *name)
{
    return strcmp(t->offer->name, name) == 0;
}

static void settle_relative(struct draws *d, struct trial *t)
{
    t->whole[OFFSET] = draw_below(d, 200) - 100;
    t->whole[BUCKETS] = draw_one_in(d, 3) ? 0 : 4 + 2 * draw_below(d, 20);
    t->whole[DISTANCE] += t->whole[BUCKETS];
}

static wide offset_of(const struct trial *t)
{
    return is_called(t, "transformer_xl_index") ? (wide)t->whole[KEYS] - t->whole[QUERIES]
                                                : (wide)t->whole[OFFSET];
}

static struct verdict judge_relative(const struct trial *t)
{
    struct verdict v = { 0, 0 };
    const int64_t most = 1 << 24, n_queries = t->whole[QUERIES], keys = t->whole[KEYS],
                  buckets = t->whole[BUCKETS], distance = t->whole[DISTANCE];
    const wide last = offset_of(t) + n_queries - 1, first = offset_of(t) - keys + 1;
    due(&v, !t->data[INDEX], STATUS(ARGUMENT));
    due(&v, n_queries < 1 || n_queries >= most || keys < 1 || keys >= most, STATUS(SHAPE));
    due(&v, last >= most || first <= -most, STATUS(SHAPE));
    if (is_called(t, "transformer_xl_index"))
        return v;
    due(&v, distance < 1 || distance > 1 << 20, STATUS(SHAPE));
    due(&v,
        is_called(t, "deberta_index") && buckets != 0 &&
            (buckets < 4 || buckets > 4096 || buckets % 2 != 0 || buckets >= distance),
        STATUS(SHAPE));
    return v;
}

static enum posenc_status call_relative(struct trial *t, struct posenc_error *error)
{
    int32_t *index = (void *)t->data[INDEX];
    const int64_t *n = t->whole;
    (void)error;
    return is_called(t, "shaw_index")
               ? posenc_shaw_index(n[QUERIES], n[KEYS], n[OFFSET], n[DISTANCE], index)
           : is_called(t, "deberta_index")
               ? posenc_deberta_index(n[QUERIES], n[KEYS], n[OFFSET], n[BUCKETS], n[DISTANCE],
                                      index)
               : posenc_transformer_xl_index(n[QUERIES], n[KEYS], index);
}

static int64_t clip(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* The logarithm raised or lowered a little, for those on the edge of a bucket. */
static int64_t deberta_column(const struct trial *t, int64_t d, double nudge)
{
    const int64_t m = t->whole[BUCKETS] / 2, size = d < 0 ? -d : d;
    const int64_t span = m ? t->whole[BUCKETS] : t->whole[DISTANCE];
    int64_t bucket = size;
    if (m && size > m)
        bucket = m + (int64_t)ceil(log((double)size / (double)m) /
                                       log((double)(t->whole[DISTANCE] - 1) / (double)m) *
                                       (double)(m - 1) +
                                   nudge);
    return clip((d < 0 ? -bucket : bucket) + span, 0, 2 * span - 1);
}

static bool right_relative(const struct trial *t, char complaint[MOST_TEXT])
{
    const int64_t keys = t->whole[KEYS], far = t->whole[DISTANCE];
    for (int64_t e = 0; e < (int64_t)count_relative(t, INDEX); e++) {
        const int64_t d = e - (keys - 1) + (int64_t)offset_of(t);
        const double got = element_of(t, INDEX, e);
        int64_t wanted;
        if (is_called(t, "transformer_xl_index"))
            wanted = keys - 1 - d < keys - 1 ? keys - 1 - d : keys - 1;
        else if (is_called(t, "deberta_index"))
            wanted =
                deberta_column(t, d, got == (double)deberta_column(t, d, 1e-9) ? 1e-9 : -1e-9);
        else
            wanted = clip(-d, -far, far) + far;
        if (is_wrong(complaint, e, got, wanted))
            return false;
    }
    return true;
}

/* ---- The list ---- */

#define WINDOW(id)                                                                             \
    {                                                                                          \
        .name = id,                                                                            \
        .of = { { "height", KIND_WHOLE, 1, 256, false },                                       \
                { "width", KIND_WHOLE, 1, 256, false },                                        \
                { "index", KIND_INTS, 0, 0, true } },                                          \
        .settle = settle_window, .count = count_window, .judge = judge_by_ends,                \
        .call = call_window, .right = right_window                                             \
    }
#define RELATIVE(id)                                                                           \
    {                                                                                          \
        .name = id,                                                                            \
        .of = { { "queries", KIND_WHOLE, 1, 16777215, false },                                 \
                { "keys", KIND_WHOLE, 1, 16777215, false },                                    \
                { "query_offset", KIND_WHOLE, -16777215, 16777215, false },                    \
                { "position_buckets", KIND_WHOLE, 0, 4096, false },                            \
                { "max_distance", KIND_WHOLE, 1, 1048576, false },                             \
                { "index", KIND_INTS, 0, 0, true } },                                          \
        .settle = settle_relative, .count = count_relative, .judge = judge_relative,           \
        .call = call_relative, .right = right_relative                                         \
    }

const struct offer offers_indices[] = {
    { .name = "padding_positions",
      .of = { { "batch", KIND_WHOLE, 0, 0x1p31, false },
              { "tokens", KIND_WHOLE, 0, 0x1p31, false },
              { "mask", KIND_BYTES, 0, 0, false },
              { "padding_idx", KIND_WHOLE, 0, 2147483647, false },
              { "positions", KIND_INTS, 0, 0, true } },
      .count = count_padding,
      .element = element_mask,
      .judge = judge_padding,
      .call = call_padding,
      .right = right_padding },
    WINDOW("swin_index"),
    WINDOW("beit_index"),
    RELATIVE("shaw_index"),
    RELATIVE("transformer_xl_index"),
    RELATIVE("deberta_index"),
    { .name = NULL }
};
