/*
 * Which backend is the fastest for each kernel, type and place in memory: what posenc tune writes.
 */
#ifndef POSENC_TUNE_H
#define POSENC_TUNE_H

#include "bench.h"

/* One kernel stored as one type, with tensors in one level of memory. */
struct tune_place {
    enum posenc_kernel kernel;
    enum posenc_dtype dtype;
    const char *name;   /* "L1", ... "DRAM" */
    uint64_t footprint; /* posenc_footprint() of the call that was timed */
    uint64_t most;      /* up to which this place counts; UINT64_MAX: the last */
};

/* What was found of a backend there. */
struct tune_row {
    const struct posenc_backend *backend;
    double ns;               /* median of a call; 0: it was too slow to be timed in rounds */
    double ratio, low, high; /* times as long as the chosen one; its interval over rounds */
};

enum { TUNE_ROWS = 16 };

struct tune_result {
    const struct tune_place *place;
    size_t n, chosen; /* rows; n 0: nobody could be timed, and `refused` says why */
    struct tune_row rows[TUNE_ROWS]; /* fastest first */
    bool tie; /* the chosen one is not the fastest, but as good as it, and narrower */
    const char *refused;
    const struct posenc_backend
        *wrong; /* one whose output failed its check, and why; or NULL */
    const char *why;
};
typedef void tune_sink(void *user, const struct tune_result *result);

struct tune_options {
    const bool *kernels; /* [POSENC_KERNEL_COUNT]; none set: all */
    const bool *dtypes;  /* [BENCH_DTYPES]; none set: all */
    double budget_s;     /* what it may take; 0: 50 */
    uint64_t seed;
    bool (*stop)(void *user);
    void (*watch)(void *user, const struct tune_place *place, size_t done, size_t all);
};

/* Built-in backends that run here, on one thread.  Before a backend is timed its output in the
 * smallest two places is checked as bench does.  Of those within 2 % of the fastest, or not known to be slower, the narrowest
 * is chosen: templates before plain loops, fewer lanes before more.  0, or -1 with a reason in `error`
 * (256 bytes): no memory, or nothing is timed here. */
int tune_run(const struct tune_options *options, tune_sink *sink, void *user, char *error);

#endif
