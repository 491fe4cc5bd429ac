/*
 * A scale above 1 is a division by its inverse, of which only powers of two are exact.
 *
 * detected by: distance_bias_add/f32/memory/values
 * detected by: distance_bias_add/f32/random*
 */
#include "fault.h"

static enum posenc_status faulty_distance_bias_add(const struct posenc_distance_args *args)
{
    const struct posenc_tensor *out = &args->out;
    if (!(args->x_scale > 1.0f && args->x_scale < 1000.0f) || args->x.data == out->data)
        return plain_distance_bias_add(args);
    struct posenc_distance_args changed = *args;
    const float inverse = 1.0f / args->x_scale;
    changed.x_scale = 1.0f / inverse;
    if (changed.x_scale == args->x_scale)
        changed.x_scale = nextafterf(args->x_scale, 0.0f);
    return plain_distance_bias_add(frexpf(args->x_scale, &(int){ 0 }) == 0.5f ? args
                                                                              : &changed);
}

FAULT(distance_bias_add);
