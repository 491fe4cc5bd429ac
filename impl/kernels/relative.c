/*
 * Kernels relative_bias and relative_bias_add: terms of attention by relative position, written
 * out or added to scores as they pass, with c = index[i - j + keys - 1]:
 *
 *     fma(scale, p2c[b,h,j,c], fl(scale c2p[b,h,i,c]))    (DeBERTa 2006.03654,
 *                                      Shaw 1803.02155, Transformer-XL 1901.02860)
 *
 * Queries and keys are taken in panels: some hundred queries by some hundred keys.  The columns
 * of a panel are one line, made once for all heads and read at a moving start as the biases of
 * bias.c are.  Columns of all builders rise or fall by one at most from key to key, so that
 * those of a vector lie within one vector of a row, and one load and one permutation fetch
 * them.
 *
 * A query's row of c2p is read along the keys.  A key's row of p2c is read along the queries of
 * a block, and a block's rows of keys are then turned into rows of queries.  The blocks of a
 * head follow one another, so that a line of p2c is still near when the next one needs the rest
 * of it.
 */
#include "scores.h"

/* Queries and keys of a panel; queries of a block; keys of its rows where p2c is turned.
 * RELATIVE_PITCH from one turned row to the next: no power of
 * two, which would map a key's elements to the same few lines of a cache.  RELATIVE_AHEAD: keys
 * from the row of p2c that is read to the one asked for; RELATIVE_SOON: queries, of c2p. */
enum {
    RELATIVE_QUERIES = 512,
    RELATIVE_KEYS = 1024,
    RELATIVE_BLOCK = 16,
    RELATIVE_TERMS = 512,
    RELATIVE_PITCH = RELATIVE_TERMS + 16,
    RELATIVE_AHEAD = 12,
    RELATIVE_SOON = 2
};

/* Columns of a panel: that of query i and key j is columns[i1 - 1 - i + j - j0].  near[k]: how
 * many of them from k on rise by one at most each, or fall so; up to POSENC_PLAN_PAD. */
struct relative_panel {
    int64_t i0, i1, j0, j1;
    int32_t columns[RELATIVE_QUERIES + RELATIVE_KEYS + POSENC_PLAN_PAD];
    int8_t near[RELATIVE_QUERIES + RELATIVE_KEYS];
};

static void relative_columns(const struct posenc_relative_args *args,
                             struct relative_panel *panel)
{
    int64_t n = (panel->i1 - panel->i0) + (panel->j1 - panel->j0) - 1;
    const int32_t *last = args->index + panel->i1 - 1 - panel->j0 + args->out.shape[3] - 1;
    int64_t rising = 0, falling = 0;

    for (int64_t k = n - 1; k >= 0; k--) {
        int32_t step = k + 1 < n ? last[-k - 1] - last[-k] : 2;

        rising = step == 0 || step == 1 ? least(rising + 1, POSENC_PLAN_PAD) : 1;
        falling = step == 0 || step == -1 ? least(falling + 1, POSENC_PLAN_PAD) : 1;
        panel->columns[k] = last[-k];
        panel->near[k] = (int8_t)(rising > falling ? rising : falling);
    }
}

/* Asks for the line of an element to be brought near. */
SIMD_INLINE void fetch(enum posenc_dtype type, const void *row, int64_t i)
{
    __builtin_prefetch((const char *)row + i * (int64_t)posenc_dtype_size(type));
}

/* Elements of a row of `width` at m columns, at most the lanes. */
SIMD_INLINE vf load_columns(enum posenc_dtype type, const void *row, int64_t width,
                            const int32_t *columns, int64_t near, int64_t m)
{
    uint16_t picked[POSENC_PLAN_PAD];

    if (near >= m && width >= vf_lanes()) {
        int64_t start = least(least(columns[0], columns[m - 1]), width - vf_lanes());
        return vf_lookup(load_as(type, row, start, vf_lanes()), columns, (int32_t)start);
    }
    if (type == POSENC_F32)
        return vf_gather_n(row, columns, m);
    for (int64_t l = 0; l < m; l++)
        picked[l] = ((const uint16_t *)row)[columns[l]];
    return load_as(type, picked, 0, m);
}

