/*
 * How values go to the output: stored, or stored past the caches; and whether they are added to x
 * first.
 *
 * Memory that is written without being read first is fetched into the caches all the same, unless
 * its lines are written past them: half of what a table or a bias moves.
 */
#ifndef POSENC_KERNELS_STORES_H
#define POSENC_KERNELS_STORES_H

#include "kernel.h"

/* ADDED: x x_scale + value in one fused operation. SUMMED: x + value, the same where x_scale is 1: an
 * addition takes two thirds of the time in a cache (Zen 5; a fused operation whose addend lies ready
 * in a register is in the way of stores), and no less in DRAM (Zen 3). FAR: what is changed in
 * place comes from DRAM. ASKED: stored nearby, and what it will be added to asked for. SENT: streamed, of rows
 * that were made nearby while memory was idle. */
enum how { STORED, STREAMED, ASKED, ADDED, ADDED_FAR, ADDED_STREAMED, ADDED_SENT, SUMMED };

/* An output of more bytes than this does not stay in a cache. */
enum { STREAM_FROM = 32 << 20 };

SIMD_INLINE bool adds(enum how how) { return how >= ADDED; }
SIMD_INLINE bool streams(enum how how)
{
    return vf_streams() && (how == STREAMED || how == ADDED_STREAMED || how == ADDED_SENT);
}

/* A value onto a vector of x, which is at `from`. If it comes from DRAM each asks for what is 4 KiB further
 * on, 0.75 to 0.9 of the time there, and 8 KiB where the output is another array: 0.93 (Zen 5). A CPU that is
 * better left alone has seen nothing to go by where memory was idle: there it is asked, too, 0.85 of the time
 * (Zen 4). */
SIMD_INLINE vf onto(enum how how, const char *from, vf x, vf x_scale, vf value)
{
    const int64_t ahead = streams(how) ? 8192 : 4096;

    if (how == ADDED_SENT)
        ask_for(from, ahead);
    else if (how != ADDED && how != SUMMED)
        ask_ahead(from, ahead);
    return how == SUMMED ? vf_add(x, value) : vf_fma(x, x_scale, value);
}

static inline int64_t bytes_of(const struct posenc_tensor *tensor)
{
    int64_t bytes = (int64_t)posenc_dtype_size(tensor->dtype);

    for (int i = 0; i < tensor->rank; i++)
        bytes *= tensor->shape[i];
    return bytes;
}

/* Returns the way to write the output of a call. Outputs in place are not streamed. A backend of one lane may lack
 * a fused instruction, and a call of fmaf() for each sum is slow. */
static inline enum how how_of(bool add, const struct posenc_const_tensor *x, float x_scale,
                              const struct posenc_tensor *out)
{
    const enum how near = !add ? STORED : x_scale == 1.0f ? SUMMED : ADDED;

    if (bytes_of(out) < STREAM_FROM || (!add && !vf_streams()) ||
        (near == SUMMED && vf_lanes() == 1))
        return near;
    if (!add)
        return STREAMED;
    return x->data == out->data || !vf_streams() ? ADDED_FAR : ADDED_STREAMED;
}

/* The forms of function(type, how, args), each compiled by itself: all in one body took the compiler twice
 * as long, and what their rows need was not in registers (alibi_add of short rows 1.15 times the time,
 * Zen 5). args_of: the struct behind args. */
