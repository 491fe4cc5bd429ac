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
#include "scores.h"

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

/* Whether a run is best stored past the caches, line by line: it is large, and its rows and what a
 * tile fills of them begin and end on lines. */
static bool may_stream_lines(const struct run *run, enum sink sink, enum posenc_dtype type)
{
    const int64_t size = (int64_t)posenc_dtype_size(type), vector = vf_lanes() * 4;
    int64_t elements = run->out_stride, bases = (int64_t)(uintptr_t)run->out;

    if (!vf_streams() || run->x || run->from != 0 || run->axis_of ||
        run->freqs->view.profile != POSENC_EXACT ||
        run->count * run->pairs < STREAM_FROM / (2 * size))
        return false;
    if (sink == TO_COS_AND_SIN) {
        elements |= run->sine_stride | run->pairs;
        bases |= (int64_t)(uintptr_t)run->sine;
    } else {
        elements |= sink == TO_INTERLEAVED ? run->dim : run->dim / 2;
    }
    return (elements * size | bases) % (vector < 64 ? 64 : vector) == 0;
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

/* Lines past the caches, from memory in the nearest one.  Out of line: inlined, or with the vectors
 * streamed as they are made, gcc 12 fails on it for SVE. */
static __attribute__((noinline)) void stream_lines(void *out, const void *line, int64_t bytes)
{
    for (int64_t i = 0; i < bytes / 4; i += vf_lanes())
        vf_stream((float *)out + i, vf_load((const float *)line + i));
}

/* A part of a row, of n values: of two planes by turns, or of one, the other being NULL. */
SIMD_INLINE void send_part(enum posenc_dtype type, bool streamed, const struct run *run,
                           const void *x, void *out, const float *cosine, const float *sine,
                           int64_t n)
{
    _Alignas(64) float line[2 * STRIP_PAIRS];
    void *to = streamed ? line : out;

    if (cosine && sine)
        send_by_turns(type, x, run->x_scale, to, cosine, sine, n);
    else
        send_values(type, x, run->x_scale, to, 0, cosine ? cosine : sine, n);
    if (streamed)
        stream_lines(out, line, n * (int64_t)posenc_dtype_size(type));
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
SIMD_INLINE void send_rows(enum posenc_dtype type, bool streamed, const struct run *run,
                           enum sink sink, int64_t row, const struct run *tile)
{
    const int64_t size = (int64_t)posenc_dtype_size(type), from = tile->from;
    const int64_t n = tile->pairs - from;
    const float *cosine = tile->out, *sine = tile->sine;

    for (int64_t end = row + tile->count; row < end; row++) {
        char *out = (char *)run->out + row * run->out_stride * size;
        const char *x = run->x ? (const char *)run->x + row * run->x_stride * size : NULL;
        if (sink == TO_INTERLEAVED) {
            send_part(type, streamed, run, x ? x + 2 * from * size : NULL,
                      out + 2 * from * size, cosine, sine, least(2 * n, run->dim - 2 * from));
        } else if (sink == TO_HALVES) {
            const int64_t s = (run->sine_at + from) * size, c = (run->cosine_at + from) * size;
            send_part(type, streamed, run, x ? x + s : NULL, out + s, NULL, sine, n);
            send_part(type, streamed, run, x ? x + c : NULL, out + c, cosine, NULL, n);
        } else if (run->axis_of) {
            send_axis(type, run, row, from, cosine, sine, n);
        } else {
            char *sines = (char *)run->sine + row * run->sine_stride * size;
            send_part(type, streamed, run, NULL, out + from * size, cosine, NULL, n);
            send_part(type, streamed, run, NULL, sines + from * size, NULL, sine, n);
        }
        cosine += STRIP_PAIRS;
        sine += STRIP_PAIRS;
    }
}

static __attribute__((noinline)) void send_tile(enum posenc_dtype type, bool streamed,
                                                const struct run *run, enum sink sink,
                                                int64_t row, const struct run *tile)
{
    FOR_TYPE(type, send_rows, streamed, run, sink, row, tile);
}

static __attribute__((noinline)) void run_in_tiles(const struct run *run, enum sink sink,
                                                   enum posenc_dtype type)
{
    _Alignas(64) float cosines[TILE], sines[TILE];
    _Alignas(64) double scales[TILE];
    struct run tile = *run;
    const bool streamed = may_stream_lines(run, sink, type);

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
            send_tile(type, streamed, run, sink, row, &tile);
        }
    }
    if (streamed)
        stream_end();
}

/* A run added to x that is large and goes elsewhere: eight rows at a time are made in memory that is
 * near, then added in the order of x and stored past the caches.  Added as they are made, eight rows
 * of x come from DRAM side by side, a line of each: 1.5 times the time (Zen 5, avx512). */
SIMD_INLINE void add_in_order(enum posenc_dtype type, const struct run *run, enum sink sink)
{
    _Alignas(64) float rows[POSENC_GROUP * ADDED_CHANNELS];
    const int64_t size = (int64_t)posenc_dtype_size(type);
    const int64_t n = sink == TO_INTERLEAVED ? run->dim : 2 * run->pairs;
    struct run near = *run;
    struct anchors anchors;

    near.out = rows;
    near.out_stride = ADDED_CHANNELS;
    for (int64_t row = 0, end; row < run->count; row = end) {
        near.first = run->first + (uint32_t)row;
        end = group_end(run, row, run->count);
        if (row == 0 || near.first % POSENC_BLOCK == 0)
            block_anchors(run, row, 0, run->pairs, &anchors);
        block_rows(&near, sink, STORED, false, 0, end - row, 0, run->pairs, &anchors);
        for (int64_t k = row; k < end; k++)
            put_biases(type, ADDED_STREAMED, ALONG, rows + (k - row) * near.out_stride,
                       run->x_scale, (const char *)run->x + k * run->x_stride * size,
                       (char *)run->out + k * run->out_stride * size, 0, n);
    }
    stream_end();
}

static bool may_add_in_order(const struct run *run, enum posenc_dtype type)
{
    const int64_t bytes = run->count * run->dim * (int64_t)posenc_dtype_size(type);

    return !EVALUATES_ALONE && vf_streams() && run->x && run->x != run->out &&
           bytes >= STREAM_FROM && run->freqs->view.profile == POSENC_EXACT &&
           run->time == 0.0f && run->pairs <= ADDED_STRIP_PAIRS;
}

static __attribute__((noinline)) void run_added(const struct run *run, enum sink sink,
                                                enum posenc_dtype type)
{
    if (sink == TO_INTERLEAVED)
        FOR_TYPE(type, add_in_order, run, TO_INTERLEAVED);
    else
        FOR_TYPE(type, add_in_order, run, TO_HALVES);
}

/* A run to rows of any type. */
SIMD_INLINE void run_to_rows(const struct run *run, enum sink sink, bool add,
                             enum posenc_dtype type)
{
    bool in_lines = vf_lanes() * (int64_t)sizeof(float) >= 64 || sink == TO_INTERLEAVED;

    if (may_add_in_order(run, type))
        run_added(run, sink, type);
    else if (type == POSENC_F32 && !run->freqs->xpos_step &&
             (in_lines || !may_stream_lines(run, sink, type)))
        run_all(run, sink, add);
    else
        run_in_tiles(run, sink, type);
}

#endif
