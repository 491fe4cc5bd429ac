/*
 * A run, and where its cosines and sines go: to rows of the output or to a tile, as a sink says.
 */
#ifndef POSENC_KERNELS_SINKS_H
#define POSENC_KERNELS_SINKS_H

#include "stores.h"

/* Destination of a vector of cosines and sines: rows of the output, all f32, or of a tile. */
enum sink { TO_COS_AND_SIN, TO_INTERLEAVED, TO_HALVES, TO_TILE };

/* Pairs are taken in strips whose anchors and step1 rows stay in the L1 cache. */
enum { STRIP_PAIRS = POSENC_PLAN_PAD };

/* `count` rows for the consecutive magnitudes first, first + 1, ...: row r of an output begins
 * r * stride elements after its base; in a tile with pair `from`, at r * STRIP_PAIRS. */
struct run {
    const struct posenc_freqs *freqs;
    uint32_t first;
    float time; /* not 0: one row at this magnitude, which has a fraction */
    int64_t count;
    bool negative;
    double scale;
    const double *scales;       /* a tile's own, value by value, `scale` being 1; or NULL */
    int64_t dim;                /* elements of a row of out */
    int64_t sine_at, cosine_at; /* TO_HALVES: columns where theirs begin */
    int64_t from, pairs;        /* pairs that are evaluated: [from, pairs) */
    const uint8_t *axis_of;     /* where not NULL, only those pairs of them with this axis */
    uint8_t axis;
    void *out, *sine; /* sine: TO_COS_AND_SIN and TO_TILE only, out then takes the cosines */
    const void *x;
    float x_scale;
    int64_t out_stride, sine_stride, x_stride;
};

/* Returns the factor of sines. */
SIMD_INLINE vf sign_of(const struct run *run) { return vf_set1(run->negative ? -1.0f : 1.0f); }

SIMD_INLINE void write_n(enum how how, float *p, vf value, int64_t n)
{
    if (n < vf_lanes())
        vf_store_n(p, value, n);
    else if (how == STREAMED)
        vf_stream(p, value);
    else
        vf_store(p, value);
}

/* n floats of one row from a column on, onto x where there is one. */
SIMD_INLINE void put(const struct run *run, enum how how, int64_t row, int64_t column, vf value,
                     int64_t n)
{
    if (how == ADDED) {
        const float *x = (const float *)run->x + row * run->x_stride + column;
        value = vf_fma(n == vf_lanes() ? vf_load(x) : vf_load_n(x, n), vf_set1(run->x_scale),
                       value);
    }
    write_n(how, (float *)run->out + row * run->out_stride + column, value, n);
}

/* n pairs sin, cos, sin, cos, ...; of the last one only the sine where an odd dim ends. */
SIMD_INLINE void put_interleaved(const struct run *run, enum how how, int64_t row, int64_t i,
                                 vf cosine, vf sine, int64_t n)
{
    float *out = (float *)run->out + row * run->out_stride + 2 * i;
    const float *x = how == ADDED ? (const float *)run->x + row * run->x_stride + 2 * i : NULL;

    if (2 * (i + n) > run->dim) {
        float sines[POSENC_PLAN_PAD];
        vf_store(sines, sine);
        vf last = vf_set1(sines[n - 1]);
        if (how == ADDED)
            last = vf_fma(vf_load_n(x + 2 * n - 2, 1), vf_set1(run->x_scale), last);
        vf_store_n(out + 2 * n - 2, last, 1);
        if (--n == 0)
            return;
    }
    if (how == ADDED) {
        vf even, odd, scale = vf_set1(run->x_scale);
        vf_load2_n(x, n, &even, &odd);
        sine = vf_fma(even, scale, sine);
        cosine = vf_fma(odd, scale, cosine);
    }
    vf_store2_n(out, sine, cosine, n);
}

/* Puts the values of those of n pairs that belong to the run's axis, one by one. */
SIMD_INLINE void put_axis(const struct run *run, int64_t row, int64_t i, int64_t n, vf cosine,
                          vf sine)
{
    float cosines[POSENC_PLAN_PAD], sines[POSENC_PLAN_PAD];

    vf_store(cosines, cosine);
    vf_store(sines, sine);
    for (int64_t k = 0; k < n; k++)
        if (run->axis_of[i + k] == run->axis) {
            ((float *)run->out)[row * run->out_stride + i + k] = cosines[k];
            ((float *)run->sine)[row * run->sine_stride + i + k] = sines[k];
        }
}

/* n pairs of one row from i on; the sine has its sign. */
SIMD_INLINE void emit(const struct run *run, enum sink sink, enum how how, int64_t row,
                      int64_t i, int64_t n, vf cosine, vf sine)
{
    switch (sink) {
    case TO_COS_AND_SIN:
        if (run->axis_of) {
            put_axis(run, row, i, n, cosine, sine);
            break;
        }
        put(run, how, row, i, cosine, n);
        write_n(how, (float *)run->sine + row * run->sine_stride + i, sine, n);
        break;
    case TO_INTERLEAVED:
        put_interleaved(run, how, row, i, cosine, sine, n);
        break;
    case TO_HALVES:
        put(run, how, row, run->sine_at + i, sine, n);
        put(run, how, row, run->cosine_at + i, cosine, n);
        break;
    case TO_TILE:
        vf_store((float *)run->out + row * STRIP_PAIRS + (i - run->from), cosine);
        vf_store((float *)run->sine + row * STRIP_PAIRS + (i - run->from), sine);
        break;
    }
}

