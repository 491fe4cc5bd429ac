/*
 * Runs (run.h) whose output is stored in 16 bits, or has xPos: the cosines and sines of a few
 * rows and pairs are first written in f32 to a tile, which stays in the L1 cache.  From there
 * they go to the output, added to x where there is one, rounded once more to the output's type:
 * the bits are those of the f32 call, rounded.
 *
 * With xPos each value of a tile has a scale of its own: that of the block's first position,
 * times the plan's step.  The scales of negative positions and of times are evaluated one by
 * one.
 */
#ifndef POSENC_KERNELS_TILES_H
#define POSENC_KERNELS_TILES_H

#include "run.h"

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

SIMD_INLINE void send_as(enum posenc_dtype type, const struct run *run, int64_t row,
                         int64_t column, const float *values, int64_t n)
{
    const int64_t size = (int64_t)posenc_dtype_size(type), w = vf_lanes();
    char *out = (char *)run->out + (row * run->out_stride + column) * size;
    const char *x = run->x;
    vf scale = vf_set1(run->x_scale);
    int64_t i = 0;

    if (x)
        x += (row * run->x_stride + column) * size;
    for (; i + w <= n; i += w) {
        vf value = vf_load(values + i);
        if (x)
            value = vf_fma(load_as(type, x, i, w), scale, value);
        store_as(type, out, i, value, w);
    }
    if (i < n) {
        vf value = vf_load_n(values + i, n - i);
        if (x)
            value = vf_fma(load_as(type, x, i, n - i), scale, value);
        store_as(type, out, i, value, n - i);
    }
}

/* n values of one row from a column on.  Out of line: inlined, gcc 12 fails on it for SVE. */
static __attribute__((noinline)) void send_values(enum posenc_dtype type, const struct run *run,
                                                  int64_t row, int64_t column,
                                                  const float *values, int64_t n)
{
    switch (type) {
    case POSENC_F32:
        send_as(POSENC_F32, run, row, column, values, n);
        break;
    case POSENC_F16:
        send_as(POSENC_F16, run, row, column, values, n);
        break;
    case POSENC_BF16:
        send_as(POSENC_BF16, run, row, column, values, n);
        break;
    }
}

/* Those of the n pairs of one row, from pair `from` on, that turn with the run's axis. */
static void send_axis(enum posenc_dtype type, const struct run *run, int64_t row, int64_t from,
                      const float *cosine, const float *sine, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        if (run->axis_of[from + k] == run->axis) {
            posenc_put(type, run->out, row * run->out_stride + from + k, cosine[k]);
            posenc_put(type, run->sine, row * run->sine_stride + from + k, sine[k]);
        }
}

/* Sends the rows of a tile, the first of which is row `row` of the run. */
static void send_tile(enum posenc_dtype type, const struct run *run, enum sink sink,
                      int64_t row, const struct run *tile)
{
    const float *cosine = tile->out, *sine = tile->sine;
    int64_t from = tile->from, n = tile->pairs - from;
    _Alignas(64) float both[2 * STRIP_PAIRS];
    struct run sines = *run;

    sines.out = run->sine;
    sines.out_stride = run->sine_stride;
    for (int64_t end = row + tile->count; row < end; row++) {
        if (sink == TO_INTERLEAVED) {
            for (int64_t k = 0; k < n; k += vf_lanes())
                vf_store2_n(both + 2 * k, vf_load(sine + k), vf_load(cosine + k), vf_lanes());
            send_values(type, run, row, 2 * from, both, least(2 * n, run->dim - 2 * from));
        } else if (sink == TO_HALVES) {
            send_values(type, run, row, run->sine_at + from, sine, n);
            send_values(type, run, row, run->cosine_at + from, cosine, n);
        } else if (run->axis_of) {
            send_axis(type, run, row, from, cosine, sine, n);
        } else {
            send_values(type, run, row, from, cosine, n);
            send_values(type, &sines, row, from, sine, n);
        }
        cosine += STRIP_PAIRS;
        sine += STRIP_PAIRS;
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

#endif
