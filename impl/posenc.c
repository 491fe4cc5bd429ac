/*
 * The public kernel functions, posenc_<kernel>(), generated from the list of kernels. Each checks its arguments and
 * brings them to canonical form (checks.h), selects a backend (select.h) and runs the backend's kernel. For rope_half,
 * posenc_setup_rope() does the first two. _Generic picks the steps that only one signature has.
 */
#include "checks.h"
#include "versioned.h"
#include "select.h"

#include <string.h>

const char *posenc_version(void) { return POSENC_VERSION; }

int32_t posenc_version_number(void) { return POSENC_VERSION_NUMBER; }

/* ---- Steps of one signature ---- */

/* Runs a sinusoidal kernel once for each axis. The encodings of the axes lie side by side. */
static enum posenc_status run_by_axis(void (*any)(void), const void *args)
{
    enum posenc_status (*kernel)(const struct posenc_sinusoidal_args *) =
        (enum posenc_status(*)(const struct posenc_sinusoidal_args *))any;
    const struct posenc_sinusoidal_args *call = args;
    enum posenc_status status = POSENC_OK;
    int64_t from = 0;

    for (int32_t axis = 0; axis < call->freqs->view.n_axes && !status; axis++) {
        const struct posenc_freqs section = posenc_freqs_section(call->freqs, axis);
        struct posenc_sinusoidal_args part = *call;
        part.freqs = &section;
        part.positions = posenc_positions_on_axis(&call->positions, axis);
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

static inline bool has_several_axes(const struct posenc_sinusoidal_args *call)
{
    return call->freqs->view.n_axes > 1;
}

/* Writes zeros to the sums of a call without keys, which also has no index, and returns true. Returns false, and does
 * nothing, for any other call. */
static inline bool write_sums_of_none(struct posenc_relative_sum_args *call)
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

/* The step of all other signatures. */
static inline bool do_nothing(const void *call)
{
    (void)call;
    return false;
}
#define HAS_SEVERAL_AXES(call)                                                                 \
    _Generic((call), struct posenc_sinusoidal_args *                                           \
             : has_several_axes, default                                                       \
             : do_nothing)(call)
#define RUN(kernel, call)                                                                      \
    (HAS_SEVERAL_AXES(call) ? run_by_axis((void (*)(void))(kernel), call) : (kernel)(call))
#define WRITE_SUMS_OF_NONE(call)                                                               \
    _Generic((call), struct posenc_relative_sum_args *                                         \
             : write_sums_of_none, default                                                     \
             : do_nothing)(call)

static enum posenc_status check_dtypes(const struct posenc_backend *backend, unsigned dtypes,
                                       struct posenc_error *error)
{
    if (backend->f16_bf16 || dtypes == POSENC_DTYPE_F32)
        return POSENC_OK;
    return reject_range(error, POSENC_ERR_DTYPE, "dtype of a tensor (this backend takes f32)",
                        (double)dtypes, POSENC_DTYPE_F32, POSENC_DTYPE_F32);
}

/* Copies arguments that were built with an older or a newer header. */
static enum posenc_status copy_versioned_args(const struct versioned *versioned, void *call,
                                              const void *args, struct posenc_error *error)
{
    if (!posenc_versioned_copy(versioned, call, args))
        return POSENC_OK;
    const size_t size = *(const size_t *)args;
    if (size % versioned->align != 0)
        return reject_value(error, POSENC_ERR_ARGUMENT,
                            "size of the arguments (no whole words)", (double)size);
    return reject_range(error, POSENC_ERR_ARGUMENT,
                        "size of the arguments (or newer members not 0)", (double)size,
                        (double)versioned->min_size, (double)versioned->size);
}

/* Only rotations have a fast check, as a decoding step waits for them. */
static inline bool fail_fast_check(const void *args, void *call, struct call_summary *summary)
{
    (void)args;
    (void)call;
    (void)summary;
    return false;
}
#define FAST_CHECK(args)                                                                       \
    _Generic((args), const struct posenc_rope_args * : posenc_fast_check_rope, default : fail_fast_check)

/* ---- The calls ---- */

#define POSENC_SIGNATURE(signature)                                                            \
    enum posenc_status posenc_setup_##signature(                                               \
        const struct posenc_backend **backend, enum posenc_kernel kernel, bool takes_x,        \
        const struct posenc_##signature##_args *args, struct posenc_##signature##_args *call,  \
        bool *empty, struct posenc_error *error)                                               \
    {                                                                                          \
        enum posenc_status status = POSENC_OK;                                                 \
        struct call_summary summary = { false, POSENC_DTYPE_F16 | POSENC_DTYPE_BF16 };         \
        if (!args)                                                                             \
            return reject(error, POSENC_ERR_ARGUMENT, "args (NULL)");                          \
        if (!FAST_CHECK(args)(args, call, &summary)) {                                         \
            if (args->size == sizeof *call)                                                    \
                *call = *args;                                                                 \
            else                                                                               \
                status = copy_versioned_args(&posenc_versioned_##signature##_args, call, args, \
                                             error);                                           \
            if (!status)                                                                       \
                status = posenc_check_##signature(call, takes_x, &summary, error);             \
        }                                                                                      \
        if (!status)                                                                           \
            status = posenc_resolve_backend(backend, kernel, call, error);                     \
        if (!status)                                                                           \
            status = check_dtypes(*backend, summary.dtypes, error);                            \
        *empty = summary.empty;                                                                \
        return status;                                                                         \
    }
#include <posenc_signatures.def>

#define POSENC_KERNEL(ID, name, signature, summary, stage, x, ...)                             \
    enum posenc_status posenc_##name(const struct posenc_backend *backend,                     \
                                     const struct posenc_##signature##_args *args,             \
                                     struct posenc_error *error)                               \
    {                                                                                          \
        struct posenc_##signature##_args call;                                                 \
        bool empty = false;                                                                    \
        enum posenc_status status = posenc_setup_##signature(                                  \
            &backend, POSENC_KERNEL_##ID, X_##x, args, &call, &empty, error);                  \
        return status || empty || WRITE_SUMS_OF_NONE(&call) ? status                           \
                                                            : RUN(backend->name, &call);       \
    }
#include "posenc_kernels.def"
