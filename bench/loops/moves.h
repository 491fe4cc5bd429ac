/*
 * Rooflines of memory, a part of bounds.c: plain stores, software prefetch 4 KiB ahead, or streaming stores.
 *
 * An iteration is four vectors. Elements before the first aligned vector are moved one by one, since streaming stores
 * need alignment.
 */
#include <stdint.h>

enum move_kind { MOVE_STORE, MOVE_IN_PLACE, MOVE_COPY, MOVE_ADD };
enum access_kind { ACCESS_PLAIN, ACCESS_PREFETCH, ACCESS_STREAM };

/* Prefetches 4 KiB ahead. Integer arithmetic avoids a pointer beyond its array. */
SIMD_INLINE void prefetch_ahead(const float *p, bool write)
{
    enum { AHEAD_BYTES = 4096 };
    const void *ahead = (const void *)((uintptr_t)p + AHEAD_BYTES); /* NOLINT */
    if (write)
        __builtin_prefetch(ahead, 1, 3);
    else
        __builtin_prefetch(ahead, 0, 3);
}

SIMD_INLINE void prefetch_lines(enum move_kind move, const float *dst, const float *src,
                                const float *add, size_t n)
{
    enum { LINE = 16 };
    for (size_t i = 0; i < n; i += LINE) {
        if (move == MOVE_STORE)
            prefetch_ahead(dst + i, true);
        else
            prefetch_ahead(src + i, false);
        if (move == MOVE_ADD)
            prefetch_ahead(add + i, false);
    }
}

SIMD_INLINE float moved_element(enum move_kind move, const float *src, const float *add,
                                size_t i)
{
    if (move == MOVE_STORE)
        return ROOFLINE_CONSTANT;
    if (move == MOVE_IN_PLACE)
        return src[i] * -1.0f;
    return move == MOVE_ADD ? src[i] + add[i] : src[i];
}

SIMD_INLINE vf moved_vector(enum move_kind move, const float *src, const float *add, size_t i)
{
    if (move == MOVE_STORE)
        return vf_set1(ROOFLINE_CONSTANT);
    if (move == MOVE_IN_PLACE)
        return vf_mul(vf_load(src + i), vf_set1(-1.0f));
    return move == MOVE_ADD ? vf_add(vf_load(src + i), vf_load(add + i)) : vf_load(src + i);
}

/* The streaming store of NEON takes a pair of registers and has no intrinsic. */
#if defined(__aarch64__) && !defined(__ARM_FEATURE_SVE)
#define STREAMS_PAIRS 1
#else
#define STREAMS_PAIRS 0
#endif

/* Stores two vectors. The barriers keep clang 14 from merging streaming stores into plain ones. */
SIMD_INLINE void store_two(enum access_kind access, float *dst, vf a, vf b)
{
    const int64_t w = vf_lanes();
    if (access != ACCESS_STREAM) {
        vf_store(dst, a);
        vf_store(dst + w, b);
        return;
    }
#if STREAMS_PAIRS
    __asm__ volatile("stnp %q0, %q1, [%2]" : : "w"(a), "w"(b), "r"(dst) : "memory");
#else
    __asm__ volatile("" ::: "memory");
    vf_stream(dst, a);
    __asm__ volatile("" ::: "memory");
    vf_stream(dst + w, b);
    __asm__ volatile("" ::: "memory");
#endif
}

SIMD_INLINE void move_floats(enum move_kind move, enum access_kind access, float *dst,
                             const float *src, const float *add, size_t n)
{
    const size_t w = (size_t)vf_lanes();
    size_t i = 0;
    for (; i < n && (uintptr_t)(dst + i) % 64 != 0; i++)
        dst[i] = moved_element(move, src, add, i);
    for (; i + 4 * w <= n; i += 4 * w) {
        if (access == ACCESS_PREFETCH)
            prefetch_lines(move, dst + i, src + i, add + i, 4 * w);
        vf a = moved_vector(move, src, add, i), b = moved_vector(move, src, add, i + w);
        vf c = moved_vector(move, src, add, i + 2 * w);
        vf d = moved_vector(move, src, add, i + 3 * w);
        store_two(access, dst + i, a, b);
        store_two(access, dst + i + 2 * w, c, d);
    }
    for (; i < n; i++)
        dst[i] = moved_element(move, src, add, i);
    if (access == ACCESS_STREAM)
        vf_stream_end();
}

/* Each loop is aligned to a cache line, so that its time does not depend on the code before it. */
#define MOVE_LOOP(kind, move, access)                                                          \
    __attribute__((aligned(64))) LOOP(kind) { move_floats(move, access, dst, src, third, n); }
#define MOVES(kind, move)                                                                      \
    MOVE_LOOP(kind, move, ACCESS_PLAIN)                                                        \
    MOVE_LOOP(kind##_prefetch, move, ACCESS_PREFETCH)                                          \
    MOVE_LOOP(kind##_stream, move, ACCESS_STREAM)
MOVES(store, MOVE_STORE)
MOVES(in_place, MOVE_IN_PLACE)
MOVES(copy, MOVE_COPY)
MOVES(add, MOVE_ADD)
#undef MOVES
#undef MOVE_LOOP

/* Backends that use the f32 functions of another, and scalar, have no rooflines of their own. */
enum bound_moves BOUND_NAME_OF(moves, POSENC_ISA)(void)
{
#ifdef POSENC_F32_ISA
    return MOVES_NONE;
#else
    if (vf_lanes() == 1)
        return MOVES_NONE;
    return vf_has_streams() || STREAMS_PAIRS ? MOVES_WITH_HINTS : MOVES_PLAIN;
#endif
}
