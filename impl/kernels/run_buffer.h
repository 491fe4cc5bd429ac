/*
 * Runs of numerics mode exact that are computed as f32 rows in a buffer, and go from there to the output in the order
 * of memory: 16-bit outputs, which are rounded once more on the way, and large f32 outputs.
 *
 * The recurrence (run_blocks.h) fills eight rows side by side, one cache line of each at a time. That order is slow for
 * an output or an x in DRAM, and vectors shorter than a line could not use streaming stores at all.
 */
#ifndef POSENC_KERNELS_RUN_BUFFER_H
#define POSENC_KERNELS_RUN_BUFFER_H

#include "run.h"
#include "biases.h"

/* The buffer holds rows of the output, or cosines before sines. It has room for one group of the longest rows.
 * Shorter rows take as many groups of a block as fit into half of an L1 cache of 32 KiB. */
enum { BUFFER_FLOATS = POSENC_GROUP * WIDE_STRIP_CHANNELS, BUFFER_TARGET_FLOATS = 4096 };
struct row_buffer {
    _Alignas(64) float rows[BUFFER_FLOATS];
    struct anchors anchors;
};

/* Returns the elements per row of each output array. */
static int64_t row_elements(const struct run *run, enum sink sink)
{
    return sink == TO_COS_AND_SIN   ? run->pairs
           : sink == TO_INTERLEAVED ? run->dim
                                    : 2 * run->pairs;
}

/* Returns the mode in which rows are copied from the buffer to the output. */
static enum store_mode buffer_store_mode(const struct run *run, enum posenc_dtype type)
{
    if (!is_large(run, type))
        return run->x ? ADD : STORE;
    if (!vf_has_streams() || run->x == run->out)
        return run->x ? ADD_PREFETCH : STORE;
    return run->x ? ADD_STREAM_BUFFERED : STREAM;
}

/* Returns true if a run can be computed in a buffer, and has to be or gains from it. */
static bool can_buffer(const struct run *run, enum sink sink, enum posenc_dtype type)
{
    return !HAS_OWN_SINCOS && run->freqs->view.numerics == POSENC_NUMERICS_EXACT &&
           run->time == 0.0f && !run->freqs->xpos_step && !run->axis_of && run->from == 0 &&
           run->pairs > 0 && run->pairs <= WIDE_STRIP_PAIRS &&
           (type != POSENC_DTYPE_F32 ||
            (mode_streams(buffer_store_mode(run, type)) && (run->x || !fills_lines(sink))));
}

/* Returns the end of the rows from `row` on that are computed at once: at least one group. In f32 the buffer is
 * filled less, since streaming stores wait in the core's write buffers while the next rows are computed. */
static int64_t buffer_end(const struct run *run, enum posenc_dtype type, int64_t row)
{
    const int64_t room =
        type == POSENC_DTYPE_F32 ? BUFFER_TARGET_FLOATS / 4 : BUFFER_TARGET_FLOATS;
    const int64_t more = room / (2 * run->pairs) - POSENC_GROUP;
    int64_t end = group_end(run, row, run->count);

    if (more > 0)
        end += more - more % POSENC_GROUP;
    return min_i64(end, block_end(run, row));
}

/* Computes rows [row, end) into the buffer. With prefetches_x, it also prefetches the x of these rows. */
static __attribute__((noinline)) void fill_buffer(const struct run *run, enum sink sink,
                                                  bool prefetches_x, int64_t row, int64_t end,
                                                  struct row_buffer *buffer)
{
    struct run rows = *run;
    struct anchors *anchors = &buffer->anchors;

    rows.first = run->first + (uint32_t)row;
    rows.out = buffer->rows;
    rows.out_stride = rows.sine_stride = row_elements(run, sink);
    rows.sine = buffer->rows + (end - row) * rows.sine_stride;
    if (row == 0 || rows.first % POSENC_BLOCK == 0)
        block_anchors(run, row, 0, run->pairs, anchors);
    if (prefetches_x)
        rows.x = (const float *)run->x + row * run->x_stride;
    if (sink == TO_COS_AND_SIN)
        block_rows(&rows, TO_COS_AND_SIN, STORE, false, 0, end - row, 0, run->pairs, anchors);
    else if (sink == TO_INTERLEAVED)
        block_rows(&rows, TO_INTERLEAVED, prefetches_x ? STORE_PREFETCH : STORE, false, 0,
                   end - row, 0, run->pairs, anchors);
    else
        block_rows(&rows, TO_HALVES, prefetches_x ? STORE_PREFETCH : STORE, false, 0, end - row,
                   0, run->pairs, anchors);
}

/* Copies rows [row, end) of n elements each to an output array; contiguous rows are copied as one. */
SIMD_INLINE void flush_array(enum posenc_dtype type, enum store_mode mode,
                             const struct run *run, const float *rows, int64_t row, int64_t end,
                             int64_t n, void *out, int64_t stride)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);

    if (stride == n && (!mode_adds(mode) || run->x_stride == n)) {
        n *= end - row;
        end = row + 1;
    }
    for (; row < end; row++, rows += n)
        put_biases(type, mode, FORWARD, rows, run->x_scale,
                   mode_adds(mode) ? (const char *)run->x + row * run->x_stride * size : NULL,
                   (char *)out + row * stride * size, 0, n);
}

SIMD_INLINE void run_buffered_as(enum posenc_dtype type, enum store_mode mode,
                                 const struct run *run, enum sink sink)
{
    const int64_t n = row_elements(run, sink);
    const bool prefetches_x = type == POSENC_DTYPE_F32 && mode == ADD_STREAM_BUFFERED;
    struct row_buffer buffer;

    for (int64_t row = 0, end; row < run->count; row = end) {
        end = buffer_end(run, type, row);
        fill_buffer(run, sink, prefetches_x, row, end, &buffer);
        flush_array(type, mode, run, buffer.rows, row, end, n, run->out, run->out_stride);
        if (!mode_adds(mode) && sink == TO_COS_AND_SIN)
            flush_array(type, mode, run, buffer.rows + (end - row) * n, row, end, n, run->sine,
                        run->sine_stride);
    }
    if (mode_streams(mode))
        vf_stream_end();
}

/* Evaluates a run by way of the buffer. */
static __attribute__((noinline)) void run_buffered(const struct run *run, enum sink sink,
                                                   enum posenc_dtype type)
{
    const enum store_mode mode = buffer_store_mode(run, type);

    if (mode == STORE)
        FOR_TYPE(type, run_buffered_as, STORE, run, sink);
    else if (mode == STREAM)
        FOR_TYPE(type, run_buffered_as, STREAM, run, sink);
    else if (mode == ADD)
        FOR_TYPE(type, run_buffered_as, ADD, run, sink);
    else if (mode == ADD_PREFETCH)
        FOR_TYPE(type, run_buffered_as, ADD_PREFETCH, run, sink);
    else
        FOR_TYPE(type, run_buffered_as, ADD_STREAM_BUFFERED, run, sink);
}

#endif
