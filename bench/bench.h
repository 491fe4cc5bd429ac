/* Timing harness of posenc bench and posenc tune: times backends on cases, with rooflines and an A/A control in the same
 * rounds. For each backend of each case a sink gets a result, for example: rope_half/f32/given/l2 on avx2 takes 21000 ns,
 * 50 GB/s, 0.93 of its roofline. */
#ifndef POSENC_BENCH_H
#define POSENC_BENCH_H

#include "conformance/problem/problem.h"

struct bench_case {
    char id[96]; /* kernel/dtype/numerics/shape, e.g. rope_half/f32/given/llama-3.1-8b-decode */
    const char
        *level; /* of memory, bench_level() of its working set: "L1", "L2", "L3", "DRAM" */
    struct problem problem;
    uint64_t max_bytes; /* tuning: largest footprint of its level; else 0 */
};

/* Outcomes of a backend on a case, in rising severity. */
enum bench_outcome {
    BENCH_TIMED,
    BENCH_NOT_PROVIDED, /* the backend lacks the kernel */
    BENCH_REJECTED,     /* shape rejected, or backend unavailable */
    BENCH_WRONG,        /* its output, or that of scalar, is wrong */
};

enum { MOST_TUNING_ROUNDS = 21 };

/* Result of a backend on a case. Ratios are speedups, at most 1 for a lower bound that holds. */
struct bench_result {
    const struct bench_case *bench_case;
    const struct posenc_backend *backend;
    enum bench_outcome outcome;
    const char *reason; /* why it was not timed, valid during the sink's call; NULL: timed */
    int threads, rounds;
    double median_ns, min_ns, ci_level, ci_low, ci_high; /* of one call */
    size_t bytes;                                        /* read and written by one call */
    double gbps;
    const char *roofline_kind; /* "store", "in place", "copy", "add" (reads two, writes one) */
    const char *roofline_variant; /* "plain", "memcpy", "avx2 prefetch", ... */
    double roofline_gbps, roofline_ratio;
    /* Limit that binds the call. */
    const char *limit_resource; /* resource_name(), or NULL if unknown */
    const char *limit_kind;     /* of the roofline or loop that shows it, or "call" */
    const char *limit_variant;  /* of that roofline or loop, or the backend of that call */
    double limit_gbps, limit_ratio;
    double vs_libm, vs_autovec; /* speedup over the fastest backend of that kind; 0: unknown */
    double control_pct;         /* A/A control: difference of a backend from itself, per cent */
    /* Tuning: posenc_footprint() of the call, and the time of a call in each round. */
    uint64_t footprint;
    double sample_ns[MOST_TUNING_ROUNDS];
};
typedef void bench_sink(void *user, const struct bench_result *result);

struct bench_options {
    bool full;           /* more rounds, all levels of memory */
    bool tuning;         /* only find the fastest backend of each case (tuning.c) */
    int threads;         /* below 2: one */
    double time_limit_s; /* of the whole run; 0: 300 if `full`, otherwise 90 */
    uint64_t seed;
    /* Callbacks; each may be NULL and gets the sink's `user`. stop() is called between rounds; true ends the run
     * without the current case. */
    bool (*stop)(void *user);
    /* Called before a backend is called on a case, and with NULL after the calls. */
    void (*on_call)(void *user, const struct bench_case *bench_case,
                    const struct posenc_backend *backend);
    /* Returns a reason not to call a backend, or NULL. */
    const char *(*find_exclusion)(void *user, const struct bench_case *bench_case,
                                  const struct posenc_backend *backend);
};

enum { BENCH_DTYPES = POSENC_DTYPE_BF16 + 1 };

/* Allocates the cases of a benchmark: each kernel and dtype that is set, at each level of memory. If no kernel is set,
 * all are; if no dtype is, f32. A case has L1 16 KiB, L2 512 KiB, L3 16 MiB, less in a smaller cache, and DRAM four
 * times the last cache, at least 256 MiB. A level that the machine lacks, or has too little memory for, has
 * no case. If not `full`: L2 and DRAM, and mode hf_f32 in L2 only. Returns the number of cases; without memory, 0 and
 * *cases NULL. */
size_t bench_footprint_cases(const bool kernels[POSENC_KERNEL_COUNT],
                             const bool dtypes[BENCH_DTYPES], bool full,
                             struct bench_case **cases);
/* Returns the level of memory that holds so many bytes: "L1", "L2", "L3" or "DRAM". */
const char *bench_level(size_t bytes);

/* Allocates the cases of a tuning: for each kernel and dtype that is set (none: all), one in each level of memory,
 * nearest first. DRAM is twice the last cache, 64 to 128 MiB, which keeps the setup short. A machine whose last cache
 * has 128 MiB or more has no DRAM case. Returns the number of cases; without memory, 0 and *cases NULL. */
size_t bench_tuning_cases(const bool kernels[POSENC_KERNEL_COUNT],
                          const bool dtypes[BENCH_DTYPES], struct bench_case **cases);

/* Returns the time limit of a run in seconds. */
double bench_time_limit(const struct bench_options *options);

/* Times all cases. Returns 0, or -1 with a reason in `error` (256 bytes): no memory, or an emulated CPU. */
int bench_run(const struct bench_case *cases, size_t n_cases,
              const struct posenc_backend *const *backends, size_t n_backends,
              const struct bench_options *options, bench_sink *sink, void *user, char *error);

#endif
