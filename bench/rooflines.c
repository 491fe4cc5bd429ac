/*
 * Rooflines of memory, in variants: plain loops, software prefetch 4 KiB ahead, non-temporal stores; by the
 * compiler, with AVX2, AVX-512, NEON, SVE or RVV; and libc's memset and memcpy.  Footprint and CPU decide
 * which one is best, so all are timed and the best counts.
 */
#include "rooflines.h"
#include <posenc.h>

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__) && (!defined(__clang__) || __clang_major__ >= 17)
#include <arm_sve.h> /* for functions that ask for it, which older clangs do not know */
#define HAVE_SVE 1
#endif
#elif defined(__riscv) && defined(__clang__) && __clang_major__ >= 19
#include <riscv_vector.h>
#define HAVE_RVV 1
#endif

const char *const roofline_kind_name[ROOFLINE_KIND_COUNT] = {
    [ROOFLINE_STORE] = "store",
    [ROOFLINE_IN_PLACE] = "in place",
    [ROOFLINE_COPY] = "copy",
    [ROOFLINE_ADD] = "add",
    [BOUND_from_f64] = "f64 to f32",
    [BOUND_f16] = "f16",
    [BOUND_bf16] = "bf16",
    [BOUND_table] = "table",
    [BOUND_by_turns] = "table by turns",
    [BOUND_angles] = "angles",
    [BOUND_turn] = "turn",
    [BOUND_turn_f16] = "turn in f16",
    [BOUND_turn_bf16] = "turn in bf16",
    [BOUND_pairs] = "turn of pairs",
    [BOUND_pairs_f16] = "turn of pairs in f16",
    [BOUND_pairs_bf16] = "turn of pairs in bf16",
    [BOUND_norm] = "norm and turn",
    [BOUND_slope] = "slope",
    [BOUND_line] = "line",
    [BOUND_runs] = "runs",
    [BOUND_heads] = "heads",
    [BOUND_fetch] = "fetch",
    [BOUND_c2p] = "c2p",
    [BOUND_p2c] = "p2c",
    [BOUND_both] = "c2p and p2c",
    [BOUND_sums] = "sums",
    [BOUND_chain] = "chain",
};
const char *const resource_name[RESOURCE_COUNT] = { "memory", "conversion", "ports", "latency",
                                                    "calls" };

enum resource roofline_resource(enum roofline_kind kind)
{
    if (kind < BOUND_from_f64)
        return RESOURCE_MEMORY;
    if (kind < BOUND_table)
        return RESOURCE_CONVERSION;
    return kind == BOUND_chain ? RESOURCE_LATENCY : RESOURCE_PORTS;
}

/* The store roofline writes this number, whose four bytes are equal, so that memset writes it, too. */
static const float ROOFLINE_CONSTANT = 0x1.7e7e7ep-1f; /* bits 0x3f3f3f3f */
enum { ROOFLINE_BYTE = 0x3f };

static inline float element(enum roofline_kind kind, const float *src, const float *add,
                            size_t i)
{
    switch (kind) {
    case ROOFLINE_STORE:
        return ROOFLINE_CONSTANT;
    case ROOFLINE_IN_PLACE:
        return src[i] * -1.0f;
    case ROOFLINE_ADD:
        return src[i] + add[i];
    default:
        return src[i];
    }
}

/* ---- In plain C, whatever the compiler makes of it ---- */

/* Takes one pointer only: with two the compiler must expect an overlap and keeps to scalars. */
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
PLAIN_C(c_store, ROOFLINE_STORE)
PLAIN_C(c_copy, ROOFLINE_COPY)
PLAIN_C(c_add, ROOFLINE_ADD)
#undef PLAIN_C

static void libc_store(float *dst, const float *src, const float *add, size_t n)
{
    (void)src;
    (void)add;
    memset(dst, ROOFLINE_BYTE, n * sizeof *dst);
}

static void libc_copy(float *dst, const float *src, const float *add, size_t n)
{
    (void)add;
    memcpy(dst, src, n * sizeof *dst);
}

/* ---- With vectors ---- */

#if defined(__x86_64__) || defined(__aarch64__) || defined(HAVE_RVV)