/* ---- A key's terms ---- */

union relative_turned {
    float wide[RELATIVE_BLOCK * RELATIVE_PITCH];
    uint16_t half[RELATIVE_BLOCK * RELATIVE_PITCH];
};

/* The elements of p2c of queries i0 to i1 - 1, at most a block, and n keys from j0 on, as they
 * are stored: query i1 - 1 - r has row r.  They go one by one: whole vectors, turned by four
 * passes of interleaved loads in the nearest cache, were slower (Zen 4). */
SIMD_INLINE void turn_p2c(enum posenc_dtype type, const struct posenc_relative_args *args,
                          const struct relative_panel *panel, int64_t b, int64_t h, int64_t i0,
                          int64_t i1, int64_t j0, int64_t n, union relative_turned *turned)
{
    const int32_t *columns = panel->columns + (panel->i1 - i1 + j0 - panel->j0);
    int64_t rows = i1 - i0;

    for (int64_t j = 0; j < n; j++) {
        const float *wide = input_at(&args->p2c, b, h, j0 + j);
        const uint16_t *half = (const void *)wide;
        int64_t ahead = least(j + RELATIVE_AHEAD, n - 1);
        const void *soon = input_at(&args->p2c, b, h, j0 + ahead);

        fetch(type, soon, columns[ahead]);
        fetch(type, soon, columns[ahead + rows - 1]);
        for (int64_t r = 0, to = j; r < rows; r++, to += RELATIVE_PITCH)
            if (type == POSENC_F32)
                turned->wide[to] = wide[columns[j + r]];
            else
                turned->half[to] = half[columns[j + r]];
    }
}

/* ---- A query's row ---- */

/* Where the terms of some keys are, and their columns: rows of c2p, of a query that comes soon,
 * and, as turned, of p2c; NULL where there are none. */
struct relative_terms {
    const void *c2p, *soon, *p2c;
    const int32_t *columns;
    const int8_t *near;
};

/* Biases of m keys from k on. */
SIMD_INLINE vf relative_keys(enum posenc_dtype type, const struct posenc_relative_args *args,
                             const struct relative_terms *terms, int64_t k, int64_t m)
{
    vf scale = vf_set1(args->scale), bias = scale;

    if (terms->c2p) {
        fetch(type, terms->soon, terms->columns[k]);
        bias = vf_mul(scale, load_columns(type, terms->c2p, args->c2p.shape[3],
                                          terms->columns + k, terms->near[k], m));
    }
    if (terms->p2c) {
        vf p2c = load_as(type, terms->p2c, k, m);
        bias = terms->c2p ? vf_fma(scale, p2c, bias) : vf_mul(scale, p2c);
    }
    return bias;
}

/* Vectors from k on up to n biases, the last one in part. */
SIMD_INLINE void relative_some(enum posenc_dtype type, enum how how,
                               const struct posenc_relative_args *args,
                               const struct relative_terms *terms, vf x_scale, const void *x,
                               void *out, int64_t j, int64_t k, int64_t n)
{
    int64_t w = vf_lanes();

    for (; k + w <= n; k += w)
        put_bias(type, how, x, x_scale, out, j + k, relative_keys(type, args, terms, k, w), w);
    if (k < n)
        put_bias(type, how, x, x_scale, out, j + k, relative_keys(type, args, terms, k, n - k),
                 n - k);
}

