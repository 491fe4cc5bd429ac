/*
 * Lists the variants of each roofline and lower-bound loop (see rooflines.h): those of bench/loops for each instruction
 * set, and for memory also plain C and libc. The best one depends on footprint and CPU, so all are timed.
 */
#include "rooflines.h"
#include <posenc/backend.h>

#include <string.h>

const char *const roofline_kind_name[ROOFLINE_KIND_COUNT] = {
#define KIND(kind, name, unused) name,
    MOVE_KINDS(KIND, ) BOUND_KINDS(KIND, )
#undef KIND
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

/* ---- Rooflines by the compiler and by libc ---- */

static void plain_store(float *dst, const float *src, const float *add, size_t n)
{
    (void)src, (void)add;
    for (size_t i = 0; i < n; i++)
        dst[i] = ROOFLINE_CONSTANT;
}

/* Has one pointer, since the compiler does not vectorise two that may overlap. */
static void plain_in_place(float *dst, const float *src, const float *add, size_t n)
{
    (void)src, (void)add;
    for (size_t i = 0; i < n; i++)
        dst[i] *= -1.0f;
}

static void plain_copy(float *dst, const float *src, const float *add, size_t n)
{
    (void)add;
    for (size_t i = 0; i < n; i++)
        dst[i] = src[i];
}

static void plain_add(float *dst, const float *src, const float *add, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = src[i] + add[i];
}

static void libc_store(float *dst, const float *src, const float *add, size_t n)
{
    (void)src, (void)add;
    memset(dst, ROOFLINE_BYTE, n * sizeof *dst);
}

static void libc_copy(float *dst, const float *src, const float *add, size_t n)
{
    (void)add;
    memcpy(dst, src, n * sizeof *dst);
}

/* ---- Variants ---- */

static bool backend_runs(const char *name)
{
    const struct posenc_backend *backend = posenc_backend_find(name);
    return backend && !posenc_backend_unavailable_reason(backend);
}

#define ISA(name)                                                                              \
    static bool runs_##name(void) { return backend_runs(#name); }                              \
    static bool moves_##name(void)                                                             \
    {                                                                                          \
        return BOUND_NAME(moves, name)() != MOVES_NONE && runs_##name();                       \
    }                                                                                          \
    static bool hints_##name(void)                                                             \
    {                                                                                          \
        return BOUND_NAME(moves, name)() == MOVES_WITH_HINTS && runs_##name();                 \
    }
BOUND_ISAS
#undef ISA

#define BOUND_VARIANT(kind, unused, isa)                                                       \
    { BOUND_##kind, #isa, BOUND_NAME(kind, isa), runs_##isa },
#define MOVE_VARIANTS(kind, unused, isa)                                                       \
    { BOUND_##kind, #isa " plain", BOUND_NAME(kind, isa), moves_##isa },                       \
        { BOUND_##kind, #isa " prefetch", BOUND_NAME(kind##_prefetch, isa), hints_##isa },     \
        { BOUND_##kind, #isa " non-temporal", BOUND_NAME(kind##_stream, isa), hints_##isa },

static const struct roofline_variant variants[] = {
    /* clang-format off */
    { BOUND_store, "memset", libc_store, NULL },
    { BOUND_store, "plain", plain_store, NULL },
    { BOUND_in_place, "plain", plain_in_place, NULL },
    { BOUND_copy, "memcpy", libc_copy, NULL },
    { BOUND_copy, "plain", plain_copy, NULL },
    { BOUND_add, "plain", plain_add, NULL },
#define ISA(name) MOVE_KINDS(MOVE_VARIANTS, name) BOUND_KINDS(BOUND_VARIANT, name)
    BOUND_ISAS
#undef ISA
    /* clang-format on */
};
#undef MOVE_VARIANTS
#undef BOUND_VARIANT

const struct roofline_variant *roofline_variant_at(size_t index)
{
    return index < sizeof variants / sizeof *variants ? &variants[index] : NULL;
}
