/*
 * Runs that are computed in tiles: those with xPos, and 16-bit outputs that cannot use a buffer (run_buffer.h), for
 * example f32 numerics modes, single axes, fractions and long rows. The cosines and sines of a few rows and pairs are
 * written in f32 to a tile in the L1 cache. From there they go to the output, added to x if there is one, and rounded
 * to its dtype. The bits are those of the f32 call, rounded.
 *
 * With xPos (Sun et al. 2212.10554) each value of a tile has its own scale: that of the block's first position, times a
 * step that the frequencies hold. The scales of negative positions and of fractions are evaluated one by one.
 */
#ifndef POSENC_KERNELS_RUN_TILES_H
#define POSENC_KERNELS_RUN_TILES_H

#include "run_buffer.h"

/* The two halves of a tile, and the frequencies' rows for it, fit in an L1 cache of 32 KiB. */
enum { TILE_ROWS = POSENC_BLOCK / 2, TILE_VALUES = TILE_ROWS * STRIP_PAIRS };

/* Computes the xPos scales of a tile's values; 0 past the last pair. */
static void find_scales(const struct run *tile, double *scales)
{
    const struct posenc_freqs *freqs = tile->freqs;
    int64_t from = tile->from, n = tile->pairs - from;
    uint32_t anchor = tile->first / POSENC_BLOCK * POSENC_BLOCK;
    double sign = tile->negative ? -1.0 : 1.0, anchors[STRIP_PAIRS];
    bool stepped = !tile->negative && tile->time == 0.0f;

    if (stepped)
        posenc_xpos_scale(freqs, (double)anchor, from, n, anchors);
    for (int64_t row = 0; row < tile->count; row++, scales += STRIP_PAIRS) {
        uint32_t position = tile->first + (uint32_t)row;
        const double *step = freqs->xpos_step + (position - anchor) * freqs->stride + from;
        double magnitude = tile->time != 0.0f ? (double)tile->time : (double)position;
        if (!stepped)
            posenc_xpos_scale(freqs, sign * magnitude, from, n, scales);
        for (int64_t k = 0; k < n && stepped; k++)
            scales[k] = anchors[k] * step[k];
        for (int64_t k = n; k < STRIP_PAIRS; k++)
            scales[k] = 0.0;
    }
}

/* Stores n values to out[i] ... as `type`, added to x if x is not NULL. */
SIMD_INLINE void copy_vector(enum posenc_dtype type, const void *x, float x_scale, void *out,
                             int64_t i, vf value, int64_t n)
{
    if (x)
        value = vf_fma(load_as(type, x, i, n), vf_set1(x_scale), value);
    store_as(type, out, i, value, n);
}

SIMD_INLINE void copy_values(enum posenc_dtype type, const void *x, float x_scale, void *out,
                             int64_t at, const float *values, int64_t n)
{
    const int64_t w = vf_lanes();
    int64_t i = 0;

    for (; i + w <= n; i += w)
        copy_vector(type, x, x_scale, out, at + i, vf_load(values + i), w);
    if (i < n)
        copy_vector(type, x, x_scale, out, at + i, vf_load_n(values + i, n - i), n - i);
}

/* Stores n values in all: sin, cos, sin, cos, .... */
SIMD_INLINE void copy_interleaved(enum posenc_dtype type, const void *x, float x_scale,
                                  void *out, const float *cosine, const float *sine, int64_t n)
{
    const int64_t w = vf_lanes();
    _Alignas(64) float rest[2 * STRIP_PAIRS];
    int64_t k = 0;

    for (; w > 1 && 2 * (k + w) <= n; k += w) {
        vf c = vf_load(cosine + k), s = vf_load(sine + k);
        copy_vector(type, x, x_scale, out, 2 * k, vf_zip_lo(s, c), w);
        copy_vector(type, x, x_scale, out, 2 * k + w, vf_zip_hi(s, c), w);
    }
    for (int64_t m = k; 2 * m < n; m += w)
        vf_store2_n(rest + 2 * (m - k), vf_load(sine + m), vf_load(cosine + m), w);
    copy_values(type, x, x_scale, out, 2 * k, rest, n - 2 * k);
}

/* Part of an output: addresses in its first row and in that of x (or NULL), and bytes from row to row. */
struct part {
    char *out;
    const char *x;
    int64_t out_step, x_step;
};

/* Stores n values in each of `rows` rows: cosine and sine interleaved, or the one that is not NULL. */
SIMD_INLINE void copy_planes(enum posenc_dtype type, struct part part, float x_scale,
                             const float *cosine, const float *sine, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, part.out += part.out_step, part.x += part.x ? part.x_step : 0) {
        if (cosine && sine)
            copy_interleaved(type, part.x, x_scale, part.out, cosine, sine, n);
        else
            copy_values(type, part.x, x_scale, part.out, 0, cosine ? cosine : sine, n);
        cosine += cosine ? STRIP_PAIRS : 0;
        sine += sine ? STRIP_PAIRS : 0;
    }
}

