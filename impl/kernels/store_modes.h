/*
 * Store modes: how a kernel writes values to its output. A mode says if values replace `out` or are added to x (out =
 * fma(x, x_scale, value)), if stores are streaming (non-temporal), and if x is prefetched.
 *
 * A normal store to a line that is not in a cache first reads that line from memory. Streaming stores skip this read,
 * which is half of the traffic of a table or a bias that exceeds the caches.
 *
 * Functions here and in the headers that include this one take `enum posenc_dtype type` and `enum store_mode mode`
 * first. Both are compile-time constants after inlining, so that their branches cost nothing. The macros INSTANCE and
 * RUN below make an instance of a kernel's outermost loop for each dtype and mode, and choose among these at run time.
 */
#ifndef POSENC_KERNELS_STORE_MODES_H
#define POSENC_KERNELS_STORE_MODES_H

#include "kernel.h"

/* How values are written. The ADD modes add them to x. */
enum store_mode {
    STORE,               /* out = value */
    STREAM,              /* the same by streaming stores */
    STORE_PREFETCH,      /* STORE to a buffer, and prefetch the x to be added to it */
    ADD,                 /* out = fma(x, x_scale, value) */
    ADD_PREFETCH,        /* the same in place, x prefetched from DRAM */
    ADD_STREAM,          /* the same to another array, by streaming stores */
    ADD_STREAM_BUFFERED, /* the same for rows computed in a buffer before */
    ADD_UNSCALED         /* out = x + value, if x_scale is 1: cheaper than an fma */
};

/* Outputs of at least this many bytes do not stay in a cache. */
enum { STREAM_MIN_BYTES = 32 << 20 };

/* Return true if a mode adds to x, and if its stores are streaming. */
SIMD_INLINE bool mode_adds(enum store_mode mode) { return mode >= ADD; }
SIMD_INLINE bool mode_streams(enum store_mode mode)
{
    return vf_has_streams() &&
           (mode == STREAM || mode == ADD_STREAM || mode == ADD_STREAM_BUFFERED);
}

/* Returns x x_scale + value for a vector that was loaded from `from`. The modes for data in DRAM prefetch x: 4 KiB
 * ahead in place, 8 KiB ahead from one array to another. ADD_STREAM_BUFFERED prefetches on every CPU, as the
 * hardware prefetcher stops while the rows are computed. */
SIMD_INLINE vf add_to_x(enum store_mode mode, const char *from, vf x, vf x_scale, vf value)
{
    const int64_t ahead = mode_streams(mode) ? 8192 : 4096;

    if (mode == ADD_STREAM_BUFFERED)
        prefetch_at(from, ahead);
    else if (mode != ADD && mode != ADD_UNSCALED)
        prefetch_in_order(from, ahead);
    return mode == ADD_UNSCALED ? vf_add(x, value) : vf_fma(x, x_scale, value);
}

/* Returns the bytes of a tensor's elements, without gaps between rows. */
static inline int64_t tensor_bytes(const struct posenc_tensor *tensor)
{
    int64_t bytes = (int64_t)posenc_dtype_size(tensor->dtype);

    for (int i = 0; i < tensor->rank; i++)
        bytes *= tensor->shape[i];
    return bytes;
}

/* Returns the mode of a call by the size of its output. Outputs in place are not streamed. With one lane,
 * ADD_UNSCALED gains nothing. */
static inline enum store_mode choose_store_mode(bool add, const struct posenc_const_tensor *x,
                                                float x_scale, const struct posenc_tensor *out)
{
    const enum store_mode cached = !add ? STORE : x_scale == 1.0f ? ADD_UNSCALED : ADD;

    if (tensor_bytes(out) < STREAM_MIN_BYTES || (!add && !vf_has_streams()) ||
        (cached == ADD_UNSCALED && vf_lanes() == 1))
        return cached;
    if (!add)
        return STREAM;
    return x->data == out->data || !vf_has_streams() ? ADD_PREFETCH : ADD_STREAM;
}

/* INSTANCE defines function_TYPE_MODE(args): a copy of the inline function(type, mode, args) with constant dtype
 * and mode. INSTANCES defines those of all dtypes for one mode, INSTANCES_WRITING those of the modes without x,
 * INSTANCES_ADDING those with x. `args_struct` names the struct that args points to. Separate functions compile
 * faster than one large body, and keep more of their values in registers. */
