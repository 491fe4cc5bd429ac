/*
 * The roofs with vectors, a template: roofs.c includes it once for each width after defining
 *
 *   ROOF(name)              name of a function of this width
 *   TARGET                  what the compiler must be allowed to use
 *   VECTOR LANES            type and f32 lanes
 *   LOAD STORE STREAM SET1 MUL ADD
 *
 * Four vectors an iteration.  STREAM needs an aligned destination, and aligned stores are
 * fastest anyway, so the first few elements are done one by one.
 */
static inline __attribute__((always_inline, target(TARGET))) void
ROOF(body)(enum roof_kind kind, enum access access, float *dst, const float *src,
           const float *add, size_t n)
{
    const VECTOR factor = SET1(-1.0f), constant = SET1(ROOF_CONSTANT);
    size_t i = 0;
    for (; i < n && (uintptr_t)(dst + i) % 64 != 0; i++)
        dst[i] = element(kind, src, add, i);
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        if (access == PREFETCHED)
            for (size_t line = 0; line < 4 * LANES; line += 16) {
                prefetch_ahead(kind == ROOF_STORE ? dst + i + line : src + i + line,
                               kind == ROOF_STORE);
                if (kind == ROOF_ADD)
                    prefetch_ahead(add + i + line, false);
            }
        VECTOR v[4];
        for (size_t k = 0; k < 4; k++) {
            v[k] = kind == ROOF_STORE ? constant : LOAD(src + i + k * LANES);
            if (kind == ROOF_IN_PLACE)
                v[k] = MUL(v[k], factor);
            if (kind == ROOF_ADD)
                v[k] = ADD(v[k], LOAD(add + i + k * LANES));
        }
        for (size_t k = 0; k < 4; k++) {
            /* Between barriers, or clang 14 makes both stores one, without the hint. */
            if (access == NON_TEMPORAL) {
                __asm__ volatile("" ::: "memory");
                STREAM(dst + i + k * LANES, v[k]);
                __asm__ volatile("" ::: "memory");
            } else {
                STORE(dst + i + k * LANES, v[k]);
            }
        }
    }
    for (; i < n; i++)
        dst[i] = element(kind, src, add, i);
    if (access == NON_TEMPORAL)
        _mm_sfence();
}

#define ROOF_FUNCTION(name, kind, access)                                                      \
    static __attribute__((noinline, aligned(64), target(TARGET))) void ROOF(name)(             \
        float *dst, const float *src, const float *add, size_t n)                              \
    {                                                                                          \
        ROOF(body)(kind, access, dst, src, add, n);                                            \
    }

ROOF_FUNCTION(store, ROOF_STORE, PLAIN)
ROOF_FUNCTION(store_prefetch, ROOF_STORE, PREFETCHED)
ROOF_FUNCTION(store_stream, ROOF_STORE, NON_TEMPORAL)
ROOF_FUNCTION(in_place, ROOF_IN_PLACE, PLAIN)
ROOF_FUNCTION(in_place_prefetch, ROOF_IN_PLACE, PREFETCHED)
ROOF_FUNCTION(in_place_stream, ROOF_IN_PLACE, NON_TEMPORAL)
ROOF_FUNCTION(copy, ROOF_COPY, PLAIN)
ROOF_FUNCTION(copy_prefetch, ROOF_COPY, PREFETCHED)
ROOF_FUNCTION(copy_stream, ROOF_COPY, NON_TEMPORAL)
ROOF_FUNCTION(add, ROOF_ADD, PLAIN)
ROOF_FUNCTION(add_prefetch, ROOF_ADD, PREFETCHED)
ROOF_FUNCTION(add_stream, ROOF_ADD, NON_TEMPORAL)

#undef ROOF_FUNCTION
#undef ROOF
#undef TARGET
#undef VECTOR
#undef LANES
#undef LOAD
#undef STORE
#undef STREAM
#undef SET1
#undef MUL
#undef ADD
