/*
 * Kernels whose elements are a value each, or x and that value: biases, by head, query and key,
 * at [batch, heads, queries, keys]; rows of tables, at [batch, tokens, 1, channels].
 */
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>

/* An element of the output, [b, h, i, j]. */
struct place {
    const struct entered *e;
    int64_t b, h, i, j;
};

static float in_table(const struct posenc_const_tensor *table, int64_t row, int64_t column)
{
    return ((const float *)storage_row(input_as_writable(table), row))[column];
}

/* The nearest of n columns. */
static int64_t within(int64_t n, int64_t column)
{
    return column < 0 ? 0 : column < n ? column : n - 1;
}

/* What a framework does that keeps tables and biases in the type of the activations. */
static float narrowed(const struct place *at, bool slip, float value)
{
    return slip ? storage_round(at->e->stored, value) : value;
}

/* ---- Tables ---- */

static float learned(const struct place *at)
{
    const struct posenc_learned_args *a = &at->e->args.learned;
    const int64_t row = (int64_t)position_on(&a->positions, at->b, at->h, 0);
    const int64_t read = SLIP(previous_row) && row > 0 ? row - 1 : row;
    return narrowed(at, SLIP(row_in_type_of_x), in_table(&a->table, read, at->j));
}

/* From the table that the kernel without x makes. */
static float sinusoidal(const struct place *at)
{
    const int64_t *shape = at->e->parts.out->shape;
    const float *row = (const float *)at->e->kept + (at->b * shape[1] + at->h) * shape[3];
    return narrowed(at, SLIP(sines_in_type_of_x), row[at->j]);
}

static void make_sinusoidal_table(struct entered *e)
{
    struct posenc_sinusoidal_args table = e->args.sinusoidal;
    const int64_t *shape = table.out.shape;
    float *sines = enter_keep(e, shape[0] * shape[1] * shape[3], sizeof *sines);
    table.x = (struct posenc_const_tensor){ 0 };
    table.out = posenc_dense(sines, 4, shape[0], shape[1], 1, shape[3]);
    e->status = mistake_base->sinusoidal(&table);
}

/* ---- ALiBi ---- */

/* The head whose slope so many are above, where the number of heads is no power of two. */
static int64_t in_descending_order(const float *slopes, int64_t heads, int64_t h)
{
    for (int64_t k = 0; (heads & (heads - 1)) != 0 && k < heads; k++) {
        int64_t above = 0;
        for (int64_t m = 0; m < heads; m++)
            above += slopes[m] > slopes[k];
        if (above == h)
            return k;
    }
    return h;
}

static float alibi(const struct place *at)
{
    const struct posenc_alibi_args *a = &at->e->args.alibi;
    const float *slopes = a->slopes + at->b * a->slopes_stride_batch;
    const int64_t ahead =
        at->j - at->i - a->query_offset; /* how far the key is after the query */
    const int64_t head = SLIP(first_slope) ? 0
                         : SLIP(descending_slopes)
                             ? in_descending_order(slopes, a->out.shape[1], at->h)
                             : at->h;
    const int64_t far = SLIP(future_sign)    ? -ahead
                        : SLIP(slope_by_key) ? -at->j /* which softmax takes for the same */
                                             : llabs(ahead) + SLIP(one_further);
    const float distance =
        storage_round(SLIP(bf16_distance) ? POSENC_BF16 : POSENC_F32, (float)far);
    if (a->causal && ahead > SLIP(late_mask))
        return SLIP(finite_mask) ? -1e9f : -INFINITY;
    /* +0 at distance 0. */
    return narrowed(at, SLIP(bias_in_type_of_x), 0.0f - slopes[head] * distance);
}

/* ---- By bucket, distance or index ---- */

static float t5(const struct place *at)
{
    const struct posenc_t5_args *a = &at->e->args.t5;
    const bool both = a->bidirectional, turned = both && SLIP(halves_swapped);
    const int64_t ahead = SLIP(bucket_of_key) ? -at->j : at->j - at->i - a->query_offset;
    const int64_t after = turned ? -ahead : ahead;
    const int64_t far = both || after < 0 || SLIP(future_distance) ? llabs(after) : 0;
    const int64_t n = both ? a->num_buckets / 2 : a->num_buckets;
    int64_t bucket = n - 1 - SLIP(last_bucket_unused);
    while (bucket > 0 && a->thresholds[bucket] > far)
        bucket--;
    while (SLIP(first_of_equal) && bucket > 0 &&
           a->thresholds[bucket - 1] == a->thresholds[bucket])
        bucket--;
    const bool at_power = a->thresholds[bucket] == far && (far & (far - 1)) == 0;
    bucket -= SLIP(low_at_powers) && bucket > n / 2 && at_power;
    bucket += both && after + SLIP(zero_after) > 0 ? n : 0;
    return in_table(&a->table, bucket, (at->h + SLIP(next_head)) % a->out.shape[1]);
}

