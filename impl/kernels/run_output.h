/*
 * A run (consecutive positions of a table or of a sinusoidal encoding), and the stores of its cosines and sines.
 *
 * The headers of table.c build on one another:
 *   sincos.h       evaluates cosines and sines
 *   run_output.h   struct run; stores vectors of a run (this file)
 *   run_blocks.h   blocks and groups of positions: anchors, rotations, recurrence
 *   run.h          chooses the evaluation of a run
 *   run_buffer.h   runs that are computed in a buffer, and written in the order of memory
 *   run_tiles.h    runs that are computed in tiles: xPos, and the other cases in 16 bits
 *
 * They take `enum sink sink` and `enum store_mode mode` first, which are compile-time constants after inlining.
 */
#ifndef POSENC_KERNELS_RUN_OUTPUT_H
#define POSENC_KERNELS_RUN_OUTPUT_H

#include "store_modes.h"

/* Where a vector of cosines and sines goes. */
enum sink {
    TO_COS_AND_SIN, /* rope_table: cosines to `out`, sines to `sine` */
    TO_INTERLEAVED, /* sinusoidal: sin, cos, sin, cos, ... */
    TO_HALVES,      /* sinusoidal: all sines, all cosines, or the reverse */
    TO_TILE         /* a buffer of f32, [rows][STRIP_PAIRS] for either */
};

/* Pairs of a strip: the columns that are evaluated together, so that their anchors stay in the L1 cache. */
enum { STRIP_PAIRS = POSENC_FREQS_PAD };

/* `count` rows at the consecutive magnitudes first, first + 1, ... of the positions. Row r of an output begins r *
 * stride elements after its base pointer. Negative positions are walked by rising magnitude: strides are negative,
 * and so are sines. */
struct run {
    const struct posenc_freqs *freqs;
    uint32_t first;
    float time; /* if not 0: a single row at this magnitude, which has a fraction */
    int64_t count;
    bool negative;
    double scale;
    const double *scales; /* a scale per value instead of `scale`, for tiles only; or NULL */
    int64_t dim;          /* elements per row of out */
    int64_t sine_at, cosine_at; /* TO_HALVES: first column of the sines and of the cosines */
    int64_t from, pairs;        /* pairs to evaluate: [from, pairs) */
    const uint8_t *axis_of;     /* if not NULL: only pairs i with axis_of[i] == axis */
    uint8_t axis;
    void *out, *sine; /* out: the only output, or the cosines; sine: the sines or NULL */
    const void *x;
    float x_scale;
    int64_t out_stride, sine_stride, x_stride;
};

/* Returns the factor of the sines, 1 or -1. */
SIMD_INLINE vf sine_sign(const struct run *run)
{
    return vf_set1(run->negative ? -1.0f : 1.0f);
}

SIMD_INLINE void write_n(enum store_mode mode, float *p, vf value, int64_t n)
{
    if (n < vf_lanes())
        vf_store_n(p, value, n);
    else if (mode == STREAM)
        vf_stream(p, value);
    else
        vf_store(p, value);
}

/* Stores n floats of a row from a column on, added to x in mode ADD. */
SIMD_INLINE void put_values(const struct run *run, enum store_mode mode, int64_t row,
                            int64_t column, vf value, int64_t n)
{
    if (mode == ADD) {
        const float *x = (const float *)run->x + row * run->x_stride + column;
        value = vf_fma(n == vf_lanes() ? vf_load(x) : vf_load_n(x, n), vf_set1(run->x_scale),
                       value);
    }
    write_n(mode, (float *)run->out + row * run->out_stride + column, value, n);
}

