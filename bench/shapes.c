/*
 * Makes the cases of bench.h for each level of memory: realistic shapes (conformance/cases/golden) that are made longer
 * until they fill half of a cache, or memory well beyond the last cache. The case rope_half/f32/given/l2, for example, has
 * as many tokens as fill 512 KiB with f32 activations. Bytes are those of the activations' dtype; learned tables are f32.
 */
#include "bench.h"
#include "base/machine/machine.h"
#include "conformance/engine/judge.h"
#include "instructions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* ---- Levels of memory ---- */

/* Returns the caches of the machine, with common sizes for those that are unknown. */
static struct machine_caches assumed_caches(void)
{
    struct machine_caches caches = machine_caches();
    if (caches.l1 == 0)
        caches.l1 = 32 * KIB;
    if (caches.l2 == 0)
        caches.l2 = 512 * KIB;
    return caches;
}

/* Returns the bytes of a cache that a call can use; tables and stack need the rest. */
static size_t usable_bytes(size_t cache) { return cache / 4 * 3; }

const char *bench_level(size_t bytes)
{
    const struct machine_caches caches = assumed_caches();
    if (bytes <= usable_bytes(caches.l1))
        return "L1";
    if (bytes <= usable_bytes(caches.l2))
        return "L2";
    return bytes <= usable_bytes(caches.l3) ? "L3" : "DRAM";
}

enum level { LEVEL_L1, LEVEL_L2, LEVEL_L3, LEVEL_DRAM, LEVELS };

struct level_shape {
    const char *id, *name; /* "l2" in case ids, "L2" */
    size_t bytes;          /* of a case; 0: no such level */
    uint64_t max_bytes;    /* largest call of this level in a tuning */
};

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Lists the levels. A case in DRAM has dram_bytes; 0: no case. */
static void list_levels(struct level_shape list[LEVELS], size_t dram_bytes)
{
    const struct machine_caches caches = assumed_caches();
    const size_t l3 = smaller(16 * MIB, caches.l3 / 2);
    if (dram_bytes > machine_memory_bytes() / 8) /* a case needs five times its working set */
        dram_bytes = 0;
    list[LEVEL_L1] = (struct level_shape){ "l1", "L1", smaller(16 * KIB, caches.l1 / 2),
                                           usable_bytes(caches.l1) };
    list[LEVEL_L2] = (struct level_shape){ "l2", "L2", smaller(512 * KIB, caches.l2 / 2),
                                           usable_bytes(caches.l2) };
    list[LEVEL_L3] =
        (struct level_shape){ "l3", "L3", l3 > caches.l2 ? l3 : 0, usable_bytes(caches.l3) };
    list[LEVEL_DRAM] = (struct level_shape){ "dram", "DRAM", dram_bytes, UINT64_MAX };
}

/* ---- Cases ---- */

enum { MODES = 2 }; /* of numerics, at most */
enum case_set { SET_QUICK, SET_FULL, SET_TUNING };

struct case_list {
    enum case_set set;
    struct level_shape levels[LEVELS];
    size_t n; /* cases so far */
    struct bench_case *cases;
};

static bool has_any(const bool *set, int n)
{
    for (int i = 0; i < n; i++)
        if (set[i])
            return true;
    return false;
}

/* Returns true if the set has cases of a numerics mode in a level. */
static bool has_mode(enum case_set set, enum posenc_numerics numerics, enum level level)
{
    const bool is_exact = numerics == POSENC_NUMERICS_EXACT;
    if (set == SET_TUNING)
        return is_exact;
    return set == SET_FULL || level == LEVEL_L2 || (level == LEVEL_DRAM && is_exact);
}

/* Adds the case of a kernel in a mode and a level, if it is timed there. */
static void add_case(struct case_list *list, enum posenc_kernel kernel, enum posenc_dtype dtype,
                     enum posenc_numerics numerics, enum level level)
{
    const struct level_shape *shape = &list->levels[level];
    if (shape->bytes == 0 || !has_mode(list->set, numerics, level))
        return;
    struct bench_case *c = &list->cases[list->n++];
    c->level = shape->name;
    c->problem = problem_realistic(kernel, dtype, shape->bytes);
    c->max_bytes = list->set == SET_TUNING ? shape->max_bytes : 0;
    if (kernel_has_freqs(kernel))
        c->problem.freqs.numerics = numerics;
    snprintf(c->id, sizeof c->id, "%s/%s/%s/%s", posenc_kernel_name(kernel), dtype_names[dtype],
             problem_numerics_name(&c->problem), shape->id);
}

/* Adds the cases of a kernel: for each numerics mode, those of all levels. */
static void add_cases(struct case_list *list, enum posenc_kernel kernel,
                      enum posenc_dtype dtype)
{
    enum posenc_numerics modes[MODES];
    const size_t n_modes = instructions_numerics(kernel, modes);
    for (size_t i = 0; i < n_modes; i++)
        for (enum level level = LEVEL_L1; level < LEVELS; level++)
            add_case(list, kernel, dtype, modes[i], level);
}

/* Allocates the cases of a set, with dram_bytes in DRAM, for each kernel and dtype that is set. */
static size_t list_cases(enum case_set set, const bool kernels[POSENC_KERNEL_COUNT],
                         const bool dtypes[BENCH_DTYPES], size_t dram_bytes,
                         struct bench_case **cases)
{
    const bool every_kernel = !has_any(kernels, POSENC_KERNEL_COUNT),
               no_dtype = !has_any(dtypes, BENCH_DTYPES);
    const size_t most = (size_t)POSENC_KERNEL_COUNT * BENCH_DTYPES * MODES * LEVELS;
    struct case_list list = { .set = set, .cases = calloc(most, sizeof **cases) };
    enum level last = LEVEL_DRAM;
    list_levels(list.levels, dram_bytes);
    while (last > LEVEL_L1 && list.levels[last].bytes == 0)
        last--;
    list.levels[last].max_bytes = UINT64_MAX;
    for (int kernel = 0; list.cases && kernel < POSENC_KERNEL_COUNT; kernel++)
        for (int dtype = 0; dtype < BENCH_DTYPES; dtype++) {
            const bool is_default = set == SET_TUNING || dtype == POSENC_DTYPE_F32;
            if ((every_kernel || kernels[kernel]) && (no_dtype ? is_default : dtypes[dtype]))
                add_cases(&list, (enum posenc_kernel)kernel, (enum posenc_dtype)dtype);
        }
    *cases = list.cases;
    return list.n;
}

size_t bench_footprint_cases(const bool kernels[POSENC_KERNEL_COUNT],
                             const bool dtypes[BENCH_DTYPES], bool full,
                             struct bench_case **cases)
{
    const size_t four_l3 = 4 * assumed_caches().l3;
    return list_cases(full ? SET_FULL : SET_QUICK, kernels, dtypes,
                      four_l3 > 256 * MIB ? four_l3 : 256 * MIB, cases);
}

size_t bench_tuning_cases(const bool kernels[POSENC_KERNEL_COUNT],
                          const bool dtypes[BENCH_DTYPES], struct bench_case **cases)
{
    const size_t l3 = assumed_caches().l3, two_l3 = 2 * l3 > 64 * MIB ? 2 * l3 : 64 * MIB,
                 dram_bytes = smaller(two_l3, 128 * MIB);
    return list_cases(SET_TUNING, kernels, dtypes, dram_bytes > l3 ? dram_bytes : 0, cases);
}

double bench_time_limit(const struct bench_options *options)
{
    if (options->time_limit_s > 0.0)
        return options->time_limit_s;
    return options->full ? 300.0 : 90.0;
}
