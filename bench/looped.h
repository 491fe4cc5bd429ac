/*
 * What a call does beside moving its tensors: which loops of impl/loops do that and nothing else, and
 * how much of it.
 */
#ifndef POSENC_LOOPED_H
#define POSENC_LOOPED_H

#include "conformance/problem/problem.h"
#include "roofs.h"

/* A kind of loop, ROOF_KIND_COUNT where there is nothing of the kind to do; the floats that it would
 * write, or add up, for all of the call; whether it reads others with them, and whether what it makes
 * itself is in f32 before it is stored; whether floats are but room for what is stored as the call stores
 * it, and not numbers; whether it can go over the call's own tensors, since it reads and writes what the
 * call does; and floats of a row, 0 where rows do not matter, and how many rows are written side by side. */
struct looped {
    enum roof_kind kind;
    int64_t floats;
    bool reads, wide, stored, in_tensors;
    int64_t row, at_once;
};

/* What is converted, of `stored` floats of memory; and the bare loop. */
struct looped looped_conversion(const struct call *call, int64_t stored);
struct looped looped_work(const struct call *call);

/* What one thread's loops work on: what they write, and ordinary numbers in f32 and as the call stores
 * them. */
enum { LOOPED_BLOCK = 2 * BARE_STEP };
struct looped_block {
    _Alignas(64) float out[LOOPED_BLOCK], wide[LOOPED_BLOCK], stored[LOOPED_BLOCK];
};
struct looped_block *looped_blocks(const struct call *call, size_t n); /* malloc'ed, or NULL */

void looped_run(const struct roof_variant *loop, const struct looped *looped,
                struct looped_block *block, int64_t blocks);

/* Over n floats of a tensor from dst on, but for what is left of whole blocks; src: others as many, or
 * NULL.  And how many of n floats are written so. */
void looped_run_over(const struct roof_variant *loop, const struct looped *looped,
                     struct looped_block *block, float *dst, const float *src, int64_t n);
int64_t looped_covered(const struct looped *looped, int64_t n);

/* A sample of a loop is so many blocks for each thread, and all of the call `times` as much. */
int64_t looped_sample(const struct looped *looped, int threads, double *times);

#endif