/* Stores n pairs as sin, cos, sin, cos, .... An odd dim ends with the sine of its last pair. */
SIMD_INLINE void put_interleaved(const struct run *run, enum store_mode mode, int64_t row,
                                 int64_t i, vf cosine, vf sine, int64_t n)
{
    float *out = (float *)run->out + row * run->out_stride + 2 * i;
    const float *x = mode == ADD ? (const float *)run->x + row * run->x_stride + 2 * i : NULL;

    if (2 * (i + n) > run->dim) {
        float sines[POSENC_FREQS_PAD];
        vf_store(sines, sine);
        vf last = vf_set1(sines[n - 1]);
        if (mode == ADD)
            last = vf_fma(vf_load_n(x + 2 * n - 2, 1), vf_set1(run->x_scale), last);
        vf_store_n(out + 2 * n - 2, last, 1);
        if (--n == 0)
            return;
    }
    if (mode == ADD) {
        vf even, odd, scale = vf_set1(run->x_scale);
        vf_load2_n(x, n, &even, &odd);
        sine = vf_fma(even, scale, sine);
        cosine = vf_fma(odd, scale, cosine);
    }
    vf_store2_n(out, sine, cosine, n);
}

/* Stores those of n pairs that belong to the run's axis, one by one. */
SIMD_INLINE void put_axis(const struct run *run, int64_t row, int64_t i, int64_t n, vf cosine,
                          vf sine)
{
    float cosines[POSENC_FREQS_PAD], sines[POSENC_FREQS_PAD];

    vf_store(cosines, cosine);
    vf_store(sines, sine);
    for (int64_t k = 0; k < n; k++)
        if (run->axis_of[i + k] == run->axis) {
            ((float *)run->out)[row * run->out_stride + i + k] = cosines[k];
            ((float *)run->sine)[row * run->sine_stride + i + k] = sines[k];
        }
}

/* Stores n pairs of a row from pair i on. The sine already has its sign. */
SIMD_INLINE void put_cos_sin(const struct run *run, enum sink sink, enum store_mode mode,
                             int64_t row, int64_t i, int64_t n, vf cosine, vf sine)
{
    switch (sink) {
    case TO_COS_AND_SIN:
        if (run->axis_of) {
            put_axis(run, row, i, n, cosine, sine);
            break;
        }
        put_values(run, mode, row, i, cosine, n);
        write_n(mode, (float *)run->sine + row * run->sine_stride + i, sine, n);
        break;
    case TO_INTERLEAVED:
        put_interleaved(run, mode, row, i, cosine, sine, n);
        break;
    case TO_HALVES:
        put_values(run, mode, row, run->sine_at + i, sine, n);
        put_values(run, mode, row, run->cosine_at + i, cosine, n);
        break;
    case TO_TILE:
        vf_store((float *)run->out + row * STRIP_PAIRS + (i - run->from), cosine);
        vf_store((float *)run->sine + row * STRIP_PAIRS + (i - run->from), sine);
        break;
    }
}

/* ---- Whole vectors of the output ---- */

/* Returns the end of the pairs from `from` on that fill whole vectors of the output, alike in every row. */
SIMD_INLINE int64_t whole_vector_end(const struct run *run, enum sink sink, int64_t from,
                                     int64_t to)
{
    if (sink == TO_COS_AND_SIN && (run->axis_of || run->out_stride != run->sine_stride))
        return from;
    if (sink == TO_INTERLEAVED)
        to = vf_lanes() > 1 ? min_i64(to, run->dim / 2) : from;
    return to - (to - from) % vf_lanes();
}

/* Rounds a vector of pairs to the two f32 vectors that are stored. */
SIMD_INLINE void round_to_vectors(enum sink sink, vd cosine, vd sine, vf *a, vf *b)
{
    if (sink == TO_INTERLEAVED) {
        vf_zip_from_vd(sine, cosine, a, b);
    } else {
        *a = vf_from_vd(cosine);
        *b = vf_from_vd(sine);
    }
}

/* Addresses of the first of these two vectors in a row of out and x. */
struct row_cursor {
    char *out;
    const char *x;
};
/* Bytes from the first vector to the second, and from row to row of out and x. */
struct row_layout {
    int64_t second, out, x;
};

