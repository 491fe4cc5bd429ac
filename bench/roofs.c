/*
 * The roofs' variants: plain loops, software prefetch 4 KiB ahead, non-temporal stores; by the
 * compiler, with AVX2, with AVX-512; and libc's memset and memcpy.  Which one is best differs
 * by footprint and by CPU, so all are timed and the best counts.
 */
#include "roofs.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

const char *const roof_kind_name[ROOF_KIND_COUNT] = { "store", "in place", "copy", "add" };

/* What the store roof writes.  Its four bytes are equal, so memset writes the same number. */
static const float ROOF_CONSTANT = 0x1.7e7e7ep-1f; /* bits 0x3f3f3f3f */
enum { ROOF_BYTE = 0x3f };

static inline float element(enum roof_kind kind, const float *src, const float *add, size_t i)
{
    switch (kind) {
    case ROOF_STORE:
        return ROOF_CONSTANT;
    case ROOF_IN_PLACE:
        return src[i] * -1.0f;
    case ROOF_ADD:
        return src[i] + add[i];
    default:
        return src[i];
    }
}

/* ---- In plain C, whatever the compiler makes of it ---- */

/* Of one pointer only: with two the compiler must expect an overlap and keeps to scalars. */
static void c_in_place(float *dst, const float *src, const float *add, size_t n)
{
    (void)src;
    (void)add;
    for (size_t i = 0; i < n; i++)
        dst[i] *= -1.0f;
}

#define PLAIN_C(name, kind)                                                                    \
    static void name(float *dst, const float *src, const float *add, size_t n)                 \
    {                                                                                          \
        for (size_t i = 0; i < n; i++)                                                         \
            dst[i] = element(kind, src, add, i);                                               \
    }
PLAIN_C(c_store, ROOF_STORE)
PLAIN_C(c_copy, ROOF_COPY)
PLAIN_C(c_add, ROOF_ADD)
#undef PLAIN_C

static void libc_store(float *dst, const float *src, const float *add, size_t n)
{
    (void)src;
    (void)add;
    memset(dst, ROOF_BYTE, n * sizeof(*dst));
}

static void libc_copy(float *dst, const float *src, const float *add, size_t n)
{
    (void)add;
    memcpy(dst, src, n * sizeof(*dst));
}

/* ---- With vectors ---- */

#if defined(__x86_64__)

enum access { PLAIN, PREFETCHED, NON_TEMPORAL };
enum { AHEAD_BYTES = 4096 };

/* A prefetch may name any address; arithmetic on integers, as no pointer may leave
 * its array. */
static inline __attribute__((always_inline)) void prefetch_ahead(const float *p, bool write)
{
    const void *ahead = (const void *)((uintptr_t)p + AHEAD_BYTES); /* NOLINT */
    if (write)
        __builtin_prefetch(ahead, 1, 3);
    else
        __builtin_prefetch(ahead, 0, 3);
}

#define ROOF(name) avx2_##name
#define TARGET     "avx2"
#define VECTOR     __m256
#define LANES      8
#define LOAD       _mm256_loadu_ps
#define STORE      _mm256_store_ps
#define STREAM     _mm256_stream_ps
#define SET1       _mm256_set1_ps
#define MUL        _mm256_mul_ps
#define ADD        _mm256_add_ps
#include "roofs_simd.h"

#define ROOF(name) avx512_##name
#define TARGET     "avx512f"
#define VECTOR     __m512
#define LANES      16
#define LOAD       _mm512_loadu_ps
#define STORE      _mm512_store_ps
#define STREAM     _mm512_stream_ps
#define SET1       _mm512_set1_ps
#define MUL        _mm512_mul_ps
#define ADD        _mm512_add_ps
#include "roofs_simd.h"

static bool has_avx2(void) { return __builtin_cpu_supports("avx2") != 0; }

static bool has_avx512(void) { return __builtin_cpu_supports("avx512f") != 0; }

#define WITH_VECTORS(isa, kind, stem)                                                          \
    { kind, #isa " plain", isa##_##stem, has_##isa },                                          \
        { kind, #isa " prefetch", isa##_##stem##_prefetch, has_##isa },                        \
        { kind, #isa " non-temporal", isa##_##stem##_stream, has_##isa },
#else
#define WITH_VECTORS(isa, kind, stem)
#endif

static const struct roof_variant variants[] = {
    /* clang-format off */
    { ROOF_STORE, "plain", c_store, NULL },
    { ROOF_STORE, "memset", libc_store, NULL },
    WITH_VECTORS(avx2, ROOF_STORE, store)
    WITH_VECTORS(avx512, ROOF_STORE, store)
    { ROOF_IN_PLACE, "plain", c_in_place, NULL },
    WITH_VECTORS(avx2, ROOF_IN_PLACE, in_place)
    WITH_VECTORS(avx512, ROOF_IN_PLACE, in_place)
    { ROOF_COPY, "memcpy", libc_copy, NULL },
    { ROOF_COPY, "plain", c_copy, NULL },
    WITH_VECTORS(avx2, ROOF_COPY, copy)
    WITH_VECTORS(avx512, ROOF_COPY, copy)
    { ROOF_ADD, "plain", c_add, NULL },
    WITH_VECTORS(avx2, ROOF_ADD, add)
    WITH_VECTORS(avx512, ROOF_ADD, add)
    /* clang-format on */
};
#undef WITH_VECTORS

const struct roof_variant *roof_variant_at(size_t index)
{
    return index < sizeof(variants) / sizeof(variants[0]) ? &variants[index] : NULL;
}
