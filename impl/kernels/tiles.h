/*
 * Runs (run.h) that have xPos, or are stored in 16 bits and do not go in order (in_order.h): profiles in
 * f32, single axes, times, long rows. The cosines and sines of a few rows and pairs are first written
 * in f32 to a tile, which stays in the L1 cache. From there they go to the output, added to x where
 * there is one, rounded once more to the output's type: the bits are those of the f32 call, rounded.
 *
 * With xPos each value of a tile has a scale of its own: that of the block's first position,
 * times the plan's step. The scales of negative positions and of times are evaluated one by
 * one.
 */
#ifndef POSENC_KERNELS_TILES_H
#define POSENC_KERNELS_TILES_H

#include "in_order.h"

/* Both halves of a tile and the plan's rows for it fit in an L1 cache of 32 KiB. */
enum { TILE_ROWS = POSENC_BLOCK / 2, TILE = TILE_ROWS * STRIP_PAIRS };

/* xPos: the scales of a tile's values, zero past the last pair. */
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

/* Values of a tile on their way to a part of one row of the output: onto x, where that is not
 * NULL, and stored as `type`. */
SIMD_INLINE void send_vector(enum posenc_dtype type, const void *x, float x_scale, void *out,
                             int64_t i, vf value, int64_t n)
{
    if (x)
        value = vf_fma(load_as(type, x, i, n), vf_set1(x_scale), value);
    store_as(type, out, i, value, n);
}

SIMD_INLINE void send_values(enum posenc_dtype type, const void *x, float x_scale, void *out,
                             int64_t at, const float *values, int64_t n)
{
    const int64_t w = vf_lanes();
    int64_t i = 0;

    for (; i + w <= n; i += w)
        send_vector(type, x, x_scale, out, at + i, vf_load(values + i), w);
    if (i < n)
        send_vector(type, x, x_scale, out, at + i, vf_load_n(values + i, n - i), n - i);
}

/* The same of sines and cosines by turns, n values in all. */
SIMD_INLINE void send_by_turns(enum posenc_dtype type, const void *x, float x_scale, void *out,
                               const float *cosine, const float *sine, int64_t n)
{
    const int64_t w = vf_lanes();
    _Alignas(64) float rest[2 * STRIP_PAIRS];
    int64_t k = 0;

    for (; w > 1 && 2 * (k + w) <= n; k += w) {
        vf c = vf_load(cosine + k), s = vf_load(sine + k);
        send_vector(type, x, x_scale, out, 2 * k, vf_zip_lo(s, c), w);
        send_vector(type, x, x_scale, out, 2 * k + w, vf_zip_hi(s, c), w);
    }
    for (int64_t m = k; 2 * m < n; m += w)
        vf_store2_n(rest + 2 * (m - k), vf_load(sine + m), vf_load(cosine + m), w);
    send_values(type, x, x_scale, out, 2 * k, rest, n - 2 * k);
}

/* Address of a part of the first row, that of its addend or NULL, and bytes to the next row. */
struct part {
    char *out;
    const char *x;
    int64_t out_step, x_step;
};

/* Parts of `rows` rows, of n values each: of two planes of a tile by turns, or of one, the other being
 * NULL. */
SIMD_INLINE void send_planes(enum posenc_dtype type, struct part part, float x_scale,
                             const float *cosine, const float *sine, int64_t rows, int64_t n)
{
    for (; rows > 0; rows--, part.out += part.out_step, part.x += part.x ? part.x_step : 0) {
        if (cosine && sine)
            send_by_turns(type, part.x, x_scale, part.out, cosine, sine, n);
        else
            send_values(type, part.x, x_scale, part.out, 0, cosine ? cosine : sine, n);
        cosine += cosine ? STRIP_PAIRS : 0;
        sine += sine ? STRIP_PAIRS : 0;
    }
}

/* Out of line: with all parts in one function gcc 12 fails on it for SVE. */
static __attribute__((noinline)) void send_part(enum posenc_dtype type, const struct part *part,
                                                float x_scale, const float *cosine,
                                                const float *sine, int64_t rows, int64_t n)
{
    FOR_TYPE(type, send_planes, *part, x_scale, cosine, sine, rows, n);
}