/* Returns the column of the first vector for pair i. */
SIMD_INLINE int64_t first_column(const struct run *run, enum sink sink, int64_t i)
{
    return sink == TO_TILE          ? i - run->from
           : sink == TO_INTERLEAVED ? 2 * i
           : sink == TO_HALVES      ? run->cosine_at + i
                                    : i;
}

SIMD_INLINE struct row_layout row_layout_of(const struct run *run, enum sink sink)
{
    const int64_t size = (int64_t)sizeof(float);
    const int64_t arrays = (int64_t)((uintptr_t)run->sine - (uintptr_t)run->out);
    const int64_t halves = (run->sine_at - run->cosine_at) * size;

    return (struct row_layout){ sink == TO_INTERLEAVED ? vf_lanes() * size
                                : sink == TO_HALVES    ? halves
                                                       : arrays,
                                (sink == TO_TILE ? STRIP_PAIRS : run->out_stride) * size,
                                run->x_stride * size };
}

/* Returns the addresses of the pairs from i on. */
SIMD_INLINE struct row_cursor row_cursor_at(const struct run *run, enum sink sink,
                                            enum store_mode mode, int64_t row, int64_t i)
{
    const struct row_layout layout = row_layout_of(run, sink);
    const int64_t at = first_column(run, sink, i) * (int64_t)sizeof(float);
    char *out = (char *)run->out + (row * layout.out + at);

    return (struct row_cursor){ out, mode == ADD || mode == STORE_PREFETCH
                                         ? (const char *)run->x + (row * layout.x + at)
                                         : out };
}

/* Move by n rows, which may be negative, and by n pairs. */
SIMD_INLINE void move_rows(struct row_cursor *cursor, const struct row_layout *layout,
                           int64_t n)
{
    cursor->out += n * layout->out;
    cursor->x += n * layout->x;
}

SIMD_INLINE void move_pairs(struct row_cursor *cursor, enum sink sink, int64_t n)
{
    const int64_t bytes = (sink == TO_INTERLEAVED ? 2 * n : n) * (int64_t)sizeof(float);

    cursor->out += bytes;
    cursor->x += bytes;
}

/* Returns the address of the second vector, which may be in another array (hence the integer arithmetic). */
SIMD_INLINE float *second_at(const char *first, const struct row_layout *layout)
{
    return (float *)((uintptr_t)first + (uintptr_t)layout->second); /* NOLINT */
}

/* Moves by one row (step 1 or -1) and stores its two vectors. The empty asm keeps the address in a register:
 * compilers would otherwise compute the addresses of all rows ahead, and run out of registers. */
SIMD_INLINE void put_next_row(enum store_mode mode, struct row_cursor *cursor,
                              const struct row_layout *layout, int64_t step, float x_scale,
                              vf a, vf b)
{
    move_rows(cursor, layout, step);
    __asm__("" : "+r"(cursor->out));
    if (mode == ADD) {
        __asm__("" : "+r"(cursor->x));
        a = vf_fma(vf_load((const float *)(const void *)cursor->x), vf_set1(x_scale), a);
        b = vf_fma(vf_load(second_at(cursor->x, layout)), vf_set1(x_scale), b);
    }
    if (mode == STORE_PREFETCH) {
        __asm__("" : "+r"(cursor->x));
        prefetch_at(cursor->x, 0);
        prefetch_at(second_at(cursor->x, layout), 0);
    }
    write_n(mode, (float *)(void *)cursor->out, a, vf_lanes());
    write_n(mode, second_at(cursor->out, layout), b, vf_lanes());
}

/* Returns the scales of a row's pairs from i on. */
SIMD_INLINE const double *scales_at(const struct run *run, int64_t row, int64_t i)
{
    return run->scales + row * STRIP_PAIRS + (i - run->from);
}

#endif
