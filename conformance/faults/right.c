/*
 * The plain loops without a fault: what detects the others must not detect this.
 */
#include "fault.h"

extern POSENC_API const struct posenc_backend posenc_plugin;
const struct posenc_backend posenc_plugin = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = "faulty",
    .family = "faulty",
    .description = "the plain loops",
    .needs = "",
    .f16_bf16 = true,
#define POSENC_KERNEL(name, ...) .name = plain_##name,
#include <posenc_kernels.def>
};
