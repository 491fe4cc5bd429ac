/*
 * A correct plug-in, for tests of the command line: the plain loops. With PLUGIN_F32 it takes only f32. With
 * PLUGIN_CONTRACTS it declares that its compiler contracts products and sums to FMA.
 */
#include "impl/backends/plain_scores.h"
#include "impl/backends/plain_tokens.h"

extern POSENC_API const struct posenc_backend posenc_plugin;
const struct posenc_backend posenc_plugin = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = "right",
    .family = "right",
    .description = "the plain loops as a plug-in",
    .required_features = "",
#ifndef PLUGIN_F32
    .f16_bf16 = true,
#endif
#ifdef PLUGIN_CONTRACTS
    .allows_contraction = true,
#endif
#define POSENC_KERNEL(ID, name, ...) .name = plain_##name,
#include <posenc_kernels.def>
};
