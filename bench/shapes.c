/*
 * Shapes by footprint: for each kernel a realistic shape, made longer until it fills half of a cache, or
 * memory well beyond the last one.  The shapes themselves are in conformance/cases/golden.
 *
 * The bytes are those of the dtype of the activations; learned tables are f32.
 */
#include "bench.h"
#include "conformance/problem/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* ---- Places ---- */

static struct machine_caches assumed_caches(void)
{
    struct machine_caches caches = machine_caches();
    if (caches.l1 == 0)
        caches.l1 = 32 * KIB;
    if (caches.l2 == 0)
        caches.l2 = 512 * KIB;
    return caches;
}

/* Three quarters of a cache at most, for tables and stacks are there, too. */
const char *bench_footprint(size_t bytes)
{
    const struct machine_caches caches = assumed_caches();
    return bytes <= caches.l1 / 4 * 3   ? "L1"
           : bytes <= caches.l2 / 4 * 3 ? "L2"
           : bytes <= caches.l3 / 4 * 3 ? "L3"
                                        : "DRAM";
}

bool bench_in_caches(size_t bytes) { return strcmp(bench_footprint(bytes), "DRAM") != 0; }

struct place {
    const char *id, *name;
    size_t bytes;  /* 0: this CPU has no such place */
    uint64_t most; /* bytes of a call that a tuning takes there */
};

enum { PLACES = 4, PROFILES = 2 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Lists the places, nearest first, with memory taken at `beyond` bytes: more than the last cache. */
static void list_places(struct place list[PLACES], size_t beyond)
{
    const struct machine_caches caches = assumed_caches();
    const size_t l3 = least(16 * MIB, caches.l3 / 2);
    if (beyond > machine_memory_bytes() / 8) /* a case holds about five times its working set */
        beyond = 0;
    list[0] = (struct place){ "l1", "L1", least(16 * KIB, caches.l1 / 2), caches.l1 / 4 * 3 };
    list[1] = (struct place){ "l2", "L2", least(512 * KIB, caches.l2 / 2), caches.l2 / 4 * 3 };
    list[2] = (struct place){ "l3", "L3", l3 > caches.l2 ? l3 : 0, caches.l3 / 4 * 3 };
    list[3] = (struct place){ "dram", "DRAM", beyond, UINT64_MAX };
}

/* ---- Cases ---- */

/* Returns the name of a profile if the kernel is timed with it: those that form angles with exact,
 * tables with both, all others with "given" angles. */
static const char *profile_name_of(enum posenc_kernel kernel, enum posenc_profile profile)
{
    if (!kernel_has_freqs(kernel))
        return profile == POSENC_EXACT ? "given" : NULL;
    if (profile == POSENC_EXACT)
        return "exact";
    return strcmp(kernel_stage(kernel), "table") == 0 ? "hf_f32" : NULL;
}

static struct bench_case case_at(const struct place *place, enum posenc_kernel kernel,
                                 enum posenc_dtype dtype, enum posenc_profile profile)
{
    struct bench_case c = { .footprint = place->name,
                            .problem = problem_realistic(kernel, dtype, place->bytes) };
    if (kernel_has_freqs(kernel))
        c.problem.freqs.profile = profile;
    snprintf(c.id, sizeof c.id, "%s/%s/%s/%s", posenc_kernel_name(kernel), dtype_names[dtype],
             profile_name_of(kernel, profile), place->id);
    return c;
}

static bool none_set(const bool *set, int n)
{
    for (int i = 0; i < n; i++)
        if (set[i])
            return false;
    return true;
}

size_t bench_footprint_cases(const bool kernels[POSENC_KERNEL_COUNT],
                             const bool dtypes[BENCH_DTYPES], bool full,
                             struct bench_case **cases)
{
    static const enum posenc_profile profiles[PROFILES] = { POSENC_EXACT, POSENC_HF_F32 };
    const bool all = none_set(kernels, POSENC_KERNEL_COUNT),
               plain = none_set(dtypes, BENCH_DTYPES);
    const size_t beyond = 4 * assumed_caches().l3, dtype_cases = (size_t)PROFILES * PLACES;
    struct place places[PLACES];
    size_t n = 0;
    list_places(places, beyond > 256 * MIB ? beyond : 256 * MIB);
    *cases = calloc(POSENC_KERNEL_COUNT * BENCH_DTYPES * dtype_cases, sizeof(**cases));
    for (size_t at = 0; *cases && at < POSENC_KERNEL_COUNT * BENCH_DTYPES * dtype_cases; at++) {
        const enum posenc_kernel k = (enum posenc_kernel)(at / dtype_cases / BENCH_DTYPES);
        const enum posenc_dtype d = (enum posenc_dtype)(at / dtype_cases % BENCH_DTYPES);
        const enum posenc_profile profile = profiles[at / PLACES % PROFILES];
        const size_t i = at % PLACES;
        const bool quick = i == 1 || (i == 3 && profile == POSENC_EXACT);
        if ((all || kernels[k]) && (plain ? d == POSENC_F32 : dtypes[d]) &&
            profile_name_of(k, profile) && places[i].bytes > 0 && (full || quick))
            (*cases)[n++] = case_at(&places[i], k, d, profile);
    }
    return n;
}

size_t bench_tuning_cases(const bool kernels[POSENC_KERNEL_COUNT],
                          const bool dtypes[BENCH_DTYPES], struct bench_case **cases)
{
    const bool all = none_set(kernels, POSENC_KERNEL_COUNT),
               each = none_set(dtypes, BENCH_DTYPES);
    const size_t l3 = assumed_caches().l3, twice = 2 * l3 > 64 * MIB ? 2 * l3 : 64 * MIB,
                 beyond = least(twice, 128 * MIB), most = (size_t)BENCH_DTYPES * PLACES;
    struct place places[PLACES];
    size_t n = 0, last = 0;
    list_places(places, beyond > l3 ? beyond : 0);
    for (size_t i = 0; i < PLACES; i++)
        if (places[i].bytes > 0)
            last = i;
    places[last].most = UINT64_MAX;
    *cases = calloc(POSENC_KERNEL_COUNT * most, sizeof(**cases));
    for (size_t at = 0; *cases && at < POSENC_KERNEL_COUNT * most; at++) {
        const enum posenc_kernel k = (enum posenc_kernel)(at / most);
        const enum posenc_dtype d = (enum posenc_dtype)(at / PLACES % BENCH_DTYPES);
        const struct place *place = &places[at % PLACES];
        if ((all || kernels[k]) && (each || dtypes[d]) && place->bytes > 0) {
            (*cases)[n] = case_at(place, k, d, POSENC_EXACT);
            (*cases)[n++].most = place->most;
        }
    }
    return n;
}

double bench_budget(const struct bench_options *options)
{
    return options->budget_s > 0.0 ? options->budget_s : options->full ? 300.0 : 90.0;
}
