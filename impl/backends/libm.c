/*
 * Backend libm: plain loops with the C library's sin, cos and fmaf. This file and the two that it includes are the
 * simplest definition of what kernels compute.
 *
 * The autovec backends are the same source, compiled at -O3 for wider CPUs: the build defines PLAIN_NAME and the other
 * macros, and lets the compiler contract products and sums to FMA.
 *
 * plain_<name>() is the kernel <name>. A kernel and its _add variant are one function: it adds the encoding or bias to
 * x if the call has x, and writes it otherwise.
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
    .required_features = PLAIN_NEEDS,
    .f16_bf16 = true,
    .allows_contraction = PLAIN_CONTRACTS,
#define POSENC_KERNEL(ID, name, ...) .name = plain_##name,
#include <posenc_kernels.def>
};
