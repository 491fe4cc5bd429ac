/*
 * One call cut into several that together do the same: what each thread of a team works on.
 */
#ifndef POSENC_SLICE_H
#define POSENC_SLICE_H

#include "bench.h"

/* Share `member` of `n` of a call, as posenc_split() has it: no two write one cache line where
 * that can be.  Shares the memory of the call; must not be destroyed.  False when nothing is left
 * for it. */
bool call_slice(const struct call *call, int member, int n, struct call *slice);

/* The share of [0, total): begin and end, both multiples of `grain` but the last end. */
void share_of(int64_t total, int64_t grain, int member, int n, int64_t *begin, int64_t *end);

#endif