#define FORM(type, how, function, args_of)                                                     \
    static                                                                                     \
        __attribute__((noinline)) void function##_##type##_##how(const struct args_of *args)   \
    {                                                                                          \
        function(POSENC_##type, how, args);                                                    \
    }
#define FORMS(function, args_of, how)                                                          \
    IF_F32(FORM(F32, how, function, args_of))                                                  \
    IF_F32(FORM(F16, how, function, args_of))                                                  \
    FORM(BF16, how, function, args_of)
#define FORMS_WRITTEN(function, args_of)                                                       \
    FORMS(function, args_of, STORED)                                                           \
    FORMS(function, args_of, STREAMED)
#define FORMS_ADDED(function, args_of)                                                         \
    FORMS(function, args_of, ADDED)                                                            \
    FORMS(function, args_of, ADDED_FAR)                                                        \
    FORMS(function, args_of, ADDED_STREAMED)                                                   \
    FORMS(function, args_of, SUMMED)

/* Runs the form for a type, or for a call, of those that write or of those that add. No switch: a table of
 * jumps is not followed where the code of two builds is compared (reports/posenc/compare/same_code.py). */
#define RUN_FORM(function, type, how, args)                                                    \
    do {                                                                                       \
        (void)(type);                                                                          \
        IF_F32(if ((type) == POSENC_F32) function##_F32_##how(args); else)                     \
        IF_F32(if ((type) == POSENC_F16) function##_F16_##how(args); else)                     \
        function##_BF16_##how(args);                                                           \
    } while (0)
#define RUN_WRITTEN(function, args)                                                            \
    do {                                                                                       \
        if (how_of(false, &(args)->x, 1.0f, &(args)->out) == STORED) {                         \
            RUN_FORM(function, (args)->out.dtype, STORED, args);                               \
        } else {                                                                               \
            RUN_FORM(function, (args)->out.dtype, STREAMED, args);                             \
            stream_end();                                                                      \
        }                                                                                      \
    } while (0)
#define RUN_ADDED(function, args)                                                              \
    do {                                                                                       \
        const enum how adds_as = how_of(true, &(args)->x, (args)->x_scale, &(args)->out);      \
        if (adds_as == ADDED)                                                                  \
            RUN_FORM(function, (args)->out.dtype, ADDED, args);                                \
        else if (adds_as == ADDED_FAR)                                                         \
            RUN_FORM(function, (args)->out.dtype, ADDED_FAR, args);                            \
        else if (adds_as == ADDED_STREAMED)                                                    \
            RUN_FORM(function, (args)->out.dtype, ADDED_STREAMED, args);                       \
        else                                                                                   \
            RUN_FORM(function, (args)->out.dtype, SUMMED, args);                               \
        if (streams(adds_as))                                                                  \
            stream_end();                                                                      \
    } while (0)

/* A whole vector past the caches, from element i on. */
SIMD_INLINE void stream_as(enum posenc_dtype type, void *row, int64_t i, vf v)
{
    switch (type) {
    case POSENC_F32:
        vf_stream((float *)row + i, v);
        break;
    case POSENC_F16:
        vf_stream_f16((uint16_t *)row + i, v);
        break;
    case POSENC_BF16:
        vf_stream_bf16((uint16_t *)row + i, v);
        break;
    }
}

/* Four vectors to out from element i on. Streamed, they begin on a line and fill lines. */
SIMD_INLINE void put_vectors(enum posenc_dtype type, enum how how, void *out, int64_t i, vf a,
                             vf b, vf c, vf d)
{
    const int64_t w = vf_lanes();

    if (streams(how)) {
        stream_as(type, out, i, a);
        stream_as(type, out, i + w, b);
        stream_as(type, out, i + 2 * w, c);
        stream_as(type, out, i + 3 * w, d);
        return;
    }
    store_as(type, out, i, a, w);
    store_as(type, out, i + w, b, w);
    store_as(type, out, i + 2 * w, c, w);
    store_as(type, out, i + 3 * w, d, w);
}

/* Elements from out[i] to the next multiple of a vector's size. */
SIMD_INLINE int64_t to_vector(enum posenc_dtype type, const void *out, int64_t i)
{
    const int64_t size = (int64_t)posenc_dtype_size(type), vector = vf_lanes() * size;
    const int64_t past = ((int64_t)(uintptr_t)out + i * size) % vector;

    return past == 0 ? 0 : (vector - past) / size;
}

/* Elements from out[i] to where the next line begins, at most n. */
SIMD_INLINE int64_t to_line(enum posenc_dtype type, const void *out, int64_t i, int64_t n)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);
    const int64_t past = ((int64_t)(uintptr_t)out + i * size) % 64;

    return past == 0 ? 0 : least((64 - past) / size, n);
}

#endif
