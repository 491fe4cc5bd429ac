/*
 * Evaluation of a run (struct run in run_output.h): numerics mode exact by blocks (run_blocks.h), all others value by
 * value.
 *
 * A plug-in may bring its own sine and cosine (SLEEF): its build defines POSENC_SINCOS as the name of a header, which
 * defines
 *   POSENC_SINCOS_F32(angles, scale, &cos, &sin)      for the f32 numerics modes
 *   POSENC_SINCOS_REDUCED(r, q, scale, &cos, &sin)    for r radians and q quarter turns; scale is a vector
 */
#ifndef POSENC_KERNELS_RUN_H
#define POSENC_KERNELS_RUN_H

#include "run_blocks.h"

/* True if a plug-in evaluates each value by itself, in mode exact, too. */
#ifdef POSENC_SINCOS
#include POSENC_SINCOS
enum { HAS_OWN_SINCOS = true };
#else
enum { HAS_OWN_SINCOS = false };
#endif

/* ---- Value by value ---- */

/* A vector of a run: pairs i ... of a row, the magnitude of its position, and the product of ggml_angles(). */
struct vector_cursor {
    int64_t row, i;
    float position, phi;
};

/* Returns the first vector of a row. */
SIMD_INLINE struct vector_cursor row_begin(const struct run *run, bool ggml, int64_t row)
{
    const float position = run->time != 0.0f ? run->time : (float)(run->first + (uint32_t)row);

    return (struct vector_cursor){ row, run->from, position,
                                   ggml ? ggml_phi(run->freqs, position, run->from) : 0.0f };
}

/* Returns the angles of a vector in the f32 numerics modes. */
SIMD_INLINE vf angles_at(const struct run *run, bool ggml, struct vector_cursor *at)
{
    return ggml ? ggml_angles(run->freqs, at->i, &at->phi)
                : angles_f32(run->freqs, at->position, at->i);
}

/* Moves to the next vector, in this row or the next. Past the last vector it moves to one that may be read: without
 * a branch to the first of the last row, or, in ggml's mode, whose rows begin slowly, not at all. */
SIMD_INLINE void next_vector(const struct run *run, bool ggml, struct vector_cursor *at)
{
    if (at->i + vf_lanes() < run->pairs)
        at->i += vf_lanes();
    else if (!ggml || at->row + 1 < run->count)
        *at = row_begin(run, ggml, min_i64(at->row + 1, run->count - 1));
}

/* Stores the cosines and sines of a vector. */
SIMD_INLINE void put_cos_sin_at(const struct run *run, enum sink sink, enum store_mode mode,
                                const struct vector_cursor *at, vf cosine, vf sine)
{
    put_cos_sin(run, sink, mode, at->row, at->i, min_i64(vf_lanes(), run->pairs - at->i),
                cosine, sine);
}

static inline int64_t count_vectors(const struct run *run)
{
    const int64_t w = vf_lanes(), pairs = run->pairs - run->from;

    return pairs > 0 ? (pairs + w - 1) / w * run->count : 0;
}

