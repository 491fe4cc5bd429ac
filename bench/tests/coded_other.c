/*
 * The other file of the library of coded.c, which may be linked before it or behind it; and
 * functions and data that nobody needs and that push others elsewhere.
 */
#include "coded.h"

long coded_other(long x) { return x > 4000000 ? x - 4000000 : x; }

#ifdef CODED_PUSHED
extern const double coded_pushed[5];
const double coded_pushed[5] = { 3.25, 1.75, 0.2, 0.3, 9.5 };
double coded_pushing(const double *x);
double coded_pushing(const double *x) { return x[0] * 3.25 + coded_pushed[1] / 0.7; }
const char *coded_pushing_text(int i);
const char *coded_pushing_text(int i) { return i ? "some words that come first" : "others"; }
#endif
