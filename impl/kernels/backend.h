/*
 * A backend of the family native: the kernels of one ISA, as posenc.h wants them. The file
 * that includes this defines TEMPLATE_NEEDS and TEMPLATE_DESCRIPTION.
 */
#include "kernel.h"

#define TEMPLATE_TEXT(name)   #name
#define TEMPLATE_STRING(name) TEMPLATE_TEXT(name)

/* An ISA that differs from another only in how it narrows to bf16 has that other's kernels for other outputs: the
 * build names it POSENC_F32_ISA. */
#ifdef POSENC_F32_ISA
#include "impl/members.h"

#define POSENC_KERNEL(name, signature, ...)                                                    \
    enum posenc_status KERNEL_SYMBOL(POSENC_F32_ISA,                                           \
                                     name)(const struct posenc_##signature##_args *args);      \
    static enum posenc_status name(const struct posenc_##signature##_args *args)               \
    {                                                                                          \
        return posenc_args_dtype(POSENC_KERNEL_##name, args) == POSENC_BF16                    \
                   ? KERNEL(name)(args)                                                        \
                   : KERNEL_SYMBOL(POSENC_F32_ISA, name)(args);                                \
    }
#include <posenc_kernels.def>
#define SERVED(name) name
#else
#define SERVED(name) KERNEL(name)
#endif

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
#define POSENC_KERNEL(name, ...) .name = SERVED(name),
#include <posenc_kernels.def>
};
