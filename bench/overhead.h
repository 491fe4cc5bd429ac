/*
 * What a call costs before its kernel begins: of posenc_rope_half() and of a prepared call, above
 * calling the backend's own function, for one token in f32 with heads of 128.
 */
#ifndef POSENC_OVERHEAD_H
#define POSENC_OVERHEAD_H

#include <posenc.h>

enum overhead_way { OVERHEAD_FRONT, OVERHEAD_PREPARED, OVERHEAD_NULL, OVERHEAD_WAYS };

/* Nanoseconds above the backend's function: the median over the rounds of the difference within
 * a round, and its interval of 99 %.  OVERHEAD_NULL is the backend's function once more. */
struct overhead_ns {
    double median, low, high, level;
};

struct overhead {
    const struct posenc_backend *backend;
    enum posenc_kernel kernel;
    int64_t heads, head_dim;
    int rounds;
    double function_ns; /* one call of the backend's function: the median */
    /* How many times longer this core took over some plain loads, compares and stores, in the same
     * rounds, than the one whose limits are 20 and 5 ns (Sapphire Rapids, 2.6 GHz, quiet): a slower
     * core, or one that is shared. */
    double pace;
    struct overhead_ns above[OVERHEAD_WAYS];
};

enum { OVERHEAD_MOST_HEADS = 32, OVERHEAD_ROWS = 3 };
extern const int64_t overhead_heads[OVERHEAD_ROWS];

/* False when nobody serves the kernel, or without memory. */
bool overhead_measure(int64_t heads, struct overhead *overhead);

#endif
