/*
 * Arithmetic of the f32 profiles by MPFR: single steps, each rounded once.
 */
#ifndef POSENC_GOLDEN_FRAMEWORKS_H
#define POSENC_GOLDEN_FRAMEWORKS_H

#include "golden.h"

typedef int operation(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);
typedef int function(mpfr_t, const mpfr_t, mpfr_rnd_t);

static const double pi_f64 = 3.141592653589793;

/* To f32; one operation in f32, or in the f64 of Python's own numbers; one function in f32. */
double f32(double a);
double step(operation *op, double a, double b);
double python(operation *op, double a, double b);
double step_of(function *f, double a);

#endif