static float distance(const struct place *at)
{
    const struct posenc_distance_args *a = &at->e->args.distance;
    const int64_t offset = SLIP(query_offset_ignored) ? 0 : a->query_offset;
    const int64_t before = at->i + offset - at->j;
    const int64_t far = SLIP(value_of_key)        ? a->first + at->j
                        : SLIP(turned_distance)   ? -before
                        : SLIP(unsigned_distance) ? llabs(before)
                                                  : before - SLIP(late_first);
    return in_table(&a->values, at->h, within(a->values.shape[1], far - a->first));
}

static float window(const struct place *at)
{
    const struct posenc_window_args *a = &at->e->args.window;
    const int64_t rows = a->table.shape[0], heads = a->table.shape[1], keys = a->out.shape[3];
    const bool turned = SLIP(turned_window) && a->out.shape[2] == keys; /* key - query */
    const int64_t row =
        turned ? a->index[at->j * keys + at->i] : a->index[at->i * keys + at->j];
    const int64_t element = at->h * rows + row; /* of a table [heads, rows] */
    if (SLIP(turned_table))
        return in_table(&a->table, element / heads, element % heads);
    /* Windows stand where batches do. */
    const int64_t more = SLIP(row_by_window) ? at->b : SLIP(row_by_key) ? at->j : 0;
    return in_table(&a->table, (row + more) % rows, at->h);
}

/* ---- Terms by relative position ---- */

/* DeBERTa's c2p, of the query, and p2c, of the key; or one of them. */
static float relative(const struct place *at)
{
    const struct posenc_relative_args *a = &at->e->args.relative;
    const struct posenc_tensor *c2p = input_as_writable(&a->c2p),
                               *p2c = input_as_writable(&a->p2c);
    const int64_t columns = (c2p->data ? c2p : p2c)->shape[3], keys = a->out.shape[3];
    /* Counted from the other end: keys after the query for those before it. */
    const int64_t from =
        SLIP(turned_columns) ? a->out.shape[2] - 1 - at->i + at->j : at->i - at->j + keys - 1;
    const int64_t column = within(columns, a->index[from] + SLIP(next_column));
    /* Transformer-XL's terms before their shift have column j for key j. */
    const int64_t of_query = SLIP(unshifted) && columns == keys ? at->j : column;
    const int64_t of_key = SLIP(p2c_turned) ? within(columns, columns - column) : column;
    const int64_t key = SLIP(p2c_at_query) ? at->i % keys : at->j;
    const float *q = c2p->data ? row_at(c2p, at->b, at->h, at->i) + of_query : NULL;
    const float *k = p2c->data && !(q && SLIP(p2c_forgotten))
                         ? row_at(p2c, at->b, at->h, key) + of_key
                         : NULL;
    const float by_q = a->scale * (SLIP(c2p_scaled_twice) ? a->scale : 1.0f);
    const float by_k = SLIP(p2c_unscaled) ? 1.0f : a->scale;
    const float bias = !k                   ? by_q * *q
                       : !q                 ? by_k * *k
                       : SLIP(both_rounded) ? by_q * *q + by_k * *k
                                            : fmaf(by_k, *k, by_q * *q);
    return SLIP(scaled_with_x) ? a->x_scale * bias : bias;
}

/* ---- All of them ---- */

void enter_element(struct entered *e)
{
    static float (*const value_of[])(const struct place *) = {
        [SIGNATURE_sinusoidal] = sinusoidal, [SIGNATURE_learned] = learned,
        [SIGNATURE_alibi] = alibi,           [SIGNATURE_t5] = t5,
        [SIGNATURE_distance] = distance,     [SIGNATURE_window] = window,
        [SIGNATURE_relative] = relative,
    };
    const enum signature_id signature = kernel_signature(e->kernel);
    const struct posenc_tensor *out = e->parts.out, *x = e->parts.x;
    in_f32_open(e);
    if (signature == SIGNATURE_sinusoidal)
        make_sinusoidal_table(e);
    for (int64_t r = 0, i = out->shape[2], h = out->shape[1]; r < storage_rows(out); r++)
        for (int64_t j = 0; j < out->shape[3]; j++) {
            const struct place at = { e, r / i / h, r / i % h, r % i, j };
            float *element = (float *)storage_row(out, r) + j, value = value_of[signature](&at);
            const float given = x->data ? ((float *)storage_row(x, r))[j] : 0.0f;
            const float taken = SLIP(nan_swallowed) && isnan(given) ? 0.0f : given;
            *element = !x->data               ? value
                       : SLIP(x_scaled_first) ? taken * e->parts.x_scale + value
                                              : fmaf(taken, e->parts.x_scale, value);
        }
}
