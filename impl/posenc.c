/*
 * The front-end: posenc_<kernel>() for each of the list. A call is checked by its signature
 * (checks.h), brought to the one form that kernels take (struct posenc_backend in posenc.h),
 * and handed to its backend.
 *
 * Nothing here depends on a kernel but the list.
 */
#include "checks.h"
#include "grow.h"
#include "select.h"

#include <string.h>

const char *posenc_version(void) { return POSENC_VERSION; }

struct posenc_tensor posenc_dense(void *data, int rank, int64_t d0, int64_t d1, int64_t d2,
                                  int64_t d3)
{
    struct posenc_tensor tensor = { .data = data, .dtype = POSENC_F32, .rank = rank };
    const int64_t sizes[4] = { d0, d1, d2, d3 };
    /* Unsigned: the product of absurd sizes wraps, and the call refuses them. */
    uint64_t stride = 1;
    for (int n = rank < 4 ? rank : 4; n > 0; n--) {
        tensor.shape[n - 1] = sizes[n - 1];
        tensor.stride[n - 1] = (int64_t)stride;
        stride *= (uint64_t)sizes[n - 1];
    }
    return tensor;
}

struct posenc_const_tensor posenc_const_dense(const void *data, int rank, int64_t d0,
                                              int64_t d1, int64_t d2, int64_t d3)
{
    struct posenc_const_tensor tensor = posenc_view(posenc_dense(NULL, rank, d0, d1, d2, d3));
    tensor.data = data;
    return tensor;
}

/* ---- The calls ---- */

/* An encoding of several axes is one of each, side by side. */
static enum posenc_status run_axes(void (*any)(void), const struct posenc_sinusoidal_args *call)
{
    enum posenc_status (*kernel)(const struct posenc_sinusoidal_args *) =
        (enum posenc_status(*)(const struct posenc_sinusoidal_args *))any;
    enum posenc_status status = POSENC_OK;
    int64_t from = 0;

    for (int32_t axis = 0; axis < call->freqs->view.n_axes && !status; axis++) {
        const struct posenc_freqs section = posenc_freqs_section(call->freqs, axis);
        struct posenc_sinusoidal_args part = *call;
        part.freqs = &section;
        part.positions = posenc_axis(&call->positions, axis);
        int64_t bytes = from * (int64_t)posenc_dtype_size(call->out.dtype);
        part.out.data = (char *)call->out.data + bytes;
        part.out.shape[3] = part.x.shape[3] = section.view.dim;
        if (call->x.data)
            part.x.data = (const char *)call->x.data + bytes;
        status = kernel(&part);
        from += section.view.dim;
    }
    return status;
}

static inline const struct posenc_sinusoidal_args *
if_axes(const struct posenc_sinusoidal_args *call)
{
    return call->freqs->view.n_axes > 1 ? call : NULL;
}

static inline const struct posenc_sinusoidal_args *no_axes(const void *call)
{
    (void)call;
    return NULL;
}

/* Runs a checked call: as it is, or axis by axis. */
#define AXES(call)                                                                             \
    _Generic((call), struct posenc_sinusoidal_args * : if_axes, default : no_axes)(call)
#define RUN(kernel, call)                                                                      \
    (AXES(call) ? run_axes((void (*)(void))(kernel), AXES(call)) : (kernel)(call))

/* Without keys there is nothing to add up and no index: zeros, which no backend is asked for. */
static inline bool is_cleared(struct posenc_relative_sum_args *call)
{
    const struct posenc_tensor *out = &call->out;
    const size_t item = posenc_dtype_size(out->dtype), bytes = (size_t)out->shape[3] * item;
    if (call->x.shape[3] != 0)
        return false;
    for (int64_t b = 0; b < out->shape[0]; b++)
        for (int64_t h = 0; h < out->shape[1]; h++)
            for (int64_t i = 0; i < out->shape[2]; i++)
                memset((char *)out->data +
                           (b * out->stride[0] + h * out->stride[1] + i * out->stride[2]) *
                               (int64_t)item,
                       0, bytes); /* all bits zero is +0 */
    return true;
}

