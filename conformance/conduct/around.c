/*
 * Kernels that call the real one through a function of ours: see around.h.
 */
#include "around.h"

#include <string.h>

static _Thread_local struct {
    const struct posenc_backend *real;
    call_around *around;
    void *user;
} now;

#define POSENC_KERNEL(name, signature, ...)                                                    \
    static enum posenc_status around_##name(const struct posenc_##signature##_args *args)      \
    {                                                                                          \
        return now.around(now.user, (any_kernel_function *)now.real->name, args);              \
    }
#include <posenc_kernels.def>

struct posenc_backend backend_around(const struct posenc_backend *real, call_around *around,
                                     void *user)
{
    struct posenc_backend backend = { 0 };
    memcpy(&backend, real, real->size < sizeof backend ? real->size : sizeof backend);
#define POSENC_KERNEL(kernel, ...)                                                             \
    if (posenc_provides(real, POSENC_KERNEL_##kernel))                                         \
        backend.kernel = around_##kernel;
#include <posenc_kernels.def>
    now.real = real;
    now.around = around;
    now.user = user;
    return backend;
}
