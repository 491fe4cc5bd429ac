/*
 * What every family of kernels begins with: the primitives of one ISA, elements and positions,
 * and the kernels' names.
 *
 * A family is a file of this folder, *.c, compiled once for each ISA: the build names the header
 * of the primitives, POSENC_SIMD, and the backend, POSENC_ISA, after which its symbols are
 * called.
 */
#ifndef POSENC_KERNELS_KERNEL_H
#define POSENC_KERNELS_KERNEL_H

#include "impl/simd/simd.h"
#include "common.h"
#include "storage.h"

/* The name of a kernel of this ISA: KERNEL(alibi) is posenc_avx2_alibi. */
#define KERNEL_PASTE(isa, name)  posenc_##isa##_##name
#define KERNEL_SYMBOL(isa, name) KERNEL_PASTE(isa, name)
#define KERNEL(name)             KERNEL_SYMBOL(POSENC_ISA, name)

#define POSENC_KERNEL(name, signature, ...)                                                    \
    enum posenc_status KERNEL(name)(const struct posenc_##signature##_args *args);
#include <posenc_kernels.def>

#endif
