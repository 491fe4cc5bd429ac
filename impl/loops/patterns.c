/*
 * The patterns of patterns.h for one instruction set, compiled as bare.c is.
 */
#include "patterns.h"
#include "impl/kernels/kernel.h"

#define PATTERN_OF(kind, isa) PATTERN(kind, isa)
#define LOOP(kind)            PATTERN_OF(kind, POSENC_ISA)

enum { EIGHT = 8 };

SIMD_INLINE void put(bool far, float *p, vf v)
{
    if (far)
        vf_stream(p, v);
    else
        vf_store(p, v);
}

/* One of x, and of another where there is one, which was made while memory was idle. */
SIMD_INLINE vf value_of(bool far, const float *x, const float *other)
{
    if (!x)
        return vf_keep(vf_load(other));
    if (far && other)
        ask_for(x, 8192);
    else if (far)
        ask_ahead(x, 8192);
    return vf_keep(vf_add(vf_load(x), other ? vf_load(other) : vf_set1(0.5f)));
}

/* Four vectors to out, all read before one is written. */
SIMD_INLINE void put_four(bool far, float *out, const float *x, const float *other, int64_t i)
{
    const int64_t w = vf_lanes(), j = i + w, k = j + w, l = k + w;
    const vf a = value_of(far, x ? x + i : NULL, other ? other + i : NULL);
    const vf b = value_of(far, x ? x + j : NULL, other ? other + j : NULL);
    const vf c = value_of(far, x ? x + k : NULL, other ? other + k : NULL);
    const vf d = value_of(far, x ? x + l : NULL, other ? other + l : NULL);

    put(far, out + i, a);
    put(far, out + j, b);
    put(far, out + k, c);
    put(far, out + l, d);
}

/* ---- Rows ---- */

LOOP(copy)
{
    const struct pattern_data d = *data;
    const int64_t n = d.rows * d.row, step = 4 * vf_lanes();

    for (int64_t i = 0; i + step <= n; i += step)
        put_four(d.far, d.out, d.x, NULL, i);
    stream_end();
}

/* Vector i of eight rows, a value onto each of x where there is one. */
SIMD_INLINE void put_eight(float *out, const float *x, int64_t row, int64_t i)
{
    for (int64_t r = 0; r < EIGHT; r++) {
        const vf value = vf_set1(0.5f);

        vf_store(out + r * row + i, x ? vf_add(vf_load(x + r * row + i), value) : value);
    }
}

LOOP(eights)
{
    const struct pattern_data d = *data;
    const int64_t w = vf_lanes();

    for (int64_t at = 0; at < d.rows * d.row; at += EIGHT * d.row)
        for (int64_t i = 0; i < d.row; i += w)
            put_eight(d.out + at, d.x + at, d.row, i);
}

/* The rows lie nearby one after the other. */
SIMD_INLINE void by_way_of_near(const struct pattern_data *data, bool adds)
{
    const struct pattern_data d = *data;
    const int64_t w = vf_lanes(), group = EIGHT * d.row;
    _Alignas(64) float rows[EIGHT * PATTERN_ROW];

    for (int64_t at = 0; at < d.rows * d.row; at += group) {
        for (int64_t i = 0; i < d.row; i += w)
            put_eight(rows, NULL, d.row, i);
        for (int64_t i = 0; i < group; i += 4 * w)
            put_four(true, d.out + at, adds ? d.x + at : NULL, rows, i);
    }
    stream_end();
}

LOOP(near) { by_way_of_near(data, false); }
LOOP(near_add) { by_way_of_near(data, true); }

/* ---- Windows ---- */

/* A plane's scores from where the first line begins, but for the last part of four vectors; each line asks for
 * one further on, of the next window where scores are near. */