#define INSTANCE(function, args_struct, type, mode)                                            \
    static __attribute__((noinline)) void function##_##type##_##mode(                          \
        const struct args_struct *args)                                                        \
    {                                                                                          \
        function(POSENC_DTYPE_##type, mode, args);                                             \
    }
#define INSTANCES(function, args_struct, mode)                                                 \
    IF_F32_F16(INSTANCE(function, args_struct, F32, mode))                                     \
    IF_F32_F16(INSTANCE(function, args_struct, F16, mode))                                     \
    INSTANCE(function, args_struct, BF16, mode)
#define INSTANCES_WRITING(function, args_struct)                                               \
    INSTANCES(function, args_struct, STORE)                                                    \
    INSTANCES(function, args_struct, STREAM)
#define INSTANCES_ADDING(function, args_struct)                                                \
    INSTANCES(function, args_struct, ADD)                                                      \
    INSTANCES(function, args_struct, ADD_PREFETCH)                                             \
    INSTANCES(function, args_struct, ADD_STREAM)                                               \
    INSTANCES(function, args_struct, ADD_UNSCALED)

/* RUN_INSTANCE calls function_TYPE_MODE(args) for a dtype that is known at run time. RUN_WRITING and RUN_ADDING
 * also choose the mode, by args->x and args->out, and fence streaming stores. They use `if` chains, because
 * reports/posenc/compare/same_code.py does not follow the jump table of a switch. */
#define RUN_INSTANCE(function, type, mode, args)                                               \
    do {                                                                                       \
        (void)(type);                                                                          \
        IF_F32_F16(if ((type) == POSENC_DTYPE_F32) function##_F32_##mode(args); else)          \
        IF_F32_F16(if ((type) == POSENC_DTYPE_F16) function##_F16_##mode(args); else)          \
        function##_BF16_##mode(args);                                                          \
    } while (0)
#define RUN_WRITING(function, args)                                                            \
    do {                                                                                       \
        if (choose_store_mode(false, &(args)->x, 1.0f, &(args)->out) == STORE) {               \
            RUN_INSTANCE(function, (args)->out.dtype, STORE, args);                            \
        } else {                                                                               \
            RUN_INSTANCE(function, (args)->out.dtype, STREAM, args);                           \
            vf_stream_end();                                                                   \
        }                                                                                      \
    } while (0)
#define RUN_ADDING(function, args)                                                             \
    do {                                                                                       \
        const enum store_mode mode =                                                           \
            choose_store_mode(true, &(args)->x, (args)->x_scale, &(args)->out);                \
        if (mode == ADD)                                                                       \
            RUN_INSTANCE(function, (args)->out.dtype, ADD, args);                              \
        else if (mode == ADD_PREFETCH)                                                         \
            RUN_INSTANCE(function, (args)->out.dtype, ADD_PREFETCH, args);                     \
        else if (mode == ADD_STREAM)                                                           \
            RUN_INSTANCE(function, (args)->out.dtype, ADD_STREAM, args);                       \
        else                                                                                   \
            RUN_INSTANCE(function, (args)->out.dtype, ADD_UNSCALED, args);                     \
        if (mode_streams(mode))                                                                \
            vf_stream_end();                                                                   \
    } while (0)

/* Writes a whole vector to row[i] ... by streaming stores. */
SIMD_INLINE void stream_as(enum posenc_dtype type, void *row, int64_t i, vf v)
{
    switch (type) {
    case POSENC_DTYPE_F32:
        vf_stream((float *)row + i, v);
        break;
    case POSENC_DTYPE_F16:
        vf_stream_f16((uint16_t *)row + i, v);
        break;
    case POSENC_DTYPE_BF16:
        vf_stream_bf16((uint16_t *)row + i, v);
        break;
    }
}

/* Writes four consecutive vectors to out[i] .... With a streaming mode, out + i is the start of a cache line. */
SIMD_INLINE void store_four(enum posenc_dtype type, enum store_mode mode, void *out, int64_t i,
                            vf a, vf b, vf c, vf d)
{
    const int64_t w = vf_lanes();

    if (mode_streams(mode)) {
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

/* Returns the number of elements from out[i] to the next address that is a multiple of a vector's size. */
SIMD_INLINE int64_t to_vector_boundary(enum posenc_dtype type, const void *out, int64_t i)
{
    const int64_t size = (int64_t)posenc_dtype_size(type), vector = vf_lanes() * size;
    const int64_t past = ((int64_t)(uintptr_t)out + i * size) % vector;

    return past == 0 ? 0 : (vector - past) / size;
}

/* Returns the number of elements from out[i] to the next cache line, at most n. */
SIMD_INLINE int64_t to_line_boundary(enum posenc_dtype type, const void *out, int64_t i,
                                     int64_t n)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);
    const int64_t past = ((int64_t)(uintptr_t)out + i * size) % 64;

    return past == 0 ? 0 : min_i64((64 - past) / size, n);
}

#endif
