/*
 * Mistakes in biases of which an element depends on its head, its query and its key, at [batch,
 * heads, queries, keys]; and in rows of a learned table, at [batch, tokens, 1, channels].
 */
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>

static float in_table(const struct posenc_const_tensor *table, int64_t row, int64_t column)
{
    return ((const float *)storage_row(owned(table), row))[column];
}

/* ---- Learned ---- */

static float learned(struct place at, int64_t back, enum posenc_dtype type)
{
    const struct posenc_learned_args *a = &at.e->args.learned;
    const int64_t row = (int64_t)position_on(&a->positions, at.b, at.h, 0) - back;
    return round_to(type, in_table(&a->table, row < 0 ? 0 : row, at.j));
}

float previous_row(struct place at) { return learned(at, 1, POSENC_F32); }

/* What a framework does that keeps the table in the type of the activations. */
float row_in_type_of_x(struct place at)
{
    return learned(at, 0, at.e->given->learned.out.dtype);
}

/* ---- ALiBi ---- */

static const struct posenc_alibi_args *alibi(struct place at) { return &at.e->args.alibi; }

static float slope(struct place at)
{
    return alibi(at)->slopes[at.b * alibi(at)->slopes_stride_batch + at.h];
}

/* How far the key is after the query. */
static int64_t ahead(struct place at) { return at.j - at.i - alibi(at)->query_offset; }

static float distance(struct place at) { return (float)llabs(ahead(at)); }

/* As it should be, but for the slope and the distance; +0 at distance 0. */
static float linear(struct place at, float by, float far)
{
    return alibi(at)->causal && ahead(at) > 0 ? -INFINITY : 0.0f - by * far;
}

float late_mask(struct place at)
{
    return ahead(at) == 1 ? 0.0f - slope(at) : linear(at, slope(at), distance(at));
}

float finite_mask(struct place at)
{
    const float bias = linear(at, slope(at), distance(at));
    return isinf(bias) ? -1e9f : bias;
}

float bf16_distance(struct place at)
{
    return linear(at, slope(at), round_to(POSENC_BF16, distance(at)));
}

float first_slope(struct place at)
{
    struct place first = at;
    first.h = 0;
    return linear(at, slope(first), distance(at));
}

void slopes_of_first_batch(struct entered *e) { e->args.alibi.slopes_stride_batch = 0; }

float future_sign(struct place at) { return linear(at, slope(at), -(float)ahead(at)); }

/* BLOOM's, which softmax takes for the same. */
float slope_by_key(struct place at) { return linear(at, slope(at), -(float)at.j); }

float one_further(struct place at) { return linear(at, slope(at), distance(at) + 1.0f); }

float bias_in_type_of_x(struct place at)
{
    return round_to(at.e->given->alibi.out.dtype, linear(at, slope(at), distance(at)));
}

/* In descending order where the number of heads is no power of two. */
float descending_slopes(struct place at)
{
    const struct posenc_alibi_args *a = alibi(at);
    const float *slopes = a->slopes + at.b * a->slopes_stride_batch;
    const int64_t heads = a->out.shape[1];
    const bool power = (heads & (heads - 1)) == 0;
    float chosen = slopes[at.h];
    for (int64_t k = 0; k < heads && !power; k++) {
        int64_t above = 0;
        for (int64_t m = 0; m < heads; m++)
            above += slopes[m] > slopes[k];
        if (above == at.h)
            chosen = slopes[k];
    }
    return linear(at, chosen, distance(at));
}

/* ---- T5 ---- */

enum slip {
    NO_SLIP,
    LOW_AT_POWERS,
    ONE_SHORT,
    HALVES_SWAPPED,
    ZERO_AFTER,     /* distance 0 counts as after the query */
    FUTURE_DISTANCE /* so does |distance| where only keys before the query have one */
};

/* The value of a key that is `after` the query. */
static float t5(struct place at, int64_t after, int64_t head, enum slip slip)
{
    const struct posenc_t5_args *a = &at.e->args.t5;
    const bool both = a->bidirectional, any = both || slip == FUTURE_DISTANCE;
    after = slip == HALVES_SWAPPED && both ? -after : after;
    const int64_t n = both ? a->num_buckets / 2 : a->num_buckets;
    const int64_t far = any ? llabs(after) : after < 0 ? -after : 0;
    int64_t bucket = slip == ONE_SHORT ? n - 2 : n - 1;
    while (bucket > 0 && a->thresholds[bucket] > far)
        bucket--;
    const bool at_power = a->thresholds[bucket] == far && (far & (far - 1)) == 0;
    if (slip == LOW_AT_POWERS && bucket > n / 2 && at_power)
        bucket--;
    if (both && (after > 0 || (slip == ZERO_AFTER && after == 0)))
        bucket += n;
    return in_table(&a->table, bucket, head);
}

static float slipped(struct place at, enum slip slip)
{
    return t5(at, at.j - at.i - at.e->args.t5.query_offset, at.h, slip);
}

float low_at_powers(struct place at) { return slipped(at, LOW_AT_POWERS); }
float last_bucket_unused(struct place at) { return slipped(at, ONE_SHORT); }
float halves_swapped(struct place at) { return slipped(at, HALVES_SWAPPED); }
float zero_after(struct place at) { return slipped(at, ZERO_AFTER); }
float future_distance(struct place at) { return slipped(at, FUTURE_DISTANCE); }

float next_head(struct place at)
{
    struct place next = at;
    next.h = (at.h + 1) % at.e->parts.out->shape[1];
    return slipped(next, NO_SLIP);
}

/* Of its distance from key 0. */
float bucket_of_key(struct place at) { return t5(at, -at.j, at.h, NO_SLIP); }

/* ---- By distance ---- */

