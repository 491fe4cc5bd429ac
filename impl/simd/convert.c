/*
 * Public conversions of arrays between f32 and 16 bits. Compilers vectorise these loops over half.h.
 */
#include "half.h"
#include "impl/validate.h"

/* Checks two arrays of n elements, which must not overlap. With n = 0 the pointers are not looked at. */
static enum posenc_status check(int64_t n, const void *from, size_t from_size, const void *to,
                                size_t to_size, struct posenc_error *error)
{
    struct span read, written;
    enum posenc_status status =
        require_range(error, POSENC_ERR_SHAPE, "n (elements)", n, 0, INT64_MAX);
    if (status || n == 0)
        return status;
    status = posenc_check_array(from, n, from_size, "from (NULL or not aligned)", &read, error);
    if (!status)
        status =
            posenc_check_array(to, n, to_size, "to (NULL or not aligned)", &written, error);
    return status ? status : posenc_check_disjoint(read, written, "to (overlaps from)", error);
}

enum posenc_status posenc_f32_to_f16(int64_t n, const float *from, uint16_t *to,
                                     struct posenc_error *error)
{
    enum posenc_status status = check(n, from, sizeof *from, to, sizeof *to, error);
    for (int64_t i = 0; !status && i < n; i++)
        to[i] = f16_from_f32(from[i]);
    return status;
}

enum posenc_status posenc_f16_to_f32(int64_t n, const uint16_t *from, float *to,
                                     struct posenc_error *error)
{
    enum posenc_status status = check(n, from, sizeof *from, to, sizeof *to, error);
    for (int64_t i = 0; !status && i < n; i++)
        to[i] = f32_from_f16(from[i]);
    return status;
}

enum posenc_status posenc_f32_to_bf16(int64_t n, const float *from, uint16_t *to,
                                      struct posenc_error *error)
{
    enum posenc_status status = check(n, from, sizeof *from, to, sizeof *to, error);
    for (int64_t i = 0; !status && i < n; i++)
        to[i] = bf16_from_f32(from[i]);
    return status;
}

enum posenc_status posenc_bf16_to_f32(int64_t n, const uint16_t *from, float *to,
                                      struct posenc_error *error)
{
    enum posenc_status status = check(n, from, sizeof *from, to, sizeof *to, error);
    for (int64_t i = 0; !status && i < n; i++)
        to[i] = f32_from_bf16(from[i]);
    return status;
}
