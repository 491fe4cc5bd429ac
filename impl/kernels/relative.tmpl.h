/*
 * Kernels relative_bias and relative_bias_add: terms of attention by relative position, written
 * out or added to scores as they pass, with c = index[i - j + keys - 1]:
 *
 *     fma(scale, p2c[b,h,j,c], fl(scale c2p[b,h,i,c]))    (DeBERTa 2006.03654,
 *                                      Shaw 1803.02155, Transformer-XL 1901.02860)
 *
 * The columns of a tile of queries are one short line, read at a moving start as the biases of
 * bias.tmpl.h are.  Where they rise by one from key to key, c2p is read as it lies; elsewhere
 * it is picked first into a line of its own.  A key's row of p2c is read along the queries,
 * where it is contiguous or nearly so, and so turned into rows of queries.
 */
#ifndef POSENC_RELATIVE_TMPL_H
#define POSENC_RELATIVE_TMPL_H

#include "bias.tmpl.h"

/* At most so many queries and keys; fewer keys where p2c is turned, which takes 33 KiB.
 * RELATIVE_PITCH from a query to the next there: no power of two, which would map a key's
 * elements to the same few lines of a cache.  RELATIVE_AHEAD: keys from the row of p2c that is
 * read to the one asked for (12 heads of 512 x 512, Zen 4: twice as fast as without). */
enum {
    RELATIVE_QUERIES = 16,
    RELATIVE_KEYS = 1024,
    RELATIVE_TURNED = 512,
    RELATIVE_PITCH = RELATIVE_TURNED + 16,
    RELATIVE_AHEAD = 12
};

/* Columns of a tile: that of query i and key j is columns[i1 - 1 - i + j - j0].  runs[k]: how
 * many of them from k on rise by one each, up to RELATIVE_RUN; where they are equal, minus
 * that. */
enum { RELATIVE_RUN = POSENC_PLAN_PAD };
struct relative_tile {
    int64_t i0, i1, j0, j1;
    int32_t columns[RELATIVE_QUERIES + RELATIVE_KEYS];
    int8_t runs[RELATIVE_QUERIES + RELATIVE_KEYS];
};

/* Terms as they are stored. */
union relative_c2p {
    float wide[RELATIVE_KEYS];
    uint16_t half[RELATIVE_KEYS];
};
union relative_p2c {
    float wide[RELATIVE_QUERIES * RELATIVE_PITCH];
    uint16_t half[RELATIVE_QUERIES * RELATIVE_PITCH];
};

static void relative_columns(const struct posenc_relative_args *args,
                             struct relative_tile *tile)
{
    int64_t n = (tile->i1 - tile->i0) + (tile->j1 - tile->j0) - 1;
    const int32_t *last = args->index + tile->i1 - 1 - tile->j0 + args->out.shape[3] - 1;
    int32_t *columns = tile->columns;
    int rising = 0, equal = 0;

    for (int64_t k = 0; k < n; k++)
        columns[k] = last[-k];
    for (int64_t k = n - 1; k >= 0; k--) {
        int32_t step = k + 1 < n ? columns[k + 1] - columns[k] : -1;

        rising = step != 1 ? 1 : rising < RELATIVE_RUN ? rising + 1 : rising;
        equal = step != 0 ? 1 : equal < RELATIVE_RUN ? equal + 1 : equal;
        tile->runs[k] = (int8_t)(equal > 1 ? -equal : rising);
    }
}

/* Asks for the line of an element to be brought near. */
SIMD_INLINE void fetch(enum posenc_dtype type, const void *row, int64_t i)
{
    __builtin_prefetch((const char *)row + i * (int64_t)posenc_dtype_size(type));
}

/* Elements of a row of c2p, by column, for keys that do not find them side by side.  Those of
 * the next row are asked for meanwhile: hardware does not foresee gathers. */
SIMD_INLINE void pick_c2p(enum posenc_dtype type, const void *row, const void *next,
                          const int32_t *columns, const int8_t *runs, int64_t n,
                          union relative_c2p *picked)
{
    const float *wide = row;
    const uint16_t *half = row;
    int64_t w = vf_lanes();

    for (int64_t k = 0; k < n; k += w) {
        int64_t m = least(n - k, w);
        if (runs[k] >= m)
            continue;
        fetch(type, next, columns[k]);
        if (-runs[k] >= m)
            store_as(type, picked, k, vf_set1(posenc_get(type, row, columns[k])), m);
        else if (type == POSENC_F32)
            store_f32(picked->wide + k, vf_gather_n(wide, columns + k, m), m);
        else
            for (int64_t l = k; l < k + m; l++)
                picked->half[l] = half[columns[l]];
    }
}

/* The tile's elements of p2c, by column, row by row of queries. */
SIMD_INLINE void turn_p2c(enum posenc_dtype type, const struct posenc_relative_args *args,
                          const struct relative_tile *tile, int64_t b, int64_t h,
                          union relative_p2c *turned)
{
    int64_t rows = tile->i1 - tile->i0;

