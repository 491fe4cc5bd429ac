/*
 * Defines the struct posenc_backend of one ISA, whose members are the kernels that the templates define. The including
 * file defines TEMPLATE_NEEDS (CPU features) and TEMPLATE_DESCRIPTION.
 */
#include "kernel.h"

#define TEMPLATE_TEXT(name)   #name
#define TEMPLATE_STRING(name) TEMPLATE_TEXT(name)

/* POSENC_F32_ISA names another ISA whose kernels this backend calls, except for bf16 outputs. The build sets it for
 * avx512_bf16, which differs from avx512 only in its conversion to bf16. */
#ifdef POSENC_F32_ISA
#include "impl/members.h"

#define POSENC_KERNEL(ID, name, signature, ...)                                                \
    enum posenc_status KERNEL_SYMBOL(POSENC_F32_ISA,                                           \
                                     name)(const struct posenc_##signature##_args *args);      \
    static enum posenc_status name(const struct posenc_##signature##_args *args)               \
    {                                                                                          \
        return posenc_args_dtype(POSENC_KERNEL_##ID, args) == POSENC_DTYPE_BF16                \
                   ? KERNEL(name)(args)                                                        \
                   : KERNEL_SYMBOL(POSENC_F32_ISA, name)(args);                                \
    }
#include <posenc_kernels.def>
#define KERNEL_OF(name) name
#else
#define KERNEL_OF(name) KERNEL(name)
#endif

static int32_t lanes(void) { return (int32_t)vf_lanes(); }

const struct posenc_backend KERNEL_SYMBOL(backend, POSENC_ISA) = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = TEMPLATE_STRING(POSENC_ISA),
    .description = TEMPLATE_DESCRIPTION,
    .required_features = TEMPLATE_NEEDS,
    .lanes = lanes,
    .fused = true,
    .f16_bf16 = true,
    .family = "native",
#define POSENC_KERNEL(ID, name, ...) .name = KERNEL_OF(name),
#include <posenc_kernels.def>
};
