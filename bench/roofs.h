/*
 * Roofs: the best this machine does with the same bytes and the same access pattern as a
 * kernel, doing next to no arithmetic.  They run over the tensors of the very call they are the
 * roof of, in the same rounds, so that pages, caches and clock are the same.
 *
 * And loops that are limits where memory is not: over the same tensors, or a block that stays in the nearest
 * cache, they do what a kernel cannot avoid.
 */
#ifndef POSENC_ROOFS_H
#define POSENC_ROOFS_H

#include "impl/loops/bare.h"

#include <stdbool.h>
#include <stddef.h>

enum roof_kind {
    ROOF_STORE,    /* write dst: tables and biases */
    ROOF_IN_PLACE, /* dst = -dst: rotations in place, scores in place */
    ROOF_COPY,     /* dst = src: out of place */
    ROOF_ADD,      /* dst = src + add: out of place with a second stream, e.g. learned_add */
    /* Conversions (impl/loops/conversions.h), src being NULL where a call only writes: */
    ROOF_FROM_F64, /* dst = f32 of f64 numbers, + src: tables and what adds them */
    ROOF_F16,      /* dst = src, or numbers of f64 or f32, by way of f32: storage in f16, */
    ROOF_BF16,     /* and in bf16 */
/* Bare loops, each as impl/loops/bare.h says: */
#define KIND(name, unused) ROOF_BARE_##name,
    BARE_KINDS(KIND, )
#undef KIND
        ROOF_KIND_COUNT,
};
extern const char *const roof_kind_name[ROOF_KIND_COUNT];

/* What binds. */
enum resource {
    RESOURCE_MEMORY,
    RESOURCE_CONVERSION, /* between types of storage and of arithmetic */
    RESOURCE_PORTS,      /* of the core, that instructions go through */
    RESOURCE_LATENCY,    /* of one operation that waits for another */
    RESOURCE_CALLS,      /* what a call takes without its rows */
    RESOURCE_COUNT
};
extern const char *const resource_name[RESOURCE_COUNT];
enum resource roof_resource(enum roof_kind kind);

/* n floats from dst; src and add are read where the kind reads them (in place: src = dst).
 * Only normal, non-zero numbers are written when only such are read: lines of zeros are faster
 * than real ones on some CPUs, and denormals slower. */
typedef void roof_function(float *dst, const float *src, const float *add, size_t n);

struct roof_variant {
    enum roof_kind kind;
    const char *name; /* "avx512 prefetch" */
    roof_function *function;
    bool (*runs)(void); /* whether this CPU can; NULL: always */
};

/* All variants of all kinds; NULL past the end. */
const struct roof_variant *roof_variant_at(size_t index);

#endif
