/*
 * Runs (run.h) of profile exact whose rows are made in f32 in the nearest cache, some at a time, and go
 * from there to the output in the order of memory: those in 16 bits, which are rounded once more on the
 * way, and of those in f32 what is large.
 *
 * As they are made, eight rows lie side by side, a line of each. Of what comes from DRAM, or goes there
 * past the caches, that takes 1.3 to 1.5 times the time (Zen 5); and a vector that does not fill a line
 * could not go past them at all.
 */
#ifndef POSENC_KERNELS_IN_ORDER_H
#define POSENC_KERNELS_IN_ORDER_H

#include "run.h"
#include "scores.h"

/* Rows of the output, or cosines before sines: one group of the longest, or so many groups of a block that
 * half of an L1 cache of 32 KiB has room for them. */
enum { NEAR_MOST = POSENC_GROUP * ADDED_CHANNELS, NEAR_USUAL = 4096 };
struct near_rows {
    _Alignas(64) float rows[NEAR_MOST];
    struct anchors anchors;
};

/* Elements of a row, of each array that a run is written to. */
static int64_t row_elements(const struct run *run, enum sink sink)
{
    return sink == TO_COS_AND_SIN   ? run->pairs
           : sink == TO_INTERLEAVED ? run->dim
                                    : 2 * run->pairs;
}

/* Returns the way in which rows are written to the output. */
static enum how how_sent(const struct run *run, enum posenc_dtype type)
{
    if (!is_large(run, type))
        return run->x ? ADDED : STORED;
    if (!vf_streams() || run->x == run->out)
        return run->x ? ADDED_FAR : STORED;
    return run->x ? ADDED_SENT : STREAMED;
}

static bool may_go_in_order(const struct run *run, enum sink sink, enum posenc_dtype type)
{
    return !EVALUATES_ALONE && run->freqs->view.profile == POSENC_EXACT && run->time == 0.0f &&
           !run->freqs->xpos_step && !run->axis_of && run->from == 0 && run->pairs > 0 &&
           run->pairs <= ADDED_STRIP_PAIRS &&
           (type != POSENC_F32 ||
            (streams(how_sent(run, type)) && (run->x || !fills_lines(sink))));
}

/* The end of the rows that are made at once, from `row` on: one group, or so many as there is room for. In
 * f32, which is stored past the caches, little is best, for it waits there while the next rows are made:
 * 0.88 of the time (rope_table of 64 pairs, avx2, Zen 5); in 16 bits that took 1.06. */
static int64_t near_end(const struct run *run, enum posenc_dtype type, int64_t row)
{
    const int64_t room = type == POSENC_F32 ? NEAR_USUAL / 4 : NEAR_USUAL;
    const int64_t more = room / (2 * run->pairs) - POSENC_GROUP;
    int64_t end = group_end(run, row, run->count);

    if (more > 0)
        end += more - more % POSENC_GROUP;
    return least(end, block_end(run, row));
}

/* Makes rows [row, end) of a run. Meanwhile x of the same rows may be asked for: 0.9 of the time from
 * DRAM (f32, Zen 5). */
static __attribute__((noinline)) void make_near(const struct run *run, enum sink sink, bool ask,
                                                int64_t row, int64_t end,
                                                struct near_rows *near)
{
    struct run rows = *run;
    struct anchors *anchors = &near->anchors;

    rows.first = run->first + (uint32_t)row;
    rows.out = near->rows;
    rows.out_stride = rows.sine_stride = row_elements(run, sink);
    rows.sine = near->rows + (end - row) * rows.sine_stride;
    if (row == 0 || rows.first % POSENC_BLOCK == 0)
        block_anchors(run, row, 0, run->pairs, anchors);
    if (ask)
        rows.x = (const float *)run->x + row * run->x_stride;
    if (sink == TO_COS_AND_SIN)
        block_rows(&rows, TO_COS_AND_SIN, STORED, false, 0, end - row, 0, run->pairs, anchors);
    else if (sink == TO_INTERLEAVED)
        block_rows(&rows, TO_INTERLEAVED, ask ? ASKED : STORED, false, 0, end - row, 0,
                   run->pairs, anchors);
    else
        block_rows(&rows, TO_HALVES, ask ? ASKED : STORED, false, 0, end - row, 0, run->pairs,
                   anchors);
}

/* Rows [row, end) of an array, of n elements each; as one where they lie one behind the other. */
SIMD_INLINE void send_near(enum posenc_dtype type, enum how how, const struct run *run,
                           const float *rows, int64_t row, int64_t end, int64_t n, void *out,
                           int64_t stride)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);

    if (stride == n && (!adds(how) || run->x_stride == n)) {
        n *= end - row;
        end = row + 1;
    }
    for (; row < end; row++, rows += n)
        put_biases(type, how, ALONG, rows, run->x_scale,
                   adds(how) ? (const char *)run->x + row * run->x_stride * size : NULL,
                   (char *)out + row * stride * size, 0, n);
}

SIMD_INLINE void send_in_order(enum posenc_dtype type, enum how how, const struct run *run,
                               enum sink sink)
{
    const int64_t n = row_elements(run, sink);
    const bool asks = type == POSENC_F32 && how == ADDED_SENT;
    struct near_rows near;

    for (int64_t row = 0, end; row < run->count; row = end) {
        end = near_end(run, type, row);
        make_near(run, sink, asks, row, end, &near);
        send_near(type, how, run, near.rows, row, end, n, run->out, run->out_stride);
        if (!adds(how) && sink == TO_COS_AND_SIN)
            send_near(type, how, run, near.rows + (end - row) * n, row, end, n, run->sine,
                      run->sine_stride);
    }
    if (streams(how))
        stream_end();
}

static __attribute__((noinline)) void run_in_order(const struct run *run, enum sink sink,
                                                   enum posenc_dtype type)
{
    const enum how how = how_sent(run, type);

    if (how == STORED)
        FOR_TYPE(type, send_in_order, STORED, run, sink);
    else if (how == STREAMED)
        FOR_TYPE(type, send_in_order, STREAMED, run, sink);
    else if (how == ADDED)
        FOR_TYPE(type, send_in_order, ADDED, run, sink);
    else if (how == ADDED_FAR)
        FOR_TYPE(type, send_in_order, ADDED_FAR, run, sink);
    else
        FOR_TYPE(type, send_in_order, ADDED_SENT, run, sink);
}

#endif
