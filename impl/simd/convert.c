/*
 * Public conversions of arrays between f32 and 16 bits. Compilers vectorise these loops over half.h.
 */
#include "half.h"
#include "impl/validate.h"

/* Checks two arrays of n elements, which must not overlap. With n = 0 the pointers are not looked at. */
static enum posenc_status check(int64_t n, const void *from, size_t from_size, const void *to,
                                size_t to_size)
{
    struct span read, written;
    if (n <= 0)
        return n < 0 ? POSENC_ERR_SHAPE : POSENC_OK;
    enum posenc_status status = posenc_check_array(from, n, from_size, "from", &read, NULL);
    if (!status)
        status = posenc_check_array(to, n, to_size, "to", &written, NULL);
    return status ? status : posenc_check_disjoint(read, written, "to", NULL);
}

enum posenc_status posenc_f32_to_f16(int64_t n, const float *from, uint16_t *to)
{
    enum posenc_status status = check(n, from, sizeof *from, to, sizeof *to);
    for (int64_t i = 0; !status && i < n; i++)
        to[i] = f16_from_f32(from[i]);
    return status;
}

enum posenc_status posenc_f16_to_f32(int64_t n, const uint16_t *from, float *to)
{
    enum posenc_status status = check(n, from, sizeof *from, to, sizeof *to);
    for (int64_t i = 0; !status && i < n; i++)
        to[i] = f32_from_f16(from[i]);
    return status;
}

enum posenc_status posenc_f32_to_bf16(int64_t n, const float *from, uint16_t *to)
{
    enum posenc_status status = check(n, from, sizeof *from, to, sizeof *to);
    for (int64_t i = 0; !status && i < n; i++)
        to[i] = bf16_from_f32(from[i]);
    return status;
}

enum posenc_status posenc_bf16_to_f32(int64_t n, const uint16_t *from, float *to)
{
    enum posenc_status status = check(n, from, sizeof *from, to, sizeof *to);
    for (int64_t i = 0; !status && i < n; i++)
        to[i] = f32_from_bf16(from[i]);
    return status;
}
