/* What the kernels that write or add biases share. */
#ifndef POSENC_KERNELS_SCORES_H
#define POSENC_KERNELS_SCORES_H

#include "kernel.h"

/* n biases to out from key j on, onto scores where there are some. */
SIMD_INLINE void put_bias(enum posenc_dtype type, bool add, const void *x, vf x_scale,
                          void *out, int64_t j, vf bias, int64_t n)
{
    if (add)
        bias = vf_fma(load_as(type, x, j, n), x_scale, bias);
    store_as(type, out, j, bias, n);
}

#endif
