/*
 * Parts of a call: for laws that say that parts give what the
 * whole does.
 */
#ifndef POSENC_CUT_H
#define POSENC_CUT_H

#include "signature.h"

/* The part [from, from + count) of a call along one of the dimensions of its signature's cuts.
 * It has the memory of the whole, which has to outlive it. */
struct call call_cut(const struct call *whole, enum dim dim, int64_t from, int64_t count);

/* How many of a dimension the first output has, 1 where it is without; its number from the last
 * one, -1. */
int64_t call_extent(const struct call *call, enum dim dim);
int call_from_last(const struct call *call, enum dim dim);

#endif
