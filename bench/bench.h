/* The timing harness: cases x backends -> results, with rooflines and an A/A control in the same rounds. */
#ifndef POSENC_BENCH_H
#define POSENC_BENCH_H

#include "conformance/problem/problem.h"

struct bench_case {
    char id[96]; /* kernel/dtype/profile/shape, e.g. rope_half/f32/given/llama-3.1-8b-decode */
    const char *footprint; /* bench_footprint() of its working set: "L1", ... "DRAM" */
    struct problem problem;
    uint64_t most; /* of a tuning: the bytes up to which a call belongs to that level; else 0 */
};

/* Outcomes of a backend on a case; the later the worse. */
enum bench_outcome {
    BENCH_TIMED,
    BENCH_NOT_PROVIDED, /* the backend has no such kernel */
    BENCH_REJECTED,     /* the shape, or the backend on this CPU */
    BENCH_WRONG,        /* it, or the scalar it is compared with, failed its check */
};

enum { TUNING_ROUNDS = 21 }; /* at most */

struct bench_result {
    const struct bench_case *bench_case;
    const struct posenc_backend *backend;
    enum bench_outcome outcome;
    const char
        *reason; /* for having no number; NULL: it was timed; lives during the sink's call */
    int threads, rounds;
    double median_ns, min_ns, ci_level, ci_low, ci_high; /* of one call */
    size_t bytes;                                        /* useful bytes of one call */
    double gbps;
    const char *roofline_kind; /* "store", "in place", "copy", "add" (reads two, writes one) */
    const char
        *roofline_variant; /* "plain", "memcpy", "avx2 prefetch", "avx512 non-temporal" */
    double roofline_gbps, roofline_ratio;
    /* The limit that binds: its resource, "memory" to "calls" (NULL: unknown), the kind of its roofline or loop, or
     * "call", and the variant, or the backend of a call. */
    const char *limit_resource, *limit_kind, *limit_variant;
    double limit_gbps, limit_ratio;
    double vs_libm, vs_autovec; /* speed relative to them, > 1 is faster; 0: unknown */
    double control_pct;         /* distance of a copy of one backend from itself */
    /* For a tuning: posenc_footprint() of the call, and the time of a call in each round. */
    uint64_t footprint;
    double sample_ns[TUNING_ROUNDS];
};
typedef void bench_sink(void *user, const struct bench_result *result);

struct bench_options {
    bool full; /* more rounds, all footprints */
    bool
        tuning; /* find the fastest backend of each case and time nothing beside it (tuning.c) */
    int threads;
    double budget_s; /* adds no more rounds after this; 0: the default of the mode */
    uint64_t seed;
    /* Asked between rounds, with the sink's `user`: true ends the run without the present case. NULL, as each callback
     * may be: nothing is asked. */
    bool (*stop)(void *user);
    /* Is told the backend that is called on a case, and NULL after the calls. */
    void (*watch)(void *user, const struct bench_case *bench_case,
                  const struct posenc_backend *backend);
    /* Returns the reason for which a backend that has the kernel is not to be called, or NULL. */
    const char *(*unfit)(void *user, const struct bench_case *bench_case,
                         const struct posenc_backend *backend);
};

enum { BENCH_DTYPES = POSENC_BF16 + 1 };

/* Makes the footprint cases of the kernels that are set (none: all), in the dtypes that are set (none: f32): L1 16 KiB,
 * L2 512 KiB (less if the cache is smaller), L3 16 MiB, DRAM 256 MiB; not full: L2 and DRAM, profile hf_f32 in L2 only.
 * Returns how many; *cases is malloc'ed. */
size_t bench_footprint_cases(const bool kernels[POSENC_KERNEL_COUNT],
                             const bool dtypes[BENCH_DTYPES], bool full,
                             struct bench_case **cases);
/* Returns the level of memory that holds so many bytes: "L1", "L2", "L3", "DRAM". */
const char *bench_footprint(size_t bytes);
bool bench_in_caches(size_t bytes); /* not "DRAM" */

/* Makes the cases of a tuning: for each kernel and dtype that is set (none: all) one in each level of memory, nearest
 * first. Memory is taken at twice the last cache, 64 to 128 MiB, which is made in a fraction of a second; a larger
 * cache has no such level. Returns how many; *cases is malloc'ed. */
size_t bench_tuning_cases(const bool kernels[POSENC_KERNEL_COUNT],
                          const bool dtypes[BENCH_DTYPES], struct bench_case **cases);

/* Returns the seconds after which a run adds no more rounds: those of the options, or of the mode. */
double bench_budget(const struct bench_options *options);

/* Times all cases. Returns 0, or -1 with a reason in `error` (256 bytes), such as an emulator, under which nothing is
 * timed. */
int bench_run(const struct bench_case *cases, size_t n_cases,
              const struct posenc_backend *const *backends, size_t n_backends,
              const struct bench_options *options, bench_sink *sink, void *user, char *error);

/* ---- The cost of a call (overhead.c) ---- */

/* Ways of calling posenc_rope_half() for one token in f32 with heads of 128. */
enum overhead_way { OVERHEAD_FRONT, OVERHEAD_PREPARED, OVERHEAD_CONTROL, OVERHEAD_WAYS };

/* Nanoseconds above a call of the backend's own function: the median over the rounds of the difference
 * within a round, and its interval of 99 %.  OVERHEAD_CONTROL is that function once more. */
struct overhead_ns {
    double median, low, high, level;
};

struct overhead {
    const struct posenc_backend *backend;
    enum posenc_kernel kernel;
    int64_t heads, head_dim;
    int rounds;
    double function_ns; /* one call of the backend's function: the median */
    /* Time that this core took for some plain loads, compares and stores in the same rounds, over that of the core for
     * which the limits of 20 and 5 ns were set (Sapphire Rapids, 2.6 GHz, quiet). */
    double pace;
    struct overhead_ns above[OVERHEAD_WAYS];
};

enum { OVERHEAD_MOST_HEADS = 32, OVERHEAD_ROWS = 3 };
extern const int64_t overhead_heads[OVERHEAD_ROWS];

/* Returns false without memory or a backend that runs the kernel. */
bool overhead_measure(int64_t heads, struct overhead *overhead);

#endif
