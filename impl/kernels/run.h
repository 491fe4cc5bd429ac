/*
 * A run is some rows whose positions have consecutive magnitudes. Their cosines and sines go
 * where a sink says (sinks.h): those of profile exact by blocks (blocks.h), the others one by
 * one. Negative positions are walked from the small end, their rows in reverse and the sine's
 * sign flipped.
 *
 * The build names the header of a plug-in with an evaluator of its own (SLEEF): POSENC_SINCOS.
 * It defines POSENC_SINCOS_F32(angles, scale, &cos, &sin) for the f32 profiles and
 * POSENC_SINCOS_REDUCED(r, q, scale, &cos, &sin), of r radians, q quarter turns and a vector of
 * scales.
 */
#ifndef POSENC_KERNELS_RUN_H
#define POSENC_KERNELS_RUN_H

#include "blocks.h"

/* True if numerics mode exact evaluates each value by itself, without blocks. */
#ifdef POSENC_SINCOS
#include POSENC_SINCOS
enum { EVALUATES_ALONE = true };
#else
enum { EVALUATES_ALONE = false };
#endif

/* ---- Each value evaluated by itself ---- */

/* A vector of a run: pairs from i on of a row, the magnitude of its position, and the product that ggml_angles()
 * carries along the row. */
struct cursor {
    int64_t row, i;
    float position, phi;
};

/* The first vector of a row. */
SIMD_INLINE struct cursor row_begin(const struct run *run, bool ggml, int64_t row)
{
    const float position = run->time != 0.0f ? run->time : (float)(run->first + (uint32_t)row);

    return (struct cursor){ row, run->from, position,
                            ggml ? ggml_phi(run->freqs, position, run->from) : 0.0f };
}

/* The angles of a vector in the f32 profiles. */
SIMD_INLINE vf angles_at(const struct run *run, bool ggml, struct cursor *at)
{
    return ggml ? ggml_angles(run->freqs, at->i, &at->phi)
                : angles_f32(run->freqs, at->position, at->i);
}

/* Moves to the next vector of the row, or to the first one of the next row. After the last vector of a run comes one
 * that may be read: without a branch the first of its row, in ggml's profile, where rows begin slowly, itself. */
SIMD_INLINE void next_vector(const struct run *run, bool ggml, struct cursor *at)
{
    if (at->i + vf_lanes() < run->pairs)
        at->i += vf_lanes();
    else if (!ggml || at->row + 1 < run->count)
        *at = row_begin(run, ggml, least(at->row + 1, run->count - 1));
}

/* Writes the cosines and sines of a vector. */
SIMD_INLINE void emit_at(const struct run *run, enum sink sink, enum how how,
                         const struct cursor *at, vf cosine, vf sine)
{
    emit(run, sink, how, at->row, at->i, least(vf_lanes(), run->pairs - at->i), cosine, sine);
}

static inline int64_t count_vectors(const struct run *run)
{
    const int64_t w = vf_lanes(), pairs = run->pairs - run->from;

    return pairs > 0 ? (pairs + w - 1) / w * run->count : 0;
}

#ifdef POSENC_SINCOS
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

/* Every row of a profile, by the evaluator of the plug-in. */
SIMD_INLINE void run_elements(const struct run *run, enum sink sink, enum how how,
                              enum posenc_profile profile, bool scaled)
{
    const struct posenc_freqs *freqs = run->freqs;
    const bool ggml = profile == POSENC_GGML_F32;

    for (int64_t row = 0; row < run->count; row++) {
        uint32_t position = run->first + (uint32_t)row;
        struct cursor at = row_begin(run, ggml, row);
        for (; at.i < run->pairs; at.i += vf_lanes()) {
            vf cosine, sine;
            if (profile == POSENC_EXACT) {
                vq q;
                vd r = phase_reduced(freqs, position, at.i, &q);
                vd scale = scaled ? vd_load(scales_at(run, row, at.i)) : vd_set1(run->scale);
                POSENC_SINCOS_REDUCED(r, q, scale, &cosine, &sine);
                if (freqs->whole)
                    mend_whole(run, row, position, at.i, &cosine, &sine);
            } else {
                POSENC_SINCOS_F32(angles_at(run, ggml, &at), run->scale, &cosine, &sine);
            }
            emit_at(run, sink, how, &at, cosine, vf_mul(sine, sign_of(run)));
        }
    }
}
#else

