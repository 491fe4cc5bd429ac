/*
 * Values in plain doubles with a stated error, for formulas whose results are rounded to f32:
 * most are decided by them, the few next to a midpoint of two floats go to double-double.
 * Either way the result is the correctly rounded one, so its bits do not depend on which
 * decided.
 */
#ifndef POSENC_QUICK_H
#define POSENC_QUICK_H

#include <stdbool.h>

#include "dd.h"

/* ln a for normal a > 0, with a relative error below 2^-48 however near 1 a is. */
double posenc_quick_log(struct dd a);

/* 2^x for |x| <= 1000, with a relative error below 2.3 2^-53. */
double posenc_quick_exp2(struct dd x);

/* cos and sin of 2 pi turn, each with a relative error below 2^-48. */
void posenc_quick_cossin(struct turn turn, double *cosine, double *sine);

/* Returns true if all numbers within a relative 2^-40 of a value round to the same float. */
static inline bool posenc_quick_round(double value, float *rounded)
{
    *rounded = (float)(value * (1.0 - 0x1p-40));
    return *rounded == (float)(value * (1.0 + 0x1p-40));
}

#endif