#ifdef POSENC_SINCOS
/* Sets exact zeros where a wavelength is a whole number of positions and the position is at a zero. */
static __attribute__((noinline)) void fix_exact_zeros(const struct run *run, int64_t row,
                                                      uint32_t position, int64_t i, vf *cosine,
                                                      vf *sine)
{
    float cosines[POSENC_FREQS_PAD], sines[POSENC_FREQS_PAD];
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

/* Evaluates all rows by the plug-in's functions. */
SIMD_INLINE void run_own_sincos(const struct run *run, enum sink sink, enum store_mode mode,
                                enum posenc_numerics numerics, bool scaled)
{
    const struct posenc_freqs *freqs = run->freqs;
    const bool ggml = numerics == POSENC_NUMERICS_GGML_F32;

    for (int64_t row = 0; row < run->count; row++) {
        uint32_t position = run->first + (uint32_t)row;
        struct vector_cursor at = row_begin(run, ggml, row);
        for (; at.i < run->pairs; at.i += vf_lanes()) {
            vf cosine, sine;
            if (numerics == POSENC_NUMERICS_EXACT) {
                vq q;
                vd r = phase_reduced(freqs, position, at.i, &q);
                vd scale = scaled ? vd_load(scales_at(run, row, at.i)) : vd_set1(run->scale);
                POSENC_SINCOS_REDUCED(r, q, scale, &cosine, &sine);
                if (freqs->whole)
                    fix_exact_zeros(run, row, position, at.i, &cosine, &sine);
            } else {
                POSENC_SINCOS_F32(angles_at(run, ggml, &at), run->scale, &cosine, &sine);
            }
            put_cos_sin_at(run, sink, mode, &at, cosine, vf_mul(sine, sine_sign(run)));
        }
    }
}
#else

/* Evaluates all rows in an f32 numerics mode. The three steps of a vector (sincos.h) depend on each other, and a CPU's
 * window of instructions is too short to overlap vectors. The loop is therefore software-pipelined: each iteration
 * takes the last step of one vector, the second step of the next and the first step of the one after that. */
SIMD_INLINE void run_f32_angles(const struct run *run, enum sink sink, enum store_mode mode,
                                bool ggml)
{
    const vf cosine_scale = vf_set1((float)run->scale);
    const vf sine_scale = vf_mul(cosine_scale, sine_sign(run));
    struct vector_cursor first = row_begin(run, ggml, 0), third = first, second;
    int64_t n = count_vectors(run);
    vd r, c, s;
    vq q, q_second;

    if (n == 0)
        return;
    r = angles_reduced(angles_at(run, ggml, &third), &q);
    sincos_short(r, &c, &s);
    next_vector(run, ggml, &third);
    second = third;
    r = angles_reduced(angles_at(run, ggml, &third), &q_second);
    for (; n > 0; n--) {
        vf cosine, sine;
        vq q_third;

        next_vector(run, ggml, &third);
        vd r_third = angles_reduced(angles_at(run, ggml, &third), &q_third);
        sincos_scaled(q, c, s, cosine_scale, sine_scale, &cosine, &sine);
        put_cos_sin_at(run, sink, mode, &first, cosine, sine);
        sincos_short(r, &c, &s);
        r = r_third;
        q = q_second;
        q_second = q_third;
        first = second;
        second = third;
    }
}
#endif

/* Returns true if the output exceeds the caches. */
static bool is_large(const struct run *run, enum posenc_dtype type)
{
    return 2 * run->count * run->pairs * (int64_t)posenc_dtype_size(type) >= STREAM_MIN_BYTES;
}

/* Returns true if each vector fills whole cache lines; streaming stores of half a line are slow. */
static bool fills_lines(enum sink sink)
{
    return vf_lanes() * (int64_t)sizeof(float) * (sink == TO_INTERLEAVED ? 2 : 1) >= 64;
}

#ifndef POSENC_SINCOS
/* Returns true if streaming stores are faster: for large runs whose vectors are aligned and fill cache lines. */
static bool may_stream(const struct run *run, enum sink sink)
{
    int64_t vector = vf_lanes() * (int64_t)sizeof(float);
    int64_t rows = run->out_stride * (int64_t)sizeof(float),
            bases = (int64_t)(uintptr_t)run->out;

    if (!vf_has_streams() || run->from != 0 || run->axis_of ||
        !is_large(run, POSENC_DTYPE_F32) || !fills_lines(sink))
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

/* Returns the rounded cosines and sines, times scale, of r radians plus q quarter turns. */
SIMD_INLINE void sincos_of_reduced(vd r, vq q, vd scale, vf *cosine, vf *sine)
{
#ifdef POSENC_SINCOS
    POSENC_SINCOS_REDUCED(r, q, scale, cosine, sine);
#else
    vd c, s;
    sincos_reduced(r, &c, &s);
    vd_quadrant(q, c, s, &c, &s);
    *cosine = vf_from_vd(vd_mul(c, scale));
    *sine = vf_from_vd(vd_mul(s, scale));
#endif
}

/* Evaluates the single row of a fraction in mode exact. It has no anchor, so each value is evaluated by itself. */
SIMD_INLINE void run_fraction(const struct run *run, enum sink sink, enum store_mode mode)
{
    for (int64_t i = run->from; i < run->pairs; i += vf_lanes()) {
        _Alignas(64) double r[POSENC_FREQS_PAD];
        _Alignas(64) uint64_t q[POSENC_FREQS_PAD];
        vf cosine, sine;
        posenc_time_angles(run->freqs, run->time, i, vf_lanes(), r, q);
        vd scale = run->scales ? vd_load(scales_at(run, 0, i)) : vd_set1(run->scale);
        sincos_of_reduced(vd_load(r), vq_load(q), scale, &cosine, &sine);
        put_cos_sin(run, sink, mode, 0, i, min_i64(vf_lanes(), run->pairs - i), cosine,
                    vf_mul(sine, sine_sign(run)));
    }
}

/* Evaluates a run, and stores it in f32. */
#ifdef POSENC_SINCOS
SIMD_INLINE void run_evaluate(const struct run *run, enum sink sink, bool add)
{
    const enum store_mode mode = add ? ADD : STORE;
    const enum posenc_numerics numerics = run->freqs->view.numerics;

    if (numerics == POSENC_NUMERICS_GGML_F32)
        run_own_sincos(run, sink, mode, POSENC_NUMERICS_GGML_F32, false);
    else if (numerics != POSENC_NUMERICS_EXACT)
        run_own_sincos(run, sink, mode, POSENC_NUMERICS_HF_F32, false);
    else if (run->time != 0.0f)
        run_fraction(run, sink, mode);
    else if (sink == TO_TILE && run->scales)
        run_own_sincos(run, sink, mode, POSENC_NUMERICS_EXACT, true);
    else
        run_own_sincos(run, sink, mode, POSENC_NUMERICS_EXACT, false);
}
#else
SIMD_INLINE void run_evaluate(const struct run *run, enum sink sink, bool add)
{
    const enum store_mode mode = add ? ADD : STORE;
    const enum posenc_numerics numerics = run->freqs->view.numerics;

    if (numerics == POSENC_NUMERICS_GGML_F32) {
        run_f32_angles(run, sink, mode, true);
    } else if (numerics != POSENC_NUMERICS_EXACT) {
        run_f32_angles(run, sink, mode, false);
    } else if (run->time != 0.0f) {
        run_fraction(run, sink, mode);
    } else if (sink == TO_TILE && run->scales) {
        run_blocks(run, sink, mode, true);
    } else if (sink != TO_TILE && !add && may_stream(run, sink)) {
        run_blocks(run, sink, STREAM, false);
        vf_stream_end();
    } else {
        run_blocks(run, sink, mode, false);
    }
}
#endif

#endif
