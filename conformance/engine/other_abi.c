/* A stand-in for a libposenc of another ABI, which test_library opens. It has only the functions that a caller uses
 * before it calls a kernel. */
#include <posenc/backend.h>

const char *posenc_version(void) { return "9.9.9"; }

const struct posenc_backend *posenc_backend_at(size_t index)
{
    static const struct posenc_backend only = { .size = 1,
                                                .abi = POSENC_ABI + 5,
                                                .name = "scalar" };
    return index == 0 ? &only : NULL;
}

const struct posenc_backend *posenc_backend_find(const char *name)
{
    return name ? posenc_backend_at(0) : NULL;
}

const char *posenc_backend_unavailable_reason(const struct posenc_backend *backend)
{
    return backend ? NULL : "none";
}

enum posenc_status posenc_freqs_create(const struct posenc_freqs_spec *spec,
                                       struct posenc_freqs **freqs, struct posenc_error *error)
{
    (void)spec, (void)freqs, (void)error;
    return POSENC_ERR_MEMORY;
}

void posenc_freqs_destroy(struct posenc_freqs *freqs) { (void)freqs; }
