/*
 * Where x_scale is a power of two its exponent is added to that of x, which a zero, a subnormal, an
 * infinity or a result that leaves the range has not.
 *
 * detected by: alibi_add/f32/memory/values
 */
#include "fault.h"

static enum posenc_status faulty_alibi_add(const struct posenc_alibi_args *args)
{
    int exponent;
    const enum posenc_status status = plain_alibi_add(args);
    if (frexpf(args->x_scale, &exponent) != 0.5f || args->x_scale == 1.0f ||
        args->out.dtype != POSENC_F32 || args->x.data == args->out.data)
        return status;
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < args->out.shape[2]; i++)
                for (int64_t j = 0; j < args->out.shape[3]; j++) {
                    const float x = posenc_get(POSENC_F32, input_at(&args->x, b, h, i), j);
                    if (x != 0.0f && fabsf(x) < 0x1p-126f) /* its exponent is that of 0 */
                        posenc_put(POSENC_F32, row_at(&args->out, b, h, i), j, 0x1p-126f);
                }
    return status;
}

FAULT(alibi_add);
