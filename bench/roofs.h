/*
 * Roofs: the best this machine does with the same bytes and the same access pattern as a
 * kernel, doing next to no arithmetic.  They run over the tensors of the very call they are the
 * roof of, in the same rounds, so that pages, caches and clock are the same.
 */
#ifndef POSENC_ROOFS_H
#define POSENC_ROOFS_H

#include <stdbool.h>
#include <stddef.h>

enum roof_kind {
    ROOF_STORE,    /* write dst: tables and biases */
    ROOF_IN_PLACE, /* dst = -dst: rotations in place, scores in place */
    ROOF_COPY,     /* dst = src: out of place */
    ROOF_ADD,      /* dst = src + add: out of place with a second stream, e.g. learned_add */
    /* Conversions (impl/loops/conversions.h), src being NULL where a call only writes: */
    ROOF_FROM_F64, /* dst = f32 of f64 numbers, + src: tables and what adds them */
    ROOF_F16,      /* dst = src, or f64 numbers, by way of f32: storage in f16, */
    ROOF_BF16,     /* and in bf16 */
    ROOF_KIND_COUNT,
};
extern const char *const roof_kind_name[ROOF_KIND_COUNT];

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
