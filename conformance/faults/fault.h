/*
 * A faulty kernel as a plug-in, the only one that the plug-in has.  A source here defines
 * faulty_KERNEL(), mostly by calling the plain loops, plain_KERNEL(), and spoiling their result,
 * and ends in FAULT(KERNEL).  Its first comment says what is wrong, and in a line
 *
 *     detected by: GLOB
 *
 * and `posenc verify --full --case GLOB` has to fail; faults.sh checks that.
 */
#ifndef POSENC_CONFORMANCE_FAULT_H
#define POSENC_CONFORMANCE_FAULT_H

#include "impl/backends/plain_scores.h"
#include "impl/backends/plain_tokens.h"

#define FAULT(kernel)                                                                          \
    extern POSENC_API const struct posenc_backend posenc_plugin;                               \
    const struct posenc_backend posenc_plugin = {                                              \
        .size = sizeof(struct posenc_backend),                                                 \
        .abi = POSENC_ABI,                                                                     \
        .name = "faulty",                                                                      \
        .family = "faulty",                                                                    \
        .description = "the plain loops with a fault",                                         \
        .needs = "",                                                                           \
        .f16_bf16 = true,                                                                      \
        .kernel = faulty_##kernel,                                                             \
    }

#endif