/* The value of a distance, or the nearest there is. */
static float value_at(struct place at, int64_t far)
{
    const struct posenc_distance_args *a = &at.e->args.distance;
    const int64_t last = a->values.shape[1] - 1, column = far - a->first;
    return in_table(&a->values, at.h, column < 0 ? 0 : column > last ? last : column);
}

static int64_t before(struct place at)
{
    return at.i + at.e->args.distance.query_offset - at.j;
}

float turned_distance(struct place at) { return value_at(at, -before(at)); }
float late_first(struct place at) { return value_at(at, before(at) - 1); }
float unsigned_distance(struct place at) { return value_at(at, llabs(before(at))); }
float query_offset_ignored(struct place at) { return value_at(at, at.i - at.j); }

float value_of_key(struct place at) { return value_at(at, at.e->args.distance.first + at.j); }

/* ---- By index in a window ---- */

static int64_t row_of(struct place at, int64_t i, int64_t j)
{
    return at.e->args.window.index[i * at.e->args.window.out.shape[3] + j];
}

static float in_row(struct place at, int64_t row)
{
    const struct posenc_const_tensor *table = &at.e->args.window.table;
    return in_table(table, row % table->shape[0], at.h);
}

/* key - query, where the displacement is query - key. */
float turned_window(struct place at)
{
    const int64_t *shape = at.e->args.window.out.shape;
    return in_row(at, shape[2] == shape[3] ? row_of(at, at.j, at.i) : row_of(at, at.i, at.j));
}

/* [heads, rows] where the table is [rows, heads]. */
float turned_table(struct place at)
{
    const struct posenc_const_tensor *table = &at.e->args.window.table;
    const int64_t heads = table->shape[1];
    const int64_t element = at.h * table->shape[0] + row_of(at, at.i, at.j);
    return in_table(table, element / heads, element % heads);
}

/* Windows stand where batches do. */
float row_by_window(struct place at) { return in_row(at, row_of(at, at.i, at.j) + at.b); }

float row_by_key(struct place at) { return in_row(at, row_of(at, at.i, at.j) + at.j); }

/* ---- Terms by relative position ---- */

static const struct posenc_relative_args *relative(struct place at)
{
    return &at.e->args.relative;
}

static int64_t keys_of(struct place at) { return relative(at)->out.shape[3]; }

static int64_t columns_of(struct place at)
{
    return (relative(at)->c2p.data ? &relative(at)->c2p : &relative(at)->p2c)->shape[3];
}

/* A column of each term; 0 of one that is absent. */
static float c2p(struct place at, int64_t column)
{
    const struct posenc_const_tensor *t = &relative(at)->c2p;
    return t->data ? row_at(owned(t), at.b, at.h, at.i)[column] : 0.0f;
}

static float p2c(struct place at, int64_t column)
{
    const struct posenc_const_tensor *t = &relative(at)->p2c;
    return t->data ? row_at(owned(t), at.b, at.h, at.j)[column] : 0.0f;
}

/* The bias of a value from each term. */
static float joined(struct place at, float of_c2p, float of_p2c)
{
    const float scale = relative(at)->scale;
    return !relative(at)->p2c.data   ? scale * of_c2p
           : !relative(at)->c2p.data ? scale * of_p2c
                                     : fmaf(scale, of_p2c, scale * of_c2p);
}

static float gathered(struct place at, int64_t c2p_column, int64_t p2c_column)
{
    return joined(at, c2p(at, c2p_column), p2c(at, p2c_column));
}

static float in_column(struct place at, int64_t column) { return gathered(at, column, column); }

static int64_t within(struct place at, int64_t column)
{
    const int64_t last = columns_of(at) - 1;
    return column < 0 ? 0 : column > last ? last : column;
}

/* Of the same element counted from the other end: keys after the query for those before it. */
float turned_columns(struct place at)
{
    const int64_t column = relative(at)->index[relative(at)->out.shape[2] - 1 - at.i + at.j];
    return gathered(at, column, column);
}

/* Transformer-XL's terms before their shift: column j for key j. */
float unshifted(struct place at)
{
    const bool by_key = columns_of(at) == keys_of(at);
    return gathered(at, by_key ? at.j : at.column, at.column);
}

float next_column(struct place at) { return in_column(at, within(at, at.column + 1)); }

/* Gathered for the query: not transposed. */
float p2c_at_query(struct place at)
{
    struct place turned = at;
    turned.j = at.i % keys_of(at);
    return joined(at, c2p(at, at.column), p2c(turned, at.column));
}

/* Gathered by the distance of the key from the query, not of the query from the key. */
float p2c_turned(struct place at)
{
    return gathered(at, at.column, within(at, columns_of(at) - at.column));
}

float p2c_forgotten(struct place at)
{
    const float term = (relative(at)->c2p.data ? c2p : p2c)(at, at.column);
    return relative(at)->scale * term;
}

float c2p_scaled_twice(struct place at)
{
    const float scale = relative(at)->scale;
    return joined(at, scale * c2p(at, at.column), p2c(at, at.column));
}

float p2c_unscaled(struct place at)
{
    return relative(at)->scale * c2p(at, at.column) + p2c(at, at.column);
}

float both_rounded(struct place at)
{
    const float scale = relative(at)->scale;
    return relative(at)->c2p.data && relative(at)->p2c.data
               ? scale * c2p(at, at.column) + scale * p2c(at, at.column)
               : in_column(at, at.column);
}

/* Onto scores before they are scaled: what is added is scaled with them. */
float scaled_with_x(struct place at)
{
    return relative(at)->x_scale * in_column(at, at.column);
}

void term_scale_ignored(struct entered *e) { e->args.relative.scale = 1.0f; }