static inline bool not_cleared(const void *call)
{
    (void)call;
    return false;
}
#define CLEARED(call)                                                                          \
    _Generic((call), struct posenc_relative_sum_args *                                         \
             : is_cleared, default                                                             \
             : not_cleared)(call)

static enum posenc_status check_dtypes(const struct posenc_backend *backend, unsigned dtypes,
                                       struct posenc_error *error)
{
    if (backend->f16_bf16 || dtypes == POSENC_F32)
        return POSENC_OK;
    return posenc_refuse(error, POSENC_ERR_DTYPE, "dtype of a tensor (this backend takes f32)",
                         (double)dtypes, POSENC_F32, POSENC_F32);
}

/* Takes arguments whose size is that of an older or a newer header. */
static enum posenc_status grow(const struct grown *grown, void *call, const void *args,
                               struct posenc_error *const *error)
{
    if (!posenc_grow(grown, call, args))
        return POSENC_OK;
    const size_t size = *(const size_t *)args;
    if (size % grown->align != 0)
        return posenc_refuse(*error, POSENC_ERR_ARGUMENT,
                             "size of the arguments (no whole words)", (double)size, 1.0, 0.0);
    return posenc_refuse(*error, POSENC_ERR_ARGUMENT,
                         "size of the arguments (or newer members not 0)", (double)size,
                         (double)grown->first, (double)grown->size);
}

/* Accepts usual calls by a fast check, so that they need no further ones. Only rotations have a fast
 * check, as a decoding step waits for them. */
static inline bool not_usual(const void *args, void *call, struct accepted *accepted)
{
    (void)args;
    (void)call;
    (void)accepted;
    return false;
}
#define USUAL(args)                                                                            \
    _Generic((args), const struct posenc_rope_args * : posenc_usual_rope, default : not_usual)

/* All that is done of a call before its kernel runs. */
#define POSENC_SIGNATURE(signature)                                                            \
    enum posenc_status posenc_enter_##signature(                                               \
        const struct posenc_backend **backend, enum posenc_kernel kernel, bool takes_x,        \
        const struct posenc_##signature##_args *args, struct posenc_##signature##_args *call,  \
        bool *empty)                                                                           \
    {                                                                                          \
        enum posenc_status status = POSENC_OK;                                                 \
        struct accepted accepted = { false, POSENC_F16 | POSENC_BF16 };                        \
        if (!args)                                                                             \
            return POSENC_ERR_ARGUMENT;                                                        \
        if (!USUAL(args)(args, call, &accepted)) {                                             \
            if (args->size == sizeof *call)                                                    \
                *call = *args;                                                                 \
            else                                                                               \
                status = grow(&posenc_grown_##signature##_args, call, args, &call->error);     \
            if (!status)                                                                       \
                status = posenc_check_##signature(call, takes_x, &accepted);                   \
        }                                                                                      \
        if (!status)                                                                           \
            status = posenc_resolve(backend, kernel, call, call->error);                       \
        if (!status)                                                                           \
            status = check_dtypes(*backend, accepted.dtypes, call->error);                     \
        *empty = accepted.empty;                                                               \
        return status;                                                                         \
    }
#include <posenc_signatures.def>

#define POSENC_KERNEL(name, signature, summary, stage, x, ...)                                 \
    enum posenc_status posenc_##name(const struct posenc_backend *backend,                     \
                                     const struct posenc_##signature##_args *args)             \
    {                                                                                          \
        struct posenc_##signature##_args call;                                                 \
        bool empty;                                                                            \
        enum posenc_status status = posenc_enter_##signature(&backend, POSENC_KERNEL_##name,   \
                                                             X_##x, args, &call, &empty);      \
        return status || empty || CLEARED(&call) ? status : RUN(backend->name, &call);         \
    }
#include "posenc_kernels.def"
