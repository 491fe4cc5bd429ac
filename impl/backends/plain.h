/* Helpers of the plain loops, plain_tokens.h and plain_scores.h. */
#ifndef POSENC_BACKENDS_PLAIN_H
#define POSENC_BACKENDS_PLAIN_H

#include <math.h>

#include "impl/kernels/common.h"
#include "impl/kernels/dtype.h"

/* Before a loop: each turn reads and writes its own elements only, in place or not, so that
 * compilers may vectorise. (Where RISC-V has no vectors clang would warn that it cannot.) */
#if defined(__riscv) && !defined(__riscv_vector)
#define PLAIN_INDEPENDENT
#elif defined(__clang__)
#define PLAIN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PLAIN_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Before a function whose first argument is the type of elements, a constant (FOR_TYPE). */
#define TYPED static inline __attribute__((always_inline))

/* x scale + value, rounded once; a sum is all it takes where the scale is 1. */
static inline float add(float x, float scale, float value)
{
    return scale == 1.0f ? x + value : fmaf(x, scale, value);
}

#endif