/* Every row in an f32 profile. The three steps of a vector (sincos.h) wait for one another, and a CPU sees too few
 * instructions ahead to find other work meanwhile. Each turn of the loop therefore takes the last step of one
 * vector, the second step of the next and the first step of the one after that. */
SIMD_INLINE void run_angles(const struct run *run, enum sink sink, enum how how, bool ggml)
{
    const vf cosine_scale = vf_set1((float)run->scale);
    const vf sine_scale = vf_mul(cosine_scale, sign_of(run));
    struct cursor first = row_begin(run, ggml, 0), third = first, second;
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
        emit_at(run, sink, how, &first, cosine, sine);
        sincos_short(r, &c, &s);
        r = r_third;
        q = q_second;
        q_second = q_third;
        first = second;
        second = third;
    }
}
#endif

/* Returns true if the output does not fit into a cache. */
static bool is_large(const struct run *run, enum posenc_dtype type)
{
    return 2 * run->count * run->pairs * (int64_t)posenc_dtype_size(type) >= STREAM_FROM;
}

/* Returns true if each vector fills whole lines: streaming stores of half a line are slow. */
static bool fills_lines(enum sink sink)
{
    return vf_lanes() * (int64_t)sizeof(float) * (sink == TO_INTERLEAVED ? 2 : 1) >= 64;
}

#ifndef POSENC_SINCOS
/* Returns true if streaming stores pay: the run is large, and each of its vectors fills
 * whole lines at once and lies on a boundary of its own size. */
static bool may_stream(const struct run *run, enum sink sink)
{
    int64_t vector = vf_lanes() * (int64_t)sizeof(float);
    int64_t rows = run->out_stride * (int64_t)sizeof(float),
            bases = (int64_t)(uintptr_t)run->out;

    if (!vf_streams() || run->from != 0 || run->axis_of || !is_large(run, POSENC_F32) ||
        !fills_lines(sink))
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

/* One row at a time with a fraction, profile exact: nothing to rotate from, each value evaluated by itself. */
SIMD_INLINE void run_time(const struct run *run, enum sink sink, enum how how)
{
    for (int64_t i = run->from; i < run->pairs; i += vf_lanes()) {
        _Alignas(64) double r[POSENC_PLAN_PAD];
        _Alignas(64) uint64_t q[POSENC_PLAN_PAD];
        vf cosine, sine;
        posenc_time_angles(run->freqs, run->time, i, vf_lanes(), r, q);
        vd scale = run->scales ? vd_load(scales_at(run, 0, i)) : vd_set1(run->scale);
        sincos_of_reduced(vd_load(r), vq_load(q), scale, &cosine, &sine);
        emit(run, sink, how, 0, i, least(vf_lanes(), run->pairs - i), cosine,
             vf_mul(sine, sign_of(run)));
    }
}

#ifdef POSENC_SINCOS
SIMD_INLINE void run_all(const struct run *run, enum sink sink, bool add)
{
    const enum how how = add ? ADDED : STORED;
    const enum posenc_profile profile = run->freqs->view.profile;

    if (profile == POSENC_GGML_F32)
        run_elements(run, sink, how, POSENC_GGML_F32, false);
    else if (profile != POSENC_EXACT)
        run_elements(run, sink, how, POSENC_HF_F32, false);
    else if (run->time != 0.0f)
        run_time(run, sink, how);
    else if (sink == TO_TILE && run->scales)
        run_elements(run, sink, how, POSENC_EXACT, true);
    else
        run_elements(run, sink, how, POSENC_EXACT, false);
}
#else
SIMD_INLINE void run_all(const struct run *run, enum sink sink, bool add)
{
    const enum how how = add ? ADDED : STORED;
    const enum posenc_profile profile = run->freqs->view.profile;

    if (profile == POSENC_GGML_F32) {
        run_angles(run, sink, how, true);
    } else if (profile != POSENC_EXACT) {
        run_angles(run, sink, how, false);
    } else if (run->time != 0.0f) {
        run_time(run, sink, how);
    } else if (sink == TO_TILE && run->scales) {
        run_blocks(run, sink, how, true);
    } else if (sink != TO_TILE && !add && may_stream(run, sink)) {
        run_blocks(run, sink, STREAMED, false);
        stream_end();
    } else {
        run_blocks(run, sink, how, false);
    }
}
#endif

#endif
