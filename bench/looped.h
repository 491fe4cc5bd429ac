/*
 * The work of a call beside moving its tensors: which loops of bench/loops do that and nothing else, and
 * how much of it.
 */
#ifndef POSENC_LOOPED_H
#define POSENC_LOOPED_H

#include "conformance/problem/problem.h"
#include "rooflines.h"

struct looped {
    enum roofline_kind kind; /* ROOFLINE_KIND_COUNT: nothing of the kind is to be done */
    int64_t floats;          /* that it would write, or add up, for all of the call */
    bool reads;              /* reads as many others */
    bool wide;               /* what it makes itself is in f32 before it is stored */
    bool stored;     /* floats are room for what is stored as the call stores it, no numbers */
    bool in_tensors; /* can go over the call's own tensors, which are read and written alike */
    int64_t row;     /* floats of a row; 0: rows do not matter */
    int64_t at_once; /* rows that are written side by side */
};

/* Returns what is converted, of `stored` floats of memory, and the work of the kernel. */
struct looped looped_conversion(const struct call *call, int64_t stored);
struct looped looped_work(const struct call *call);

/* Memory of one thread's loops: output, and ordinary numbers in f32 and as the call stores them. */
enum { LOOPED_BLOCK = 2 * BOUND_STEP };
struct looped_block {
    _Alignas(64) float out[LOOPED_BLOCK], wide[LOOPED_BLOCK], stored[LOOPED_BLOCK];
};
struct looped_block *looped_blocks(const struct call *call, size_t n); /* malloc'ed, or NULL */

/* Runs a loop over its block, so many times. */
void looped_run(const struct roofline_variant *loop, const struct looped *looped,
                struct looped_block *block, int64_t blocks);

/* Runs a loop over n floats of a tensor from dst on, except for what is left of whole blocks.  src: as
 * many others, or NULL. */
void looped_run_over(const struct roofline_variant *loop, const struct looped *looped,
                     struct looped_block *block, float *dst, const float *src, int64_t n);
/* Returns how many of n floats are written so. */
int64_t looped_covered(const struct looped *looped, int64_t n);

/* Returns the blocks of a sample for each thread; all of the call is `times` as much. */
int64_t looped_sample(const struct looped *looped, int threads, double *times);

#endif
