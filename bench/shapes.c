/*
 * Shapes by footprint: for each kernel a realistic shape, made longer until it fills half of a
 * cache, or memory well beyond the last one.  The shapes themselves stand in
 * conformance/cases/golden.
 *
 * The bytes are those of the type the activations are stored in; learned tables are f32.
 * In-place sums use x_scale 1, see call_make_repeatable() in contender.h.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "conformance/problem/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* ---- Places ---- */

/* What to assume where nothing is told. */
static struct bench_caches assumed_caches(void)
{
    struct bench_caches caches = bench_caches();
    if (caches.l1 == 0)
        caches.l1 = 32 * KIB;
    if (caches.l2 == 0)
        caches.l2 = 512 * KIB;
    return caches;
}

/* Three quarters of a cache at most: tables and stacks live there too. */
const char *bench_footprint(size_t bytes)
{
    struct bench_caches caches = assumed_caches();
    if (bytes <= caches.l1 / 4 * 3)
        return "L1";
    if (bytes <= caches.l2 / 4 * 3)
        return "L2";
    return bytes <= caches.l3 / 4 * 3 ? "L3" : "DRAM";
}

bool bench_in_caches(size_t bytes) { return strcmp(bench_footprint(bytes), "DRAM") != 0; }

/* ---- Footprints ---- */

struct footprint {
    const char *id, *name;
    size_t bytes; /* 0: this CPU has no such place */
};

enum { FOOTPRINTS = 4, PROFILES = 2 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static size_t physical_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 2048 * MIB;
}

static void footprints(struct footprint list[FOOTPRINTS])
{
    struct bench_caches caches = assumed_caches();
    size_t l3 = least(16 * MIB, caches.l3 / 2);
    /* Beyond the last cache, whatever its size; a case holds about five times its
     * working set. */
    size_t dram = 4 * caches.l3 > 256 * MIB ? 4 * caches.l3 : 256 * MIB;
    list[0] = (struct footprint){ "l1", "L1", least(16 * KIB, caches.l1 / 2) };
    list[1] = (struct footprint){ "l2", "L2", least(512 * KIB, caches.l2 / 2) };
    list[2] = (struct footprint){ "l3", "L3", l3 > caches.l2 ? l3 : 0 };
    list[3] = (struct footprint){ "dram", "DRAM", dram <= physical_memory() / 8 ? dram : 0 };
}

/* The places of a tuning, in an array of FOOTPRINTS, and up to how many bytes each counts. */
static size_t tuning_places(struct footprint places[FOOTPRINTS], uint64_t most[FOOTPRINTS])
{
    const struct bench_caches caches = assumed_caches();
    const size_t beyond = least(2 * caches.l3 > 64 * MIB ? 2 * caches.l3 : 64 * MIB, 128 * MIB);
    const size_t holds[] = { caches.l1 / 4 * 3, caches.l2 / 4 * 3, caches.l3 / 4 * 3,
                             SIZE_MAX };
    struct footprint all[FOOTPRINTS];
    size_t n = 0;
    footprints(all);
    all[FOOTPRINTS - 1].bytes =
        beyond > caches.l3 && beyond <= physical_memory() / 8 ? beyond : 0;
    for (size_t i = 0; i < FOOTPRINTS; i++)
        if (all[i].bytes > 0) {
            most[n] = holds[i];
            places[n++] = all[i];
        }
    most[n - 1] = UINT64_MAX;
    return n;
}

static struct problem shape_for(enum posenc_kernel kernel, enum posenc_dtype dtype,
                                enum posenc_profile profile, size_t bytes)
{
    struct problem p = problem_realistic(kernel, dtype, bytes);
    if (kernel_has_plan(kernel))
        p.freqs.profile = profile;
    return p;
}

/* Whether a kernel forms angles: then it is timed for each profile, tables with both. */
static const char *profile_name(enum posenc_kernel kernel, enum posenc_profile profile)
{
    if (!kernel_has_plan(kernel))
        return profile == POSENC_EXACT ? "given" : NULL;
    if (profile == POSENC_EXACT)
        return "exact";
    return strcmp(kernel_stage(kernel), "table") == 0 ? "hf_f32" : NULL;
}