enum access { PLAIN, PREFETCHED, NON_TEMPORAL };
enum { AHEAD_BYTES = 4096 };

/* Prefetches any address, by arithmetic on integers, for no pointer may leave its array. */
static inline __attribute__((always_inline)) void prefetch_ahead(const float *p, bool write)
{
    const void *ahead = (const void *)((uintptr_t)p + AHEAD_BYTES); /* NOLINT */
    if (write)
        __builtin_prefetch(ahead, 1, 3);
    else
        __builtin_prefetch(ahead, 0, 3);
}

static bool has_feature(const char *name)
{
    size_t length = strlen(name);
    for (const char *word = posenc_cpu_features(); *word != '\0';) {
        size_t n = strcspn(word, " ");
        if (n == length && memcmp(word, name, n) == 0)
            return true;
        word += n + strspn(word + n, " ");
    }
    return false;
}

#if defined(__x86_64__)

#define ROOFLINE(name) avx2_##name
#define TARGET         __attribute__((target("avx2")))
#define VECTOR         __m256
#define LANES          8
#define LOAD           _mm256_loadu_ps
#define STORE          _mm256_store_ps
#define STREAM         _mm256_stream_ps
#define SET1           _mm256_set1_ps
#define MUL            _mm256_mul_ps
#define ADD            _mm256_add_ps
#define FENCE          _mm_sfence()
#include "rooflines_simd.h"

#define ROOFLINE(name) avx512_##name
#define TARGET         __attribute__((target("avx512f")))
#define VECTOR         __m512
#define LANES          16
#define LOAD           _mm512_loadu_ps
#define STORE          _mm512_store_ps
#define STREAM         _mm512_stream_ps
#define SET1           _mm512_set1_ps
#define MUL            _mm512_mul_ps
#define ADD            _mm512_add_ps
#define FENCE          _mm_sfence()
#include "rooflines_simd.h"

static bool has_avx2(void) { return has_feature("avx2"); }

static bool has_avx512(void) { return has_feature("avx512f"); }

#elif defined(__aarch64__)

/*
 * NEON in pairs of registers, as its non-temporal store takes them (STNP, a hint that the line
 * is not needed soon).  There is no intrinsic for it; memory sees it as any other store.
 */
static inline float32x4x2_t pair_load(const float *p)
{
    return (float32x4x2_t){ { vld1q_f32(p), vld1q_f32(p + 4) } };
}

static inline void pair_store(float *p, float32x4x2_t v)
{
    vst1q_f32(p, v.val[0]);
    vst1q_f32(p + 4, v.val[1]);
}

static inline void pair_stream(float *p, float32x4x2_t v)
{
    __asm__ volatile("stnp %q0, %q1, [%2]" : : "w"(v.val[0]), "w"(v.val[1]), "r"(p) : "memory");
}

static inline float32x4x2_t pair_set1(float x)
{
    return (float32x4x2_t){ { vdupq_n_f32(x), vdupq_n_f32(x) } };
}

static inline float32x4x2_t pair_mul(float32x4x2_t a, float32x4x2_t b)
{
    return (float32x4x2_t){ { vmulq_f32(a.val[0], b.val[0]), vmulq_f32(a.val[1], b.val[1]) } };
}

static inline float32x4x2_t pair_add(float32x4x2_t a, float32x4x2_t b)
{
    return (float32x4x2_t){ { vaddq_f32(a.val[0], b.val[0]), vaddq_f32(a.val[1], b.val[1]) } };
}

#define ROOFLINE(name) neon_##name
#define TARGET
#define VECTOR float32x4x2_t
#define LANES  8
#define LOAD   pair_load
#define STORE  pair_store
#define STREAM pair_stream
#define SET1   pair_set1
#define MUL    pair_mul
#define ADD    pair_add
#define FENCE  (void)0
#include "rooflines_simd.h"

static bool has_neon(void) { return has_feature("neon"); }

#if defined(HAVE_SVE)

