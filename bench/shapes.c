/*
 * Makes cases for each level of the memory hierarchy: realistic shapes (conformance/cases/golden) that are made longer
 * until they fill half of a cache, or memory well beyond the last cache. Bytes are those of the activations' dtype;
 * learned tables are f32.
 */
#include "bench.h"
#include "base/machine/machine.h"
#include "conformance/problem/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* ---- Levels of memory ---- */

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

bool bench_in_caches(size_t bytes) { return strcmp(bench_level(bytes), "DRAM") != 0; }

enum level { LEVEL_L1, LEVEL_L2, LEVEL_L3, LEVEL_DRAM, LEVELS };

struct level_shape {
    const char *id, *name;
    size_t bytes;       /* of a case; 0: no such level */
    uint64_t max_bytes; /* largest call of this level in a tuning */
};

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Lists the levels; DRAM has `beyond` bytes. */
static void list_levels(struct level_shape list[LEVELS], size_t beyond)
{
    const struct machine_caches caches = assumed_caches();
    const size_t l3 = smaller(16 * MIB, caches.l3 / 2);
    if (beyond > machine_memory_bytes() / 8) /* a case needs about five times its working set */
        beyond = 0;
    list[LEVEL_L1] = (struct level_shape){ "l1", "L1", smaller(16 * KIB, caches.l1 / 2),
                                           usable_bytes(caches.l1) };
    list[LEVEL_L2] = (struct level_shape){ "l2", "L2", smaller(512 * KIB, caches.l2 / 2),
                                           usable_bytes(caches.l2) };
    list[LEVEL_L3] =
        (struct level_shape){ "l3", "L3", l3 > caches.l2 ? l3 : 0, usable_bytes(caches.l3) };
    list[LEVEL_DRAM] = (struct level_shape){ "dram", "DRAM", beyond, UINT64_MAX };
}

/* ---- Cases ---- */

/* Cases so far, and the levels. */
struct case_list {
    struct level_shape levels[LEVELS];
    size_t n;
    struct bench_case *cases;
};

static bool has_any(const bool *set, int n)
{
    for (int i = 0; i < n; i++)
        if (set[i])
            return true;
    return false;
}

/* Returns the name of a numerics mode if the kernel is timed in it, else NULL: tables in exact and hf_f32, other
 * kernels with frequencies in exact, kernels without frequencies once ("given"). */
static const char *timed_numerics_name(enum posenc_kernel kernel, enum posenc_numerics numerics)
{
    if (!kernel_has_freqs(kernel))
        return numerics == POSENC_NUMERICS_EXACT ? "given" : NULL;
    if (numerics == POSENC_NUMERICS_EXACT)
        return "exact";
    return strcmp(kernel_stage(kernel), "table") == 0 ? "hf_f32" : NULL;
}

/* Adds the case of a kernel in a level if it is timed. */
static struct bench_case *add_case(struct case_list *case_list, enum posenc_kernel kernel,
                                   enum posenc_dtype dtype, enum posenc_numerics numerics,
                                   enum level level)
{
    const struct level_shape *shape = &case_list->levels[level];
    const char *name = timed_numerics_name(kernel, numerics);
    if (!name || shape->bytes == 0)
        return NULL;
    struct bench_case *c = &case_list->cases[case_list->n++];
    c->level = shape->name;
    c->problem = problem_realistic(kernel, dtype, shape->bytes);
    if (kernel_has_freqs(kernel))
        c->problem.freqs.numerics = numerics;
    snprintf(c->id, sizeof c->id, "%s/%s/%s/%s", posenc_kernel_name(kernel), dtype_names[dtype],
             name, shape->id);
    return c;
}

enum case_set { SET_QUICK, SET_FULL, SET_TUNING };

/* Lists the cases of a set, with `beyond` bytes in DRAM, for each kernel and dtype that is set. */
static size_t list_cases(enum case_set set, const bool kernels[POSENC_KERNEL_COUNT],
                         const bool dtypes[BENCH_DTYPES], size_t beyond,
                         struct bench_case **cases)
{
    enum { MODES = 2 };
    static const enum posenc_numerics modes[MODES] = { POSENC_NUMERICS_EXACT,
                                                       POSENC_NUMERICS_HF_F32 };
    const bool every_kernel = !has_any(kernels, POSENC_KERNEL_COUNT),
               no_dtype = !has_any(dtypes, BENCH_DTYPES);
    const size_t most = (size_t)POSENC_KERNEL_COUNT * BENCH_DTYPES * MODES * LEVELS;
    struct case_list list = { .cases = calloc(most, sizeof **cases) };
    enum level last = LEVEL_DRAM;
    list_levels(list.levels, beyond);
    while (last > LEVEL_L1 && list.levels[last].bytes == 0)
        last--;
    list.levels[last].max_bytes = UINT64_MAX;
    for (size_t at = 0; list.cases && at < most; at++) {
        const enum level level = (enum level)(at % LEVELS);
        const enum posenc_numerics numerics = modes[at / LEVELS % MODES];
        const size_t d = at / LEVELS / MODES % BENCH_DTYPES,
                     k = at / LEVELS / MODES / BENCH_DTYPES;
        const bool exact = numerics == POSENC_NUMERICS_EXACT,
                   usual = set == SET_TUNING || d == POSENC_DTYPE_F32,
                   in_set = set == SET_TUNING ? exact
                                              : set == SET_FULL || level == LEVEL_L2 ||
                                                    (level == LEVEL_DRAM && exact);
        if (!(every_kernel || kernels[k]) || !(no_dtype ? usual : dtypes[d]) || !in_set)
            continue;
        struct bench_case *c =
            add_case(&list, (enum posenc_kernel)k, (enum posenc_dtype)d, numerics, level);
        if (c && set == SET_TUNING)
            c->max_bytes = list.levels[level].max_bytes;
    }
    *cases = list.cases;
    return list.n;
}

size_t bench_footprint_cases(const bool kernels[POSENC_KERNEL_COUNT],
                             const bool dtypes[BENCH_DTYPES], bool full,
                             struct bench_case **cases)
{
    const size_t beyond = 4 * assumed_caches().l3;
    return list_cases(full ? SET_FULL : SET_QUICK, kernels, dtypes,
                      beyond > 256 * MIB ? beyond : 256 * MIB, cases);
}

size_t bench_tuning_cases(const bool kernels[POSENC_KERNEL_COUNT],
                          const bool dtypes[BENCH_DTYPES], struct bench_case **cases)
{
    const size_t l3 = assumed_caches().l3, twice = 2 * l3 > 64 * MIB ? 2 * l3 : 64 * MIB,
                 beyond = smaller(twice, 128 * MIB);
    return list_cases(SET_TUNING, kernels, dtypes, beyond > l3 ? beyond : 0, cases);
}

double bench_time_limit(const struct bench_options *options)
{
    if (options->time_limit_s > 0.0)
        return options->time_limit_s;
    return options->full ? 300.0 : 90.0;
}
