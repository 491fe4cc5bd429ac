/*
 * The rooflines with vectors, a template: rooflines.c includes it once for each kind of vector after
 * defining
 *
 *   ROOFLINE(name)              name of a function with these vectors
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
ROOFLINE(value)(enum roofline_kind kind, const float *src, const float *add)
{
    switch (kind) {
    case ROOFLINE_STORE:
        return SET1(ROOFLINE_CONSTANT);
    case ROOFLINE_IN_PLACE:
        return MUL(LOAD(src), SET1(-1.0f));
    case ROOFLINE_ADD:
        return ADD(LOAD(src), LOAD(add));
    default:
        return LOAD(src);
    }
}

/* The barriers keep clang 14 from merging two streaming stores into one plain store. */
TARGET static inline __attribute__((always_inline)) void ROOFLINE(put)(enum access access,
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
ROOFLINE(body)(enum roofline_kind kind, enum access access, float *dst, const float *src,
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
                prefetch_ahead(kind == ROOFLINE_STORE ? dst + line : src + line,
                               kind == ROOFLINE_STORE);
                if (kind == ROOFLINE_ADD)
                    prefetch_ahead(add + line, false);
            }
        VECTOR v0 = ROOFLINE(value)(kind, src + i, add + i);
        VECTOR v1 = ROOFLINE(value)(kind, src + i1, add + i1);
        VECTOR v2 = ROOFLINE(value)(kind, src + i2, add + i2);
        VECTOR v3 = ROOFLINE(value)(kind, src + i3, add + i3);
        ROOFLINE(put)(access, dst + i, v0);
        ROOFLINE(put)(access, dst + i1, v1);
        ROOFLINE(put)(access, dst + i2, v2);
        ROOFLINE(put)(access, dst + i3, v3);
    }
    for (; i < n; i++)
        dst[i] = element(kind, src, add, i);
#if defined(STREAM)
    if (access == NON_TEMPORAL)
        FENCE;
#endif
}

#define ROOFLINE_FUNCTION(name, kind, access)                                                  \
    TARGET static __attribute__((noinline, aligned(64))) void ROOFLINE(name)(                  \
        float *dst, const float *src, const float *add, size_t n)                              \
    {                                                                                          \
        ROOFLINE(body)(kind, access, dst, src, add, n);                                        \
    }

ROOFLINE_FUNCTION(store, ROOFLINE_STORE, PLAIN)
ROOFLINE_FUNCTION(in_place, ROOFLINE_IN_PLACE, PLAIN)
ROOFLINE_FUNCTION(copy, ROOFLINE_COPY, PLAIN)
ROOFLINE_FUNCTION(add, ROOFLINE_ADD, PLAIN)
#if defined(STREAM)
ROOFLINE_FUNCTION(store_prefetch, ROOFLINE_STORE, PREFETCHED)
ROOFLINE_FUNCTION(store_stream, ROOFLINE_STORE, NON_TEMPORAL)
ROOFLINE_FUNCTION(in_place_prefetch, ROOFLINE_IN_PLACE, PREFETCHED)
ROOFLINE_FUNCTION(in_place_stream, ROOFLINE_IN_PLACE, NON_TEMPORAL)
ROOFLINE_FUNCTION(copy_prefetch, ROOFLINE_COPY, PREFETCHED)
ROOFLINE_FUNCTION(copy_stream, ROOFLINE_COPY, NON_TEMPORAL)
ROOFLINE_FUNCTION(add_prefetch, ROOFLINE_ADD, PREFETCHED)
ROOFLINE_FUNCTION(add_stream, ROOFLINE_ADD, NON_TEMPORAL)
#endif

#undef ROOFLINE_FUNCTION
#undef ROOFLINE
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
