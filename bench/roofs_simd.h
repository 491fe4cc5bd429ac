/*
 * The roofs with vectors, a template: roofs.c includes it once for each kind of vector after
 * defining
 *
 *   ROOF(name)              name of a function with these vectors
 *   TARGET                  attribute: what the compiler must be allowed to use
 *   VECTOR LANES            type, which may have no size, and f32 lanes, which may be a call
 *   LOAD STORE SET1 MUL ADD
 *   STREAM                  the store with the hint that the line is not needed soon; undefined
 *                           where there is none: then there are no prefetches either
 *   FENCE                   a statement that orders STREAM's stores before later ones
 *
 * Four vectors an iteration.  STREAM needs an aligned destination, and aligned stores are
 * fastest anyway, so the first few elements are done one by one.
 */
TARGET static inline __attribute__((always_inline)) VECTOR
ROOF(value)(enum roof_kind kind, const float *src, const float *add)
{
    switch (kind) {
    case ROOF_STORE:
        return SET1(ROOF_CONSTANT);
    case ROOF_IN_PLACE:
        return MUL(LOAD(src), SET1(-1.0f));
    case ROOF_ADD:
        return ADD(LOAD(src), LOAD(add));
    default:
        return LOAD(src);
    }
}

/* Between barriers, or clang 14 makes two stores one, without the hint. */
TARGET static inline __attribute__((always_inline)) void ROOF(put)(enum access access,
                                                                   float *dst, VECTOR v)
{
#if defined(STREAM)
    if (access == NON_TEMPORAL) {
        __asm__ volatile("" ::: "memory");
        STREAM(dst, v);
        __asm__ volatile("" ::: "memory");
        return;
    }
#endif
    (void)access;
    STORE(dst, v);
}

TARGET static inline __attribute__((always_inline)) void
ROOF(body)(enum roof_kind kind, enum access access, float *dst, const float *src,
           const float *add, size_t n)
{
    const size_t lanes = LANES;
    size_t i = 0;
    for (; i < n && (uintptr_t)(dst + i) % 64 != 0; i++)
        dst[i] = element(kind, src, add, i);
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
        const size_t i1 = i + lanes, i2 = i1 + lanes, i3 = i2 + lanes;
        if (access == PREFETCHED)
            for (size_t line = i; line < i + 4 * lanes; line += 16) {
                prefetch_ahead(kind == ROOF_STORE ? dst + line : src + line,
                               kind == ROOF_STORE);
                if (kind == ROOF_ADD)
                    prefetch_ahead(add + line, false);
            }
        VECTOR v0 = ROOF(value)(kind, src + i, add + i);
        VECTOR v1 = ROOF(value)(kind, src + i1, add + i1);
        VECTOR v2 = ROOF(value)(kind, src + i2, add + i2);
        VECTOR v3 = ROOF(value)(kind, src + i3, add + i3);
        ROOF(put)(access, dst + i, v0);
        ROOF(put)(access, dst + i1, v1);
        ROOF(put)(access, dst + i2, v2);
        ROOF(put)(access, dst + i3, v3);
    }
    for (; i < n; i++)
        dst[i] = element(kind, src, add, i);
#if defined(STREAM)
    if (access == NON_TEMPORAL)
        FENCE;
#endif
}

#define ROOF_FUNCTION(name, kind, access)                                                      \
    TARGET static __attribute__((noinline, aligned(64))) void ROOF(name)(                      \
        float *dst, const float *src, const float *add, size_t n)                              \
    {                                                                                          \
        ROOF(body)(kind, access, dst, src, add, n);                                            \
    }

ROOF_FUNCTION(store, ROOF_STORE, PLAIN)
ROOF_FUNCTION(in_place, ROOF_IN_PLACE, PLAIN)
ROOF_FUNCTION(copy, ROOF_COPY, PLAIN)
ROOF_FUNCTION(add, ROOF_ADD, PLAIN)
#if defined(STREAM)
ROOF_FUNCTION(store_prefetch, ROOF_STORE, PREFETCHED)
ROOF_FUNCTION(store_stream, ROOF_STORE, NON_TEMPORAL)
ROOF_FUNCTION(in_place_prefetch, ROOF_IN_PLACE, PREFETCHED)
ROOF_FUNCTION(in_place_stream, ROOF_IN_PLACE, NON_TEMPORAL)
ROOF_FUNCTION(copy_prefetch, ROOF_COPY, PREFETCHED)
ROOF_FUNCTION(copy_stream, ROOF_COPY, NON_TEMPORAL)
ROOF_FUNCTION(add_prefetch, ROOF_ADD, PREFETCHED)
ROOF_FUNCTION(add_stream, ROOF_ADD, NON_TEMPORAL)
#endif

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
#undef FENCE
