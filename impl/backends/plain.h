/* What the plain loops of libm.c share. */
#ifndef POSENC_BACKENDS_PLAIN_H
#define POSENC_BACKENDS_PLAIN_H

#include <math.h>

#include "impl/kernels/common.h"
#include "impl/kernels/storage.h"

/* Element i is read and written at index i only, in place or not.  (Without vectors clang would
 * warn that it has none.) */
#if defined(__riscv) && !defined(__riscv_vector)
#define PLAIN_INDEPENDENT
#elif defined(__clang__)
#define PLAIN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PLAIN_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Of a function with the type of elements as its first argument (FOR_TYPE). */
#define TYPED static inline __attribute__((always_inline))

/* x scale + value, rounded once; a sum is all it takes where the scale is 1. */
static inline float add(float x, float scale, float value)
{
    return scale == 1.0f ? x + value : fmaf(x, scale, value);
}

#endif
