/* Overhead of the public function and of a prepared call, compared with the backend's own function. */
#ifndef POSENC_BENCH_OVERHEAD_H
#define POSENC_BENCH_OVERHEAD_H

#include "conformance/problem/problem.h"

/* Ways of calling posenc_rope_half() for one token in f32 with heads of 128. */
enum overhead_way {
    OVERHEAD_PUBLIC,   /* the public function */
    OVERHEAD_PREPARED, /* posenc_run() of a prepared call */
    OVERHEAD_CONTROL,  /* the backend's own function again */
    OVERHEAD_WAYS
};

/* Overhead in nanoseconds over a call of the backend's own function: median and 99 % interval of the differences within
 * rounds. */
struct overhead_ns {
    double median, low, high, level;
};

struct overhead {
    const struct posenc_backend *backend;
    enum posenc_kernel kernel;
    int64_t heads, head_dim;
    int rounds;
    double function_ns; /* median of the backend's function */
    struct overhead_ns by_way[OVERHEAD_WAYS];
};

enum { OVERHEAD_MOST_HEADS = 32, OVERHEAD_HEAD_COUNTS = 3 };
extern const int64_t overhead_heads[OVERHEAD_HEAD_COUNTS];

/* Returns false if memory or a backend that runs the kernel is missing. */
bool overhead_measure(int64_t heads, struct overhead *overhead);

#endif
