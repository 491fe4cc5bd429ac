/*
 * The header that each kernel template includes: vector operations of one instruction set, elements, positions, kernel
 * names.
 *
 * A template is a .c file of this folder. The build compiles it once for each ISA, and defines POSENC_SIMD (the header
 * of the ISA's vector operations, such as "impl/simd/simd_avx2.h") and POSENC_ISA (the backend's name, such as avx2).
 *
 * Other headers: store_modes.h (how outputs are written) is the base of all but rope_qk_norm.c; biases.h and
 * head_columns.h are for the biases of attention scores, rope_strips.h the rotations, run_output.h and run*.h the tables
 * of cosines and sines.
 */
#ifndef POSENC_KERNELS_KERNEL_H
#define POSENC_KERNELS_KERNEL_H

#include "impl/simd/simd.h"
#include "common.h"
#include "dtype.h"

/* KERNEL(alibi) is the function of this ISA: posenc_avx2_alibi. */
#define KERNEL_PASTE(isa, name)  posenc_##isa##_##name
#define KERNEL_SYMBOL(isa, name) KERNEL_PASTE(isa, name)
#define KERNEL(name)             KERNEL_SYMBOL(POSENC_ISA, name)

#define POSENC_KERNEL(ID, name, signature, ...)                                                \
    enum posenc_status KERNEL(name)(const struct posenc_##signature##_args *args);
#include <posenc_kernels.def>

#endif