SIMD_INLINE void add_plane(bool far, float *out, const float *bias)
{
    enum { WINDOW = PATTERN_HEADS * PATTERN_PLANE };
    const int64_t w = vf_lanes(), lead = (int64_t)(-((uintptr_t)out / sizeof *out) % 16);

    for (int64_t i = lead; i + 4 * w <= PATTERN_PLANE; i += 4 * w) {
        for (int64_t k = 0; k < 4 * w; k += 16)
            if (far)
                ask_ahead(out + i + k, 4096);
            else
                ask_for(out + i + k, WINDOW * (int64_t)sizeof *out);
        put_four(false, out, out, bias, i);
    }
}

LOOP(windows)
{
    enum { FOUR = 4, WINDOW = PATTERN_HEADS * PATTERN_PLANE };
    const struct pattern_data d = *data;
    const int64_t windows = d.rows * d.row / WINDOW, together = d.far ? FOUR : 1;
    _Alignas(64) float bias[FOUR * PATTERN_PLANE];

    for (int64_t i = 0; i < (int64_t)(sizeof bias / sizeof *bias); i++)
        bias[i] = (float)(i % 11);
    for (int64_t h = 0; h < PATTERN_HEADS; h += together)
        for (int64_t window = 0; window < windows; window++)
            for (int64_t k = 0; k < together; k++)
                add_plane(d.far, d.out + window * WINDOW + (h + k) * PATTERN_PLANE,
                          bias + k * PATTERN_PLANE);
}

/* ---- Terms ---- */

/* Queries of a block; keys, and queries, from one that is read to one that is asked for. */
enum { BLOCK = PATTERN_BLOCK, NEXT_KEY = 32, NEXT_QUERY = 2 };

/* Columns of distances from -row on, and from the other end. */
struct columns {
    int32_t of[2 * PATTERN_ROW + POSENC_PLAN_PAD], back[2 * PATTERN_ROW + POSENC_PLAN_PAD];
};

static void make_columns(struct columns *columns, int64_t row)
{
    memset(columns, 0, sizeof *columns);
    for (int64_t d = -row; d < row; d++) {
        columns->of[row + d] = pattern_column(d, row);
        columns->back[row - d] = columns->of[row + d];
    }
}

/* What the keys' rows have for a block of queries from i on, added up. */
SIMD_INLINE vf read_keys(const struct pattern_data *d, const int32_t *columns, const float *p2c,
                         int64_t i, vf sum)
{
    for (int64_t j = 0; j < d->row; j++) {
        const int64_t next = j + NEXT_KEY < d->row ? j + NEXT_KEY : j;
        const float *from = p2c + j * d->row + columns[d->row + i - j];

        ask_for(p2c + next * d->row + columns[d->row + i + BLOCK - 1 - next], 0);
        for (int64_t r = 0; r < BLOCK; r += vf_lanes())
            sum = vf_add(sum, vf_load(from + r));
    }
    return sum;
}

/* What its own row has for each vector of keys. */
SIMD_INLINE void put_query(const struct pattern_data *d, bool c2p, const int32_t *columns,
                           const float *row, int64_t q, float *out, vf sum)
{
    const int64_t w = vf_lanes();

    for (int64_t k = 0; k < d->row; k += w) {
        const int64_t column = columns[d->row + q - k - w + 1];

        if (c2p) {
            ask_for(row, (NEXT_QUERY * d->row + column) * (int64_t)sizeof *row);
            sum = vf_add(sum, vf_load(row + column));
        }
        put(d->far, out + k, sum);
    }
}

SIMD_INLINE void terms(const struct pattern_data *data, bool c2p, bool p2c)
{
    const struct pattern_data d = *data;
    struct columns columns;

    make_columns(&columns, d.row);
    for (int64_t head = 0; head < d.rows * d.row; head += d.row * d.row)
        for (int64_t i = 0; i < d.row; i += BLOCK) {
            vf sum = vf_set1(0.0f);

            if (p2c)
                sum = read_keys(&d, columns.of, d.more + head, i, sum);
            for (int64_t q = i; q < i + BLOCK; q++)
                put_query(&d, c2p, columns.of, d.x + head + q * d.row, q,
                          d.out + head + q * d.row, sum);
        }
    stream_end();
}