/* Not inlined, as gcc 12 fails on one large function for SVE. */
static __attribute__((noinline)) void copy_part(enum posenc_dtype type, const struct part *part,
                                                float x_scale, const float *cosine,
                                                const float *sine, int64_t rows, int64_t n)
{
    FOR_TYPE(type, copy_planes, *part, x_scale, cosine, sine, rows, n);
}

/* Stores those of n pairs of a row that belong to the run's axis, from pair `from` on. */
static void copy_axis(enum posenc_dtype type, const struct run *run, int64_t row, int64_t from,
                      const float *cosine, const float *sine, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        if (run->axis_of[from + k] == run->axis) {
            posenc_put(type, run->out, row * run->out_stride + from + k, cosine[k]);
            posenc_put(type, run->sine, row * run->sine_stride + from + k, sine[k]);
        }
}

/* Returns the part that begins `column` elements into row `row` of an output array. */
static struct part part_of(const struct run *run, void *out, int64_t stride, int64_t size,
                           int64_t row, int64_t column)
{
    const char *x = run->x;

    return (struct part){ .out = (char *)out + (row * stride + column) * size,
                          .x = x ? x + (row * run->x_stride + column) * size : NULL,
                          .out_step = stride * size,
                          .x_step = run->x_stride * size };
}

/* Stores the rows of a tile, the first of which is row `row` of the run. */
static void copy_tile(enum posenc_dtype type, const struct run *run, enum sink sink,
                      int64_t row, const struct run *tile)
{
    const int64_t size = (int64_t)posenc_dtype_size(type), from = tile->from;
    const int64_t rows = tile->count, n = tile->pairs - from;
    const float *cosine = tile->out, *sine = tile->sine;
    const float x_scale = run->x_scale;
    struct part part;

    if (run->axis_of) {
        for (int64_t k = 0; k < rows; k++)
            copy_axis(type, run, row + k, from, cosine + k * STRIP_PAIRS,
                      sine + k * STRIP_PAIRS, n);
    } else if (sink == TO_INTERLEAVED) {
        part = part_of(run, run->out, run->out_stride, size, row, 2 * from);
        copy_part(type, &part, x_scale, cosine, sine, rows,
                  min_i64(2 * n, run->dim - 2 * from));
    } else if (sink == TO_HALVES) {
        part = part_of(run, run->out, run->out_stride, size, row, run->sine_at + from);
        copy_part(type, &part, x_scale, NULL, sine, rows, n);
        part = part_of(run, run->out, run->out_stride, size, row, run->cosine_at + from);
        copy_part(type, &part, x_scale, cosine, NULL, rows, n);
    } else {
        part = part_of(run, run->out, run->out_stride, size, row, from);
        copy_part(type, &part, 1.0f, cosine, NULL, rows, n);
        part = part_of(run, run->sine, run->sine_stride, size, row, from);
        copy_part(type, &part, 1.0f, NULL, sine, rows, n);
    }
}

/* Evaluates a run tile by tile, and stores each. */
static __attribute__((noinline)) void run_in_tiles(const struct run *run, enum sink sink,
                                                   enum posenc_dtype type)
{
    _Alignas(64) float cosines[TILE_VALUES], sines[TILE_VALUES];
    _Alignas(64) double scales[TILE_VALUES];
    struct run tile = *run;

    tile.out = cosines;
    tile.sine = sines;
    if (run->freqs->xpos_step) {
        tile.scale = 1.0;
        tile.scales = scales;
    }
    for (int64_t row = 0; row < run->count; row += tile.count) {
        tile.first = run->first + (uint32_t)row;
        tile.count = min_i64(run->count - row, TILE_ROWS - (int64_t)(tile.first % TILE_ROWS));
        for (tile.from = run->from; tile.from < run->pairs; tile.from += STRIP_PAIRS) {
            tile.pairs = min_i64(tile.from + STRIP_PAIRS, run->pairs);
            if (tile.scales)
                find_scales(&tile, scales);
            run_evaluate(&tile, TO_TILE, false);
            copy_tile(type, run, sink, row, &tile);
        }
    }
}

/* Evaluates a run and stores it to rows of any dtype. */
SIMD_INLINE void run_write(const struct run *run, enum sink sink, bool add,
                           enum posenc_dtype type)
{
    if (can_buffer(run, sink, type))
        run_buffered(run, sink, type);
    else if (type == POSENC_DTYPE_F32 && !run->freqs->xpos_step)
        run_evaluate(run, sink, add);
    else
        run_in_tiles(run, sink, type);
}

#endif
