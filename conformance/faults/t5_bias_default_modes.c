/*
 * Ends in the floating-point environment that programs start with, whatever its caller's was.
 *
 * detected by: t5_bias/f32/memory/mxcsr
 */
#include "fault.h"

#include <fenv.h>

static enum posenc_status faulty_t5_bias(const struct posenc_t5_args *args)
{
    const enum posenc_status status = plain_t5_bias(args);
    fesetenv(FE_DFL_ENV);
    return status;
}

FAULT(t5_bias);