#define ROOFLINE(name) sve_##name
#define TARGET         __attribute__((target("+sve")))
#define VECTOR         svfloat32_t
#define LANES          svcntw()
#define LOAD(p)        svld1_f32(svptrue_b32(), p)
#define STORE(p, v)    svst1_f32(svptrue_b32(), p, v)
#define STREAM(p, v)   svstnt1_f32(svptrue_b32(), p, v)
#define SET1           svdup_n_f32
#define MUL(a, b)      svmul_f32_x(svptrue_b32(), a, b)
#define ADD(a, b)      svadd_f32_x(svptrue_b32(), a, b)
#define FENCE          (void)0
#include "rooflines_simd.h"

static bool has_sve(void) { return has_feature("sve"); }

#endif

#elif defined(HAVE_RVV)

/* Groups of four registers.  Hints are extensions of their own (Zihintntl, Zicbop). */
#define RVV_ALL        __riscv_vsetvlmax_e32m4()
#define ROOFLINE(name) rvv_##name
#define TARGET         __attribute__((target("arch=+v")))
#define VECTOR         vfloat32m4_t
#define LANES          RVV_ALL
#define LOAD(p)        __riscv_vle32_v_f32m4(p, RVV_ALL)
#define STORE(p, v)    __riscv_vse32_v_f32m4(p, v, RVV_ALL)
#define SET1(x)        __riscv_vfmv_v_f_f32m4(x, RVV_ALL)
#define MUL(a, b)      __riscv_vfmul_vv_f32m4(a, b, RVV_ALL)
#define ADD(a, b)      __riscv_vfadd_vv_f32m4(a, b, RVV_ALL)
#include "rooflines_simd.h"

static bool has_rvv(void) { return has_feature("v"); }

#endif
#endif

#define ONE(isa, kind, stem) { kind, #isa " plain", isa##_##stem, has_##isa },
#define ALL(isa, kind, stem)                                                                   \
    { kind, #isa " prefetch", isa##_##stem##_prefetch, has_##isa },                            \
        { kind, #isa " non-temporal", isa##_##stem##_stream, has_##isa }, ONE(isa, kind, stem)
#if defined(__x86_64__)
#define VECTORS(kind, stem) ALL(avx2, kind, stem) ALL(avx512, kind, stem)
#elif defined(HAVE_SVE)
#define VECTORS(kind, stem) ALL(neon, kind, stem) ALL(sve, kind, stem)
#elif defined(__aarch64__)
#define VECTORS(kind, stem) ALL(neon, kind, stem)
#elif defined(HAVE_RVV)
#define VECTORS(kind, stem) ONE(rvv, kind, stem)
#else
#define VECTORS(kind, stem)
#endif

static bool backend_runs(const char *name)
{
    const struct posenc_backend *backend = posenc_backend_find(name);
    return backend && !posenc_backend_obstacle(backend);
}
#define ISA(name)                                                                              \
    static bool runs_##name(void) { return backend_runs(#name); }
BOUND_ISAS
#undef ISA

#define BOUND_VARIANT(kind, isa) { BOUND_##kind, #isa, BOUND_NAME(kind, isa), runs_##isa },

static const struct roofline_variant variants[] = {
    /* clang-format off */
    { ROOFLINE_STORE, "plain", c_store, NULL },
    { ROOFLINE_STORE, "memset", libc_store, NULL },
    VECTORS(ROOFLINE_STORE, store)
    { ROOFLINE_IN_PLACE, "plain", c_in_place, NULL },
    VECTORS(ROOFLINE_IN_PLACE, in_place)
    { ROOFLINE_COPY, "memcpy", libc_copy, NULL },
    { ROOFLINE_COPY, "plain", c_copy, NULL },
    VECTORS(ROOFLINE_COPY, copy)
    { ROOFLINE_ADD, "plain", c_add, NULL },
    VECTORS(ROOFLINE_ADD, add)
#define ISA(name) BOUND_KINDS(BOUND_VARIANT, name)
    BOUND_ISAS
#undef ISA
    /* clang-format on */
};
#undef BOUND_VARIANT
#undef VECTORS
#undef ALL
#undef ONE

const struct roofline_variant *roofline_variant_at(size_t index)
{
    return index < sizeof variants / sizeof *variants ? &variants[index] : NULL;
}
