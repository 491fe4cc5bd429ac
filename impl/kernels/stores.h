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

enum how { STORED, STREAMED, ADDED, ADDED_STREAMED };

/* An output of more bytes than this does not stay in a cache. */
enum { STREAM_FROM = 32 << 20 };

SIMD_INLINE bool adds(enum how how) { return how == ADDED || how == ADDED_STREAMED; }
SIMD_INLINE bool streams(enum how how)
{
    return vf_streams() && (how == STREAMED || how == ADDED_STREAMED);
}

static inline int64_t bytes_of(const struct posenc_tensor *tensor)
{
    int64_t bytes = (int64_t)posenc_dtype_size(tensor->dtype);

    for (int i = 0; i < tensor->rank; i++)
        bytes *= tensor->shape[i];
    return bytes;
}

/* That of a call: what is changed in place is in the caches already. */
static inline enum how how_of(bool add, const struct posenc_const_tensor *x,
                              const struct posenc_tensor *out)
{
    if (!vf_streams() || (add && x->data == out->data) || bytes_of(out) < STREAM_FROM)
        return add ? ADDED : STORED;
    return add ? ADDED_STREAMED : STREAMED;
}

/* Calls function(type, how, ...) with both constant.  `add` is one, too. */
#define FOR_HOW(add, args, function, ...)                                                      \
    do {                                                                                       \
        const enum how given_how = how_of(add, &(args)->x, &(args)->out);                      \
        if (streams(given_how)) {                                                              \
            FOR_TYPE((args)->out.dtype, function, add ? ADDED_STREAMED : STREAMED,             \
                     __VA_ARGS__);                                                             \
            stream_end();                                                                      \
        } else {                                                                               \
            FOR_TYPE((args)->out.dtype, function, add ? ADDED : STORED, __VA_ARGS__);          \
        }                                                                                      \
    } while (0)

/* Lines past the caches, from memory in the nearest one.  Out of line: inlined, gcc 12 fails on it
 * for SVE. */
static __attribute__((noinline)) void stream_lines(void *out, const void *line, int64_t bytes)
{
    for (int64_t i = 0; i < bytes / 4; i += vf_lanes())
        vf_stream((float *)out + i, vf_load((const float *)line + i));
}

/* Four vectors to out from element i on.  Streamed, they begin on a line and fill lines, which
 * elements of 16 bits do together. */
SIMD_INLINE void put_vectors(enum posenc_dtype type, enum how how, void *out, int64_t i, vf a,
                             vf b, vf c, vf d)
{
    _Alignas(64) uint16_t line[4 * POSENC_PLAN_PAD];
    const int64_t w = vf_lanes();

    if (streams(how) && type == POSENC_F32) {
        vf_stream((float *)out + i, a);
        vf_stream((float *)out + i + w, b);
        vf_stream((float *)out + i + 2 * w, c);
        vf_stream((float *)out + i + 3 * w, d);
        return;
    }
    void *to = streams(how) ? line : out;
    const int64_t at = streams(how) ? 0 : i;
    store_as(type, to, at, a, w);
    store_as(type, to, at + w, b, w);
    store_as(type, to, at + 2 * w, c, w);
    store_as(type, to, at + 3 * w, d, w);
    if (streams(how))
        stream_lines((char *)out + i * (int64_t)posenc_dtype_size(type), line,
                     4 * w * (int64_t)posenc_dtype_size(type));
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
