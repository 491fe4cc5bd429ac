/* Helpers of the plain loops (plain_tokens.h, plain_scores.h): portable C without vector operations. */
#ifndef POSENC_BACKENDS_PLAIN_H
#define POSENC_BACKENDS_PLAIN_H

#include <math.h>

#include "impl/kernels/common.h"
#include "impl/kernels/dtype.h"

/* Precedes a loop whose iterations are independent: each reads and writes only its own elements, in place or not, so
 * that compilers may vectorise. (Clang would warn on a RISC-V CPU without vectors.) */
#if defined(__riscv) && !defined(__riscv_vector)
#define PLAIN_INDEPENDENT
#elif defined(__clang__)
#define PLAIN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PLAIN_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Specifiers of a function whose first argument, a dtype, is a constant in each call (FOR_TYPE). */
#define TYPED static inline __attribute__((always_inline))

/* Returns x * scale + value, rounded once. With scale 1 a sum gives the same bits. */
static inline float add(float x, float scale, float value)
{
    return scale == 1.0f ? x + value : fmaf(x, scale, value);
}

#endif
