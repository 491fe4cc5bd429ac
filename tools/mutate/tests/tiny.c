/* A made-up kernel, for which test.py lists every mutant: multiplies elements by a factor, and limits them below. */
#include "tiny.h"

enum { FEW = 10, MOST = 1000 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static float limited(float value, const float *floor)
{
    return value < *floor ? *floor : value;
}

void plain_scale(const struct scale_args *args)
{
    int64_t i = 0, n = least(args->n, MOST);

    (void)args;
    for (int64_t k = 0; k < n; k++)
        args->out[k * args->out_step] = 0.0f;
    while (i < n) {
        float value = args->x[i * args->x_step] * args->factor;
        args->out[i * args->out_step] += limited(value, &args->floor);
        i += 1;
    }
}
