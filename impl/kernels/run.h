/*
 * A run is some rows whose positions have consecutive magnitudes.  Their cosines and sines
 * (sincos.h) go to the output or to a tile, as a sink says.  Negative positions are walked from
 * the small end, their rows in reverse and the sine's sign flipped.
 *
 * The build names the header of a plug-in with an evaluator of its own (SLEEF): POSENC_SINCOS.
 * It defines POSENC_SINCOS_F32(angles, scale, &cos, &sin) for the f32 profiles and
 * POSENC_SINCOS_REDUCED(r, q, scale, &cos, &sin), of r radians, q quarter turns and a vector of
 * scales.
 */
#ifndef POSENC_KERNELS_RUN_H
#define POSENC_KERNELS_RUN_H

#include "sincos.h"

#ifdef POSENC_SINCOS
#include POSENC_SINCOS
#else
#define POSENC_SINCOS_F32 sincos_f32
#endif

/* Where a vector of cosines and sines goes: to rows of the output, all f32, or of a tile. */
enum sink { TO_COS_AND_SIN, TO_INTERLEAVED, TO_HALVES, TO_TILE };

/* How it goes there: stored, stored past the caches, or added to x and stored. */
enum how { STORED, STREAMED, ADDED };

/* A table of more bytes than this does not stay in a cache: written past them it spares memory
 * the reading of every line first (1.7 times as fast on Zen 4). */
enum { STREAM_FROM = 32 << 20 };

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
    if (how == STREAMED && n == vf_lanes() && n > 1) {
        vf_stream(out, vf_zip_lo(sine, cosine));
        vf_stream(out + n, vf_zip_hi(sine, cosine));
    } else {
        vf_store2_n(out, sine, cosine, n);
    }
}

/* Those of n pairs that turn with the run's axis, one by one. */
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

