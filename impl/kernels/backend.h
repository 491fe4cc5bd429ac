/*
 * A backend of the family native: the kernels of one ISA, as posenc.h wants them.  The file
 * that includes this defines TEMPLATE_NEEDS and TEMPLATE_DESCRIPTION.
 */
#include "kernel.h"

#define TEMPLATE_TEXT(name)   #name
#define TEMPLATE_STRING(name) TEMPLATE_TEXT(name)

static int32_t lanes(void) { return (int32_t)vf_lanes(); }

const struct posenc_backend KERNEL_SYMBOL(backend, POSENC_ISA) = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = TEMPLATE_STRING(POSENC_ISA),
    .description = TEMPLATE_DESCRIPTION,
    .needs = TEMPLATE_NEEDS,
    .lanes = lanes,
    .fused = true,
    .f16_bf16 = true,
    .family = "native",
#define POSENC_KERNEL(name, ...) .name = KERNEL(name),
#include <posenc_kernels.def>
};
