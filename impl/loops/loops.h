/*
 * The loops of loops.def as functions, and what they work on.
 */
#ifndef POSENC_LOOPS_H
#define POSENC_LOOPS_H

#include "impl/internal.h"

/* Elements of what the rows of a group turn, struct anchors of kernels/groups.h. */
enum { LOOP_ANCHORS = 1280 };

/* Numbers are members, not constants: nothing may be folded that a kernel does not know either. */
struct loop {
    const struct posenc_freqs *freqs;
    const double *anchors; /* LOOP_ANCHORS of them */
    const float *x, *table;
    float *out, *sines;
    float scale;
    int64_t turns, vectors; /* vectors: all that are stored */
    int64_t stride;         /* between rows or heads */
    int64_t query;          /* past the last key: no turn is all -infinity */
};

#define LOOP_NAME(kernel, profile, variant) loop_##kernel##__##profile##__##variant
#define LOOP(kernel, profile, variant, vectors)                                                \
    void LOOP_NAME(kernel, profile, variant)(const struct loop *);
#include "loops.def"

#endif
