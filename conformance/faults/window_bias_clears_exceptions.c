/*
 * Exceptions that its caller has raised are no longer raised after a call of many heads.
 *
 * detected by: window_bias/f32/memory/mxcsr
 */
#include "fault.h"

#include <fenv.h>

static enum posenc_status faulty_window_bias(const struct posenc_window_args *args)
{
    const enum posenc_status status = plain_window_bias(args);
    if (args->out.shape[1] >= 8)
        feclearexcept(FE_ALL_EXCEPT);
    return status;
}

FAULT(window_bias);