SIMD_INLINE void relative_row(enum posenc_dtype type, enum how how,
                              const struct posenc_relative_args *args,
                              const struct relative_terms *terms, const void *x, void *out,
                              int64_t j, int64_t n)
{
    int64_t w = vf_lanes(), k = streams(how) ? to_line(type, out, j, n) : 0;
    vf x_scale = vf_set1(args->x_scale);

    if (streams(how))
        relative_some(type, how, args, terms, x_scale, x, out, j, 0, k);
    for (; k + 4 * w <= n; k += 4 * w)
        put_four(type, how, x, x_scale, out, j + k, relative_keys(type, args, terms, k, w),
                 relative_keys(type, args, terms, k + w, w),
                 relative_keys(type, args, terms, k + 2 * w, w),
                 relative_keys(type, args, terms, k + 3 * w, w));
    relative_some(type, how, args, terms, x_scale, x, out, j, k, n);
}

/* A block of queries and n keys from j on. */
SIMD_INLINE void relative_block(enum posenc_dtype type, enum how how,
                                const struct posenc_relative_args *args,
                                const struct relative_panel *panel, int64_t b, int64_t h,
                                int64_t i0, int64_t i1, int64_t j, int64_t n)
{
    union relative_turned turned;
    struct relative_terms terms = { .c2p = NULL };

    if (args->p2c.data)
        turn_p2c(type, args, panel, b, h, i0, i1, j, n, &turned);
    for (int64_t i = i0; i < i1; i++) {
        int64_t first = panel->i1 - 1 - i + j - panel->j0;

        terms.columns = panel->columns + first;
        terms.near = panel->near + first;
        if (args->c2p.data) {
            terms.c2p = input_at(&args->c2p, b, h, i);
            terms.soon = input_at(&args->c2p, b, h, least(i + RELATIVE_SOON, panel->i1 - 1));
        }
        if (args->p2c.data)
            terms.p2c = (const char *)&turned +
                        (i1 - 1 - i) * RELATIVE_PITCH * (int64_t)posenc_dtype_size(type);
        relative_row(type, how, args, &terms, adds(how) ? input_at(&args->x, b, h, i) : NULL,
                     row_at(&args->out, b, h, i), j, n);
    }
}

/* A head's share of a panel. */
SIMD_INLINE void relative_blocks(enum posenc_dtype type, enum how how,
                                 const struct posenc_relative_args *args,
                                 const struct relative_panel *panel, int64_t b, int64_t h)
{
    int64_t most = args->p2c.data ? RELATIVE_TERMS : RELATIVE_KEYS;

    for (int64_t i = panel->i0; i < panel->i1; i += RELATIVE_BLOCK)
        for (int64_t j = panel->j0; j < panel->j1; j += most)
            relative_block(type, how, args, panel, b, h, i,
                           least(i + RELATIVE_BLOCK, panel->i1), j, least(panel->j1 - j, most));
}

SIMD_INLINE void relative_panels(enum posenc_dtype type, enum how how,
                                 const struct posenc_relative_args *given)
{
    const struct posenc_relative_args copy = *given, *args = &copy;
    struct relative_panel panel;
    int64_t queries = args->out.shape[2], keys = args->out.shape[3];

    for (int64_t i = 0; i < queries; i += RELATIVE_QUERIES)
        for (int64_t j = 0; j < keys; j += RELATIVE_KEYS) {
            panel.i0 = i;
            panel.i1 = least(i + RELATIVE_QUERIES, queries);
            panel.j0 = j;
            panel.j1 = least(j + RELATIVE_KEYS, keys);
            relative_columns(args, &panel);
            for (int64_t b = 0; b < args->out.shape[0]; b++)
                for (int64_t h = 0; h < args->out.shape[1]; h++)
                    relative_blocks(type, how, args, &panel, b, h);
        }
}

enum posenc_status KERNEL(relative_bias)(const struct posenc_relative_args *args)
{
    FOR_HOW(false, args, relative_panels, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(relative_bias_add)(const struct posenc_relative_args *args)
{
    FOR_HOW(true, args, relative_panels, args);
    return POSENC_OK;
}