/* Sends those of n pairs of one row, from pair `from` on, that belong to the run's axis. */
static void send_axis(enum posenc_dtype type, const struct run *run, int64_t row, int64_t from,
                      const float *cosine, const float *sine, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        if (run->axis_of[from + k] == run->axis) {
            posenc_put(type, run->out, row * run->out_stride + from + k, cosine[k]);
            posenc_put(type, run->sine, row * run->sine_stride + from + k, sine[k]);
        }
}

/* The part of an output that begins `column` elements after `out`, from row `row` on. */
static struct part part_of(const struct run *run, void *out, int64_t stride, int64_t size,
                           int64_t row, int64_t column)
{
    const char *x = run->x;

    return (struct part){ .out = (char *)out + (row * stride + column) * size,
                          .x = x ? x + (row * run->x_stride + column) * size : NULL,
                          .out_step = stride * size,
                          .x_step = run->x_stride * size };
}

/* Sends the rows of a tile, the first of which is row `row` of the run. */
static void send_tile(enum posenc_dtype type, const struct run *run, enum sink sink,
                      int64_t row, const struct run *tile)
{
    const int64_t size = (int64_t)posenc_dtype_size(type), from = tile->from;
    const int64_t rows = tile->count, n = tile->pairs - from;
    const float *cosine = tile->out, *sine = tile->sine;
    const float x_scale = run->x_scale;
    struct part part;

    if (run->axis_of) {
        for (int64_t k = 0; k < rows; k++)
            send_axis(type, run, row + k, from, cosine + k * STRIP_PAIRS,
                      sine + k * STRIP_PAIRS, n);
    } else if (sink == TO_INTERLEAVED) {
        part = part_of(run, run->out, run->out_stride, size, row, 2 * from);
        send_part(type, &part, x_scale, cosine, sine, rows, least(2 * n, run->dim - 2 * from));
    } else if (sink == TO_HALVES) {
        part = part_of(run, run->out, run->out_stride, size, row, run->sine_at + from);
        send_part(type, &part, x_scale, NULL, sine, rows, n);
        part = part_of(run, run->out, run->out_stride, size, row, run->cosine_at + from);
        send_part(type, &part, x_scale, cosine, NULL, rows, n);
    } else {
        part = part_of(run, run->out, run->out_stride, size, row, from);
        send_part(type, &part, 1.0f, cosine, NULL, rows, n);
        part = part_of(run, run->sine, run->sine_stride, size, row, from);
        send_part(type, &part, 1.0f, NULL, sine, rows, n);
    }
}

static __attribute__((noinline)) void run_in_tiles(const struct run *run, enum sink sink,
                                                   enum posenc_dtype type)
{
    _Alignas(64) float cosines[TILE], sines[TILE];
    _Alignas(64) double scales[TILE];
    struct run tile = *run;

    tile.out = cosines;
    tile.sine = sines;
    if (run->freqs->xpos_step) {
        tile.scale = 1.0;
        tile.scales = scales;
    }
    for (int64_t row = 0; row < run->count; row += tile.count) {
        tile.first = run->first + (uint32_t)row;
        tile.count = least(run->count - row, TILE_ROWS - (int64_t)(tile.first % TILE_ROWS));
        for (tile.from = run->from; tile.from < run->pairs; tile.from += STRIP_PAIRS) {
            tile.pairs = least(tile.from + STRIP_PAIRS, run->pairs);
            if (tile.scales)
                find_scales(&tile, scales);
            run_all(&tile, TO_TILE, false);
            send_tile(type, run, sink, row, &tile);
        }
    }
}

/* A run to rows of any type. */
SIMD_INLINE void run_to_rows(const struct run *run, enum sink sink, bool add,
                             enum posenc_dtype type)
{
    if (may_go_in_order(run, sink, type))
        run_in_order(run, sink, type);
    else if (type == POSENC_F32 && !run->freqs->xpos_step)
        run_all(run, sink, add);
    else
        run_in_tiles(run, sink, type);
}

#endif
