/*
 * What a call must convert, and nothing else: its limit where memory is not.  Tables are made in
 * f64, elements of 16 bits are widened and rounded.
 *
 * Three loops for each instruction set that has the primitives of impl/simd; the build says which:
 * BARE_ISAS, ISA(name) for each of them, named as the backend.  What they store takes `n` floats from
 * dst on.  src: elements of the same type, or NULL where a call reads none; then numbers are stored
 * that a call makes: in f32, 128 of them at `wide`, or, where that is NULL, in f64.  from_f64 has f64
 * numbers always, and adds them to src.
 */
#ifndef POSENC_CONVERSIONS_H
#define POSENC_CONVERSIONS_H

#include <stddef.h>

#define CONVERSION_NAME(type, isa) conversion_##type##_##isa
#define CONVERSION(type, isa)                                                                  \
    void CONVERSION_NAME(type, isa)(float *dst, const float *src, const float *wide, size_t n)
#define ISA(name)                                                                              \
    CONVERSION(from_f64, name);                                                                \
    CONVERSION(f16, name);                                                                     \
    CONVERSION(bf16, name);
BARE_ISAS
#undef ISA

/* Those f64 numbers: eight of them again and again, to be read in vectors of any length. */
#define EIGHT 0.7, -0.71, 0.72, -0.73, 0.74, -0.75, 0.76, -0.77
#define FORTY EIGHT, EIGHT, EIGHT, EIGHT, EIGHT
static const double conversion_source[128] = { FORTY, FORTY, FORTY, EIGHT };
#undef FORTY
#undef EIGHT

#endif
