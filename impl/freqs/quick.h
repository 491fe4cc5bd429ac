/*
 * Quick phase of correct rounding to f32: functions in doubles with a known error. posenc_quick_round() accepts a value
 * if its error cannot change the rounding. The few others, which are close to a midpoint of two floats, are computed
 * again in double-double (Ziv's strategy). Both phases give the same bits.
 */
#ifndef POSENC_QUICK_H
#define POSENC_QUICK_H

#include <stdbool.h>

#include "dd.h"

/* Returns ln a for a normal a > 0. The relative error is below 2^-48, even close to 1. */
double posenc_quick_log(struct dd a);

/* Returns 2^x for |x| <= 1000. The relative error is below 2.3 2^-53. */
double posenc_quick_exp2(struct dd x);

/* Computes cos and sin of 2 pi turn. The relative error of each is below 2^-48. */
void posenc_quick_cossin(struct turn turn, double *cosine, double *sine);

/* Returns true if all numbers within a relative 2^-40 of a value round to the same float. */
static inline bool posenc_quick_round(double value, float *rounded)
{
    *rounded = (float)(value * (1.0 - 0x1p-40));
    return *rounded == (float)(value * (1.0 + 0x1p-40));
}

#endif
