/* See entry.h. */
#include "entry.h"
#include "impl/checks.h"

enum posenc_status posenc_entry(enum posenc_kernel kernel, const struct posenc_backend *backend,
                                const void *args)
{
    switch (kernel) {
#define POSENC_KERNEL(name, signature, summary, stage, x, ...)                                 \
    case POSENC_KERNEL_##name: {                                                               \
        struct posenc_##signature##_args call;                                                 \
        bool empty;                                                                            \
        return posenc_enter_##signature(&backend, kernel, X_##x, args, &call, &empty);         \
    }
#include <posenc_kernels.def>
    case POSENC_KERNEL_COUNT:
        break;
    }
    return POSENC_ERR_ARGUMENT;
}