LOOP(c2p) { terms(data, true, false); }
LOOP(p2c) { terms(data, false, true); }
LOOP(both) { terms(data, true, true); }

/* From a row of turned elements to the next, beside their own: no power of two, and as near as it may be, so that
 * they spread over a cache. */
enum { APART = 16, NEAR = BLOCK + 4 };

/* A vector of row's elements by their columns, which rise or fall by one at most. */
SIMD_INLINE vf by_columns(const float *row, const int32_t *columns, int32_t least)
{
    return vf_lookup(vf_load(row + least), columns, least);
}

/* What a vector of keys has for the queries of a block, as vectors of keys.  Where columns go on by one it is a
 * matrix in memory, whose rows lie a key and a column apart. */
SIMD_INLINE void turn_keys(const float *p2c, int64_t row, const int32_t *columns, float *turned)
{
    const int64_t w = vf_lanes(), pitch = row + APART;
    const int32_t *last = columns - (w - 1);
    const bool matrix = columns[BLOCK - 1] - *last == BLOCK - 1 + w - 1;
    _Alignas(64) float near[POSENC_PLAN_PAD * NEAR + POSENC_PLAN_PAD];
    vf a, b, c, d;

    for (int64_t k = 0; !matrix && k < w; k++)
        for (int64_t r = 0; r < BLOCK; r += w)
            vf_store(near + k * NEAR + r,
                     by_columns(p2c + k * row, columns + r - k, columns[r - k]));
    for (int64_t r = 0; r < BLOCK; r += 4, turned += 4 * pitch) {
        if (matrix)
            vf_load4(p2c + *columns + r, row - 1, &a, &b, &c, &d);
        else
            vf_load4(near + r, NEAR, &a, &b, &c, &d);
        vf_store(turned, a);
        vf_store(turned + pitch, b);
        vf_store(turned + 2 * pitch, c);
        vf_store(turned + 3 * pitch, d);
    }
}

/* Both terms of a query, scaled, or added to what is there; back: the columns of keys from the first one on. */
SIMD_INLINE void put_terms(bool far, bool adds, int64_t n, const int32_t *back,
                           const float *row, const float *turned, float *out)
{
    const int64_t w = vf_lanes();
    const vf scale = vf_set1(0.5f);

    for (int64_t k = 0; k < n; k += w) {
        const int32_t least = back[k + w - 1];

        ask_for(row, (NEXT_QUERY * n + least) * (int64_t)sizeof *row);
        const vf bias =
            vf_fma(scale, vf_load(turned + k), vf_mul(scale, by_columns(row, back + k, least)));
        put(far && !adds, out + k, adds ? vf_add(vf_load(out + k), bias) : bias);
    }
}

SIMD_INLINE void both_terms(const struct pattern_data *data, bool adds)
{
    const struct pattern_data d = *data;
    const int64_t w = vf_lanes();
    struct columns columns;
    _Alignas(64) float turned[BLOCK * (PATTERN_ROW + APART)];

    make_columns(&columns, d.row);
    for (int64_t head = 0; head < d.rows * d.row; head += d.row * d.row)
        for (int64_t i = 0; i < d.row; i += BLOCK) {
            for (int64_t j = 0; j < d.row; j += w) {
                for (int64_t k = j + NEXT_KEY; k < least(j + NEXT_KEY + w, d.row); k++)
                    ask_for(d.more + head + k * d.row + columns.of[d.row + i - k], 0);
                turn_keys(d.more + head + j * d.row, d.row, columns.of + d.row + i - j,
                          turned + j);
            }
            for (int64_t q = i; q < i + BLOCK; q++)
                put_terms(d.far, adds, d.row, columns.back + d.row - q, d.x + head + q * d.row,
                          turned + (q - i) * (d.row + APART), d.out + head + q * d.row);
        }
    stream_end();
}

LOOP(turned) { both_terms(data, false); }
LOOP(turned_add) { both_terms(data, true); }