static bool none_set(const bool *set, int n)
{
    for (int i = 0; i < n; i++)
        if (set[i])
            return false;
    return true;
}

/* The shapes of one kernel in one type, from `cases` on; how many there are. */
static size_t kernel_cases(enum posenc_kernel kernel, enum posenc_dtype dtype, bool full,
                           struct bench_case *cases)
{
    static const enum posenc_profile profiles[] = { POSENC_EXACT, POSENC_HF_F32 };
    struct footprint places[FOOTPRINTS];
    footprints(places);
    size_t n = 0;
    for (int f = 0; f < PROFILES; f++)
        for (int i = 0; i < FOOTPRINTS; i++) {
            const char *profile = profile_name(kernel, profiles[f]);
            bool quick = i == 1 || (i == 3 && profiles[f] == POSENC_EXACT);
            if (!profile || places[i].bytes == 0 || (!full && !quick))
                continue;
            struct bench_case *c = &cases[n++];
            snprintf(c->id, sizeof c->id, "%s/%s/%s/%s", posenc_kernel_name(kernel),
                     dtype_names[dtype], profile, places[i].id);
            c->footprint = places[i].name;
            c->problem = shape_for(kernel, dtype, profiles[f], places[i].bytes);
        }
    return n;
}

size_t bench_footprint_cases(const bool kernels[POSENC_KERNEL_COUNT],
                             const bool dtypes[BENCH_DTYPES], bool full,
                             struct bench_case **cases)
{
    bool all = none_set(kernels, POSENC_KERNEL_COUNT), plain = none_set(dtypes, BENCH_DTYPES);
    size_t n = 0;
    *cases = calloc((size_t)POSENC_KERNEL_COUNT * BENCH_DTYPES * PROFILES * FOOTPRINTS,
                    sizeof(**cases));
    for (int k = 0; *cases != NULL && k < POSENC_KERNEL_COUNT; k++)
        for (int d = 0; d < BENCH_DTYPES; d++)
            if ((all || kernels[k]) && (plain ? d == POSENC_F32 : dtypes[d]))
                n +=
                    kernel_cases((enum posenc_kernel)k, (enum posenc_dtype)d, full, *cases + n);
    return n;
}

size_t bench_tuning_cases(const bool kernels[POSENC_KERNEL_COUNT],
                          const bool dtypes[BENCH_DTYPES], struct bench_case **cases)
{
    const bool all = none_set(kernels, POSENC_KERNEL_COUNT),
               each = none_set(dtypes, BENCH_DTYPES);
    struct footprint places[FOOTPRINTS];
    uint64_t most[FOOTPRINTS];
    const size_t n_places = tuning_places(places, most);
    size_t n = 0;
    *cases = calloc((size_t)POSENC_KERNEL_COUNT * BENCH_DTYPES * FOOTPRINTS, sizeof(**cases));
    for (int k = 0; *cases != NULL && k < POSENC_KERNEL_COUNT; k++)
        for (int d = 0; d < BENCH_DTYPES; d++)
            for (size_t i = 0; i < n_places && (all || kernels[k]) && (each || dtypes[d]);
                 i++) {
                const enum posenc_kernel kernel = (enum posenc_kernel)k;
                struct bench_case *c = &(*cases)[n++];
                c->problem = problem_realistic(kernel, (enum posenc_dtype)d, places[i].bytes);
                c->footprint = places[i].name;
                c->most = most[i];
                snprintf(c->id, sizeof c->id, "%s/%s/%s/%s", posenc_kernel_name(kernel),
                         dtype_names[d], profile_name(kernel, POSENC_EXACT), places[i].id);
            }
    return n;
}

double bench_budget(const struct bench_options *options)
{
    return options->budget_s > 0.0 ? options->budget_s : options->full ? 300.0 : 90.0;
}
