/*
 * Backend libm: the plainest loops, with the C library's sin, cos and fmaf. Read this file and
 * the two it includes to learn what the kernels compute. The autovec backends are this same
 * source at -O3 for wider CPUs (PLAIN_NAME and PLAIN_NEEDS come from the build), with
 * contraction left to the compiler.
 *
 * Kernel <name> is plain_<name>(). Where x is absent an encoding or a bias is written out,
 * where it is there it is added to x: the two kernels of such a pair are one function.
 */
#include "plain_scores.h"
#include "plain_tokens.h"

#ifndef PLAIN_NAME
#define PLAIN_NAME        libm
#define PLAIN_FAMILY      "libm"
#define PLAIN_NEEDS       ""
#define PLAIN_DESCRIPTION "plain loops over the C library's sin, cos and fma"
#define PLAIN_CONTRACTS   false
#endif

#define PLAIN_GLUE(a, b)   a##b
#define PLAIN_SYMBOL(name) PLAIN_GLUE(posenc_backend_, name)
#define PLAIN_TEXT(name)   #name
#define PLAIN_STRING(name) PLAIN_TEXT(name)

const struct posenc_backend PLAIN_SYMBOL(PLAIN_NAME) = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = PLAIN_STRING(PLAIN_NAME),
    .family = PLAIN_FAMILY,
    .description = PLAIN_DESCRIPTION,
    .needs = PLAIN_NEEDS,
    .f16_bf16 = true,
    .contracts = PLAIN_CONTRACTS,
#define POSENC_KERNEL(name, ...) .name = plain_##name,
#include <posenc_kernels.def>
};
