/* Arguments of the made-up kernel of tiny.c. test.py lists its mutants. */
#ifndef POSENC_MUTATE_TINY_H
#define POSENC_MUTATE_TINY_H

#include <stdint.h>

struct scale_args {
    const float *x;
    float *out;
    int64_t n, x_step, out_step;
    float factor, floor;
};

void plain_scale(const struct scale_args *args);

#endif
