/*
 * A run is some rows whose positions have consecutive magnitudes.  Their cosines and sines go
 * where a sink says (sinks.h): those of profile exact by blocks (blocks.h), the others one by
 * one.  Negative positions are walked from the small end, their rows in reverse and the sine's
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

#ifdef POSENC_SINCOS
#include POSENC_SINCOS
#else
#define POSENC_SINCOS_F32 sincos_f32
#endif

/* Whether profile exact has no blocks, but each value evaluated by itself. */
#ifdef POSENC_SINCOS_REDUCED
enum { EVALUATES_ALONE = true };
#else
enum { EVALUATES_ALONE = false };
#endif

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

/* Every row, each value evaluated by itself, as a profile does. */
SIMD_INLINE void run_elements(const struct run *run, enum sink sink, enum how how,
                              enum posenc_profile profile, bool scaled)
{
    const struct posenc_freqs *freqs = run->freqs;
    const bool ggml = profile == POSENC_GGML_F32;

    for (int64_t row = 0; row < run->count; row++) {
        uint32_t position = run->first + (uint32_t)row;
        float phi = ggml ? ggml_phi(freqs, (float)position, run->from) : 0.0f;
        for (int64_t i = run->from; i < run->pairs; i += vf_lanes()) {
            vf cosine, sine;
#ifdef POSENC_SINCOS_REDUCED
            if (profile == POSENC_EXACT) {
                vq q;
                vd r = phase_reduced(freqs, position, i, &q);
                vd scale = scaled ? vd_load(scales_at(run, row, i)) : vd_set1(run->scale);
                POSENC_SINCOS_REDUCED(r, q, scale, &cosine, &sine);
                if (freqs->whole)
                    mend_whole(run, row, position, i, &cosine, &sine);
            } else
#endif
                POSENC_SINCOS_F32(ggml ? ggml_angles(freqs, i, &phi)
                                       : angles_f32(freqs, (float)position, i),
                                  run->scale, &cosine, &sine);
            emit(run, sink, how, row, i, least(vf_lanes(), run->pairs - i), cosine,
                 vf_mul(sine, sign_of(run)));
        }
    }
    (void)scaled;
}

/* Whether its output does not stay in a cache. */
static bool is_large(const struct run *run, enum posenc_dtype type)
{
    return 2 * run->count * run->pairs * (int64_t)posenc_dtype_size(type) >= STREAM_FROM;
}

/* Whether vectors fill whole lines as they are made: halves of one would be written out one by one. */
static bool fills_lines(enum sink sink)
{
    return vf_lanes() * (int64_t)sizeof(float) * (sink == TO_INTERLEAVED ? 2 : 1) >= 64;
}

#ifndef POSENC_SINCOS_REDUCED
/* Whether storing past the caches as it is made pays: the run is large, and each of its vectors fills
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
    const enum posenc_profile profile = freqs->view.profile;
    const bool ggml = profile == POSENC_GGML_F32;
    float time = run->time, phi = ggml ? ggml_phi(freqs, time, run->from) : 0.0f;

    for (int64_t i = run->from; i < run->pairs; i += vf_lanes()) {
        _Alignas(64) double r[POSENC_PLAN_PAD];
        _Alignas(64) uint64_t q[POSENC_PLAN_PAD];
        vf cosine, sine;
        if (profile == POSENC_EXACT) {
            posenc_time_angles(freqs, time, i, vf_lanes(), r, q);
            vd scale = run->scales ? vd_load(scales_at(run, 0, i)) : vd_set1(run->scale);
            sincos_of_reduced(vd_load(r), vq_load(q), scale, &cosine, &sine);
        } else {
            POSENC_SINCOS_F32(ggml ? ggml_angles(freqs, i, &phi) : angles_f32(freqs, time, i),
                              run->scale, &cosine, &sine);
        }
        emit(run, sink, how, 0, i, least(vf_lanes(), run->pairs - i), cosine,
             vf_mul(sine, sign_of(run)));
    }
}

SIMD_INLINE void run_all(const struct run *run, enum sink sink, bool add)
{
    enum how how = add ? ADDED : STORED;
    bool scaled = sink == TO_TILE && run->scales;

    if (run->time != 0.0f) {
        run_time(run, sink, how);
    } else if (run->freqs->view.profile == POSENC_GGML_F32) {
        run_elements(run, sink, how, POSENC_GGML_F32, false);
    } else if (run->freqs->view.profile != POSENC_EXACT) {
        run_elements(run, sink, how, POSENC_HF_F32, false);
#ifdef POSENC_SINCOS_REDUCED
    } else if (scaled) {
        run_elements(run, sink, how, POSENC_EXACT, true);
    } else {
        run_elements(run, sink, how, POSENC_EXACT, false);
    }
#else
    } else if (scaled) {
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