/* ---- Whole vectors of the output ---- */

/* The pair up to which vectors of pairs from `from` on are vectors of the output, or two, none of them
 * cut, and two that are alike from row to row. */
SIMD_INLINE int64_t whole_to(const struct run *run, enum sink sink, int64_t from, int64_t to)
{
    if (sink == TO_COS_AND_SIN && (run->axis_of || run->out_stride != run->sine_stride))
        return from;
    if (sink == TO_INTERLEAVED)
        to = vf_lanes() > 1 ? least(to, run->dim / 2) : from;
    return to - (to - from) % vf_lanes();
}

/* The two vectors of a row, rounded, as they are written. */
SIMD_INLINE void round_whole(enum sink sink, vd cosine, vd sine, vf *a, vf *b)
{
    if (sink == TO_INTERLEAVED) {
        vf_turns_from_vd(sine, cosine, a, b);
    } else {
        *a = vf_from_vd(cosine);
        *b = vf_from_vd(sine);
    }
}

/* Address of the first value, and of the value to add to it; and bytes from there to the second one and to the
 * next row. */
struct spot {
    char *out;
    const char *x;
};
struct pitch {
    int64_t second, out, x;
};

/* The column of the first one. */
SIMD_INLINE int64_t first_column(const struct run *run, enum sink sink, int64_t i)
{
    return sink == TO_TILE          ? i - run->from
           : sink == TO_INTERLEAVED ? 2 * i
           : sink == TO_HALVES      ? run->cosine_at + i
                                    : i;
}

SIMD_INLINE struct pitch pitch_of(const struct run *run, enum sink sink)
{
    const int64_t size = (int64_t)sizeof(float);
    const int64_t arrays = (int64_t)((uintptr_t)run->sine - (uintptr_t)run->out);
    const int64_t halves = (run->sine_at - run->cosine_at) * size;

    return (struct pitch){ sink == TO_INTERLEAVED ? vf_lanes() * size
                           : sink == TO_HALVES    ? halves
                                                  : arrays,
                           (sink == TO_TILE ? STRIP_PAIRS : run->out_stride) * size,
                           run->x_stride * size };
}

/* Returns the spot of pairs from i on. */
SIMD_INLINE struct spot spot_of(const struct run *run, enum sink sink, enum how how,
                                int64_t row, int64_t i)
{
    const struct pitch pitch = pitch_of(run, sink);
    const int64_t at = first_column(run, sink, i) * (int64_t)sizeof(float);
    char *out = (char *)run->out + (row * pitch.out + at);

    return (struct spot){ out, how == ADDED || how == ASKED
                                   ? (const char *)run->x + (row * pitch.x + at)
                                   : out };
}

/* n rows on, or back; */
SIMD_INLINE void move_rows(struct spot *spot, const struct pitch *pitch, int64_t n)
{
    spot->out += n * pitch->out;
    spot->x += n * pitch->x;
}

/* n pairs on. */
SIMD_INLINE void move_pairs(struct spot *spot, enum sink sink, int64_t n)
{
    const int64_t bytes = (sink == TO_INTERLEAVED ? 2 * n : n) * (int64_t)sizeof(float);

    spot->out += bytes;
    spot->x += bytes;
}

/* The array that the second vector is in may be another one. */
SIMD_INLINE float *second_at(const char *first, const struct pitch *pitch)
{
    return (float *)((uintptr_t)first + (uintptr_t)pitch->second); /* NOLINT */
}

/* The next row. It is walked to: with all rows' addresses worked out ahead there are not registers
 * enough (1.3 times the time, Zen 5). */
SIMD_INLINE void put_next(enum how how, struct spot *spot, const struct pitch *pitch,
                          int64_t step, float x_scale, vf a, vf b)
{
    move_rows(spot, pitch, step);
    __asm__("" : "+r"(spot->out));
    if (how == ADDED) {
        __asm__("" : "+r"(spot->x));
        a = vf_fma(vf_load((const float *)(const void *)spot->x), vf_set1(x_scale), a);
        b = vf_fma(vf_load(second_at(spot->x, pitch)), vf_set1(x_scale), b);
    }
    if (how == ASKED) {
        __asm__("" : "+r"(spot->x));
        ask_for(spot->x, 0);
        ask_for(second_at(spot->x, pitch), 0);
    }
    write_n(how, (float *)(void *)spot->out, a, vf_lanes());
    write_n(how, second_at(spot->out, pitch), b, vf_lanes());
}

/* The scales of a row's pairs from i on, where each has its own. */
SIMD_INLINE const double *scales_at(const struct run *run, int64_t row, int64_t i)
{
    return run->scales + row * STRIP_PAIRS + (i - run->from);
}

#endif