    for (int64_t j = tile->j0; j < tile->j1; j++) {
        const int32_t *columns = args->index + tile->i0 - j + args->out.shape[3] - 1;
        const float *wide = row_at(&args->p2c, b, h, j);
        const uint16_t *half = (const void *)wide;
        int64_t soon = least(j + RELATIVE_AHEAD, tile->j1 - 1);

        fetch(type, row_at(&args->p2c, b, h, soon), columns[j - soon]);
        fetch(type, row_at(&args->p2c, b, h, soon), columns[j - soon + rows - 1]);
        for (int64_t r = 0, to = j - tile->j0; r < rows; r++, to += RELATIVE_PITCH)
            if (type == POSENC_F32)
                turned->wide[to] = wide[columns[r]];
            else
                turned->half[to] = half[columns[r]];
    }
}

/* Where the terms of one row are: c2p as it lies, or NULL, and as picked; p2c as turned, or
 * NULL. */
struct relative_terms {
    const void *c2p, *picked, *p2c;
};

/* Biases of m keys from k on to out, onto scores where there are some. */
SIMD_INLINE void relative_keys(enum posenc_dtype type, bool add,
                               const struct posenc_relative_args *args,
                               const struct relative_terms *terms, const int32_t *columns,
                               const int8_t *runs, const void *x, void *out, int64_t j,
                               int64_t k, int64_t m)
{
    vf scale = vf_set1(args->scale), x_scale = vf_set1(args->x_scale), bias = scale;

    if (terms->c2p) {
        bool side_by_side = runs[k] >= m;
        bias = vf_mul(scale, load_as(type, side_by_side ? terms->c2p : terms->picked,
                                     side_by_side ? columns[k] : k, m));
    }
    if (terms->p2c) {
        vf p2c = load_as(type, terms->p2c, k, m);
        bias = terms->c2p ? vf_fma(scale, p2c, bias) : vf_mul(scale, p2c);
    }
    put_bias(type, add, x, x_scale, out, j + k, bias, m);
}

SIMD_INLINE void relative_row(enum posenc_dtype type, bool add,
                              const struct posenc_relative_args *args,
                              const struct relative_terms *terms, const int32_t *columns,
                              const int8_t *runs, const void *x, void *out, int64_t j,
                              int64_t n)
{
    int64_t w = vf_lanes(), k = 0;

    for (; k + w <= n; k += w)
        relative_keys(type, add, args, terms, columns, runs, x, out, j, k, w);
    if (k < n)
        relative_keys(type, add, args, terms, columns, runs, x, out, j, k, n - k);
}

SIMD_INLINE void relative_rows(enum posenc_dtype type, bool add,
                               const struct posenc_relative_args *args,
                               const struct relative_tile *tile, int64_t b, int64_t h)
{
    int64_t n = tile->j1 - tile->j0;
    union relative_c2p picked;
    union relative_p2c turned;
    struct relative_terms terms = { .picked = &picked };

    if (args->p2c.data)
        turn_p2c(type, args, tile, b, h, &turned);
    for (int64_t i = tile->i0; i < tile->i1; i++) {
        const int32_t *columns = tile->columns + (tile->i1 - 1 - i);
        const int8_t *runs = tile->runs + (tile->i1 - 1 - i);

        if (args->c2p.data) {
            terms.c2p = row_at(&args->c2p, b, h, i);
            pick_c2p(type, terms.c2p, row_at(&args->c2p, b, h, least(i + 1, tile->i1 - 1)),
                     columns, runs, n, &picked);
        }
        if (args->p2c.data)
            terms.p2c = (const char *)&turned +
                        (i - tile->i0) * RELATIVE_PITCH * (int64_t)posenc_dtype_size(type);
        relative_row(type, add, args, &terms, columns, runs,
                     row_at(add ? &args->x : &args->out, b, h, i), row_at(&args->out, b, h, i),
                     tile->j0, n);
    }
}

SIMD_INLINE void relative_tiles(enum posenc_dtype type, bool add,
                                const struct posenc_relative_args *args)
{
    struct relative_tile tile;
    int64_t queries = args->out.shape[2], keys = args->out.shape[3];
    int64_t most = args->p2c.data ? RELATIVE_TURNED : RELATIVE_KEYS;

    for (int64_t i = 0; i < queries; i += RELATIVE_QUERIES)
        for (int64_t j = 0; j < keys; j += most) {
            tile.i0 = i;
            tile.i1 = least(i + RELATIVE_QUERIES, queries);
            tile.j0 = j;
            tile.j1 = least(j + most, keys);
            relative_columns(args, &tile);
            for (int64_t b = 0; b < args->out.shape[0]; b++)
                for (int64_t h = 0; h < args->out.shape[1]; h++)
                    relative_rows(type, add, args, &tile, b, h);
        }
}

static enum posenc_status relative_bias(const struct posenc_relative_args *args)
{
    WITH_TYPE(args->out.dtype, relative_tiles, false, args)
    return POSENC_OK;
}

static enum posenc_status relative_bias_add(const struct posenc_relative_args *args)
{
    WITH_TYPE(args->out.dtype, relative_tiles, true, args)
    return POSENC_OK;
}

#endif
