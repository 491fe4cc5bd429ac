/*
 * Rooflines: the best this machine does with the same bytes and the same access pattern as a kernel, doing
 * next to no arithmetic.  They run over the tensors of the very call they belong to, in the same rounds, so
 * that pages, caches and clock are the same.  Lower-bound loops are listed with them.
 */
#ifndef POSENC_ROOFLINES_H
#define POSENC_ROOFLINES_H

#include "bench/loops/bounds.h"

#include <stdbool.h>
#include <stddef.h>

enum roofline_kind {
#define KIND(name, unused) BOUND_##name,
    MOVE_KINDS(KIND, ) BOUND_KINDS(KIND, )
#undef KIND
        ROOFLINE_KIND_COUNT,
};
extern const char *const roofline_kind_name[ROOFLINE_KIND_COUNT];

/* Resources that bind a row. */
enum resource {
    RESOURCE_MEMORY,
    RESOURCE_CONVERSION, /* between types of storage and of arithmetic */
    RESOURCE_PORTS,      /* of the core, that instructions go through */
    RESOURCE_LATENCY,    /* of one operation that waits for another */
    RESOURCE_CALLS,      /* what a call takes without its rows */
    RESOURCE_COUNT
};
extern const char *const resource_name[RESOURCE_COUNT];
enum resource roofline_resource(enum roofline_kind kind);

/* Writes n floats from dst; reads src and add if the kind does (in place: src = dst).  Normal, non-zero
 * numbers give such numbers: lines of zeros are faster than real ones on some CPUs, denormals slower. */
typedef void roofline_function(float *dst, const float *src, const float *add, size_t n);

struct roofline_variant {
    enum roofline_kind kind;
    const char *name; /* "avx512 prefetch" */
    roofline_function *function;
    bool (*runs)(void); /* whether this CPU can; NULL: always */
};

/* Lists all variants of all kinds; NULL past the end. */
const struct roofline_variant *roofline_variant_at(size_t index);

#endif