SIMD_INLINE void emit(const struct run *run, enum sink sink, enum how how, int64_t row,
                      int64_t i, int64_t n, vf cosine, vf sine)
{
    if (run->negative)
        sine = vf_mul(sine, vf_set1(-1.0f));
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

/* The scales of a row's pairs from i on, where each has its own. */
SIMD_INLINE const double *scales_at(const struct run *run, int64_t row, int64_t i)
{
    return run->scales + row * STRIP_PAIRS + (i - run->from);
}

#ifdef POSENC_SINCOS_REDUCED
/* Puts exact zeros where the wavelengths are whole numbers and a position is a zero of them. */
static __attribute__((noinline)) void mend_whole(const struct run *run, int64_t row,
                                                 uint32_t position, int64_t i, vf *cosine,
                                                 vf *sine)
{
    float cosines[POSENC_PLAN_PAD], sines[POSENC_PLAN_PAD];
    vf_store(cosines, *cosine);
    vf_store(sines, *sine);
    for (int64_t k = 0; k < vf_lanes() && position != 0; k++) {
        double scale = run->scales ? scales_at(run, row, i)[k] : run->scale;
        double omega = run->freqs->view.omega[i + k];
        if (posenc_whole_zero((double)cosines[k], omega, scale))
            cosines[k] = (float)(0.0 * scale);
        if (posenc_whole_zero((double)sines[k], omega, scale))
            sines[k] = (float)(0.0 * scale);
    }
    *cosine = vf_load(cosines);
    *sine = vf_load(sines);
}
#endif

/* Every row, each value evaluated by itself. */
SIMD_INLINE void run_elements(const struct run *run, enum sink sink, enum how how, bool exact,
                              bool scaled)
{
    for (int64_t row = 0; row < run->count; row++) {
        uint32_t position = run->first + (uint32_t)row;
        float phi = phi_f32(run->freqs, (float)position, run->from);
        for (int64_t i = run->from; i < run->pairs; i += vf_lanes()) {
            vf cosine, sine;
#ifdef POSENC_SINCOS_REDUCED
            if (exact) {
                vq q;
                vd r = phase_reduced(run->freqs, position, i, &q);
                vd scale = scaled ? vd_load(scales_at(run, row, i)) : vd_set1(run->scale);
                POSENC_SINCOS_REDUCED(r, q, scale, &cosine, &sine);
                if (run->freqs->whole)
                    mend_whole(run, row, position, i, &cosine, &sine);
            } else
#endif
                POSENC_SINCOS_F32(angles_f32(run->freqs, (float)position, i, &phi), run->scale,
                                  &cosine, &sine);
            emit(run, sink, how, row, i, least(vf_lanes(), run->pairs - i), cosine, sine);
        }
    }
    (void)exact;
    (void)scaled;
}

/* The rows [row, end) of one group of POSENC_STEP positions, one vector of pairs: (c, s) is the
 * group's first position, each row rotates it once. */
SIMD_INLINE void group_rows(const struct run *run, enum sink sink, enum how how, bool scaled,
                            int64_t row, int64_t end, int64_t i, int64_t n, vf limit, vd c,
                            vd s)
{
    const struct posenc_freqs *freqs = run->freqs;

    /* Copies of the plan's pointers would spare some loads; gcc then is 3 % slower on Zen 4. */
    for (; row < end; row++) {
        uint32_t position = run->first + (uint32_t)row;
        int64_t at = (int64_t)(position % POSENC_STEP) * freqs->stride + i;
        vd row_c, row_s;
        vf cosine, sine;

        rotate(c, s, vd_load(freqs->step1_cos + at), vd_load(freqs->step1_sin + at), &row_c,
               &row_s);
        if (scaled) {
            vd scale = vd_load(scales_at(run, row, i));
            row_c = vd_mul(row_c, scale);
            row_s = vd_mul(row_s, scale);
            limit = vf_from_vd(vd_mul(scale, vd_set1(POSENC_SMALL)));
        }
        sincos_round(freqs, position, i, n, run->scale, scaled ? scales_at(run, row, i) : NULL,
                     limit, row_c, row_s, &cosine, &sine);
        emit(run, sink, how, row, i, n, cosine, sine);
    }
}

/* Rows [row, end) within one block of POSENC_BLOCK positions, pairs [from, to). */
SIMD_INLINE void block_strip(const struct run *run, enum sink sink, enum how how, bool scaled,
                             int64_t row, int64_t end, int64_t from, int64_t to)
{
    const struct posenc_freqs *freqs = run->freqs;
    uint32_t anchor = (run->first + (uint32_t)row) / POSENC_BLOCK * POSENC_BLOCK;
    double cosines[STRIP_PAIRS], sines[STRIP_PAIRS];

    for (int64_t i = from; i < to; i += vf_lanes()) {
        vd c, s, scale = vd_set1(run->scale);
        vq q;
        vd r = phase_reduced(freqs, anchor, i, &q);
        sincos_reduced(r, &c, &s);
        vd_quadrant(q, c, s, &c, &s);
        vd_store(cosines + (i - from), vd_mul(c, scale));
        vd_store(sines + (i - from), vd_mul(s, scale));
    }
    while (row < end) {
        uint32_t position = run->first + (uint32_t)row;
        int64_t group_end = least(end, row + POSENC_STEP - (int64_t)(position % POSENC_STEP));
        int64_t at = (int64_t)(position % POSENC_BLOCK / POSENC_STEP) * freqs->stride;

        for (int64_t i = from; i < to; i += vf_lanes()) {
            int64_t n = least(vf_lanes(), to - i);
            vf limit = vf_set1((float)(POSENC_SMALL * fabs(run->scale)));
            vd c, s;
            if (n < vf_lanes())
                limit = vf_select_lt(vf_iota(), vf_set1((float)n), limit, vf_set1(0.0f));
            rotate(vd_load(cosines + (i - from)), vd_load(sines + (i - from)),
                   vd_load(freqs->step8_cos + at + i), vd_load(freqs->step8_sin + at + i), &c,
                   &s);
            group_rows(run, sink, how, scaled, row, group_end, i, n, limit, c, s);
        }
        row = group_end;
    }
}

SIMD_INLINE void run_blocks(const struct run *run, enum sink sink, enum how how, bool scaled)
{
    for (int64_t row = 0; row < run->count;) {
        int64_t into = (int64_t)((run->first + (uint32_t)row) % POSENC_BLOCK);
        int64_t end = least(run->count, row + POSENC_BLOCK - into);

        for (int64_t from = run->from; from < run->pairs; from += STRIP_PAIRS)
            block_strip(run, sink, how, scaled, row, end, from,
                        least(from + STRIP_PAIRS, run->pairs));
        row = end;
    }
}

#ifndef POSENC_SINCOS_REDUCED
/* Whether storing past the caches pays: the run is large, each of its vectors fills whole lines
 * at once (halves of a line would be written out one by one) and lies on a boundary of its own
 * size. */
static bool may_stream(const struct run *run, enum sink sink)
{
    int64_t vector = vf_lanes() * (int64_t)sizeof(float);
    int64_t rows = run->out_stride * (int64_t)sizeof(float),
            bases = (int64_t)(uintptr_t)run->out;

    if (!vf_streams() || run->from != 0 || run->axis_of ||
        run->count * run->pairs < STREAM_FROM / (int64_t)(2 * sizeof(float)) ||
        vector * (sink == TO_INTERLEAVED ? 2 : 1) < 64)
        return false;
    if (sink == TO_COS_AND_SIN) {
        rows |= run->sine_stride * (int64_t)sizeof(float);
        bases |= (int64_t)(uintptr_t)run->sine;
    } else if (sink != TO_INTERLEAVED) {
        rows |= run->dim / 2 * (int64_t)sizeof(float);
    }
    return (rows | bases) % vector == 0;
}
#endif

/* Radians and quarter turns -> rounded cosines and sines, times scale. */
SIMD_INLINE void sincos_of_reduced(vd r, vq q, vd scale, vf *cosine, vf *sine)
{
#ifdef POSENC_SINCOS_REDUCED
    POSENC_SINCOS_REDUCED(r, q, scale, cosine, sine);
#else
    vd c, s;
    sincos_reduced(r, &c, &s);
    vd_quadrant(q, c, s, &c, &s);
    *cosine = vf_from_vd(vd_mul(c, scale));
    *sine = vf_from_vd(vd_mul(s, scale));
#endif
}

/* One row at a time with a fraction: nothing to rotate from, each value evaluated by itself. */
SIMD_INLINE void run_time(const struct run *run, enum sink sink, enum how how)
{
    const struct posenc_freqs *freqs = run->freqs;
    bool exact = freqs->view.profile == POSENC_EXACT;
    float time = run->time, phi = phi_f32(freqs, time, run->from);

    for (int64_t i = run->from; i < run->pairs; i += vf_lanes()) {
        double r[POSENC_PLAN_PAD];
        uint64_t q[POSENC_PLAN_PAD];
        vf cosine, sine;
        if (exact) {
            posenc_time_angles(freqs, time, i, vf_lanes(), r, q);
            vd scale = run->scales ? vd_load(scales_at(run, 0, i)) : vd_set1(run->scale);
            sincos_of_reduced(vd_load(r), vq_load(q), scale, &cosine, &sine);
        } else {
            POSENC_SINCOS_F32(angles_f32(freqs, time, i, &phi), run->scale, &cosine, &sine);
        }
        emit(run, sink, how, 0, i, least(vf_lanes(), run->pairs - i), cosine, sine);
    }
}

SIMD_INLINE void run_all(const struct run *run, enum sink sink, bool add)
{
    enum how how = add ? ADDED : STORED;
    bool exact = run->freqs->view.profile == POSENC_EXACT;

    if (run->time != 0.0f) {
        run_time(run, sink, how);
        return;
    }
#ifdef POSENC_SINCOS_REDUCED
    if (sink == TO_TILE && run->scales)
        run_elements(run, sink, how, true, true);
    else
        run_elements(run, sink, how, exact, false);
#else
    if (!exact) {
        run_elements(run, sink, how, false, false);
    } else if (sink == TO_TILE && run->scales) {
        run_blocks(run, sink, how, true);
    } else if (sink != TO_TILE && !add && may_stream(run, sink)) {
        run_blocks(run, sink, STREAMED, false);
        stream_end();
    } else {
        run_blocks(run, sink, how, false);
    }
#endif
}

#endif
