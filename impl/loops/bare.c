/*
 * Loops that do nothing but what a kernel cannot do without: how fast are they?  The limits of
 * docs/performance.md, one program for each instruction set:
 *
 *     ninja -C build impl/bare-avx512 && build/impl/bare-avx512
 *
 * GB/s of what is stored and read there, in tensors that fit in the L1, L2 and L3 cache of most CPUs
 * and in none: the median of ROUNDS times, in each of which all loops take turns.
 */
#define _POSIX_C_SOURCE 200809L
#include "impl/kernels/storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 31, SOURCE = 512 };

/* f64 numbers that stay in the L1 cache: nothing is gained by converting them before the loop. */
static _Alignas(64) double source[SOURCE];

static void store(float *p, int64_t n)
{
    vf value = vf_set1(0.75f);
    for (int64_t i = 0; i < n; i += vf_lanes())
        vf_store(p + i, value);
}

static void round_and_store(float *p, int64_t n)
{
    for (int64_t i = 0; i < n; i += vf_lanes())
        vf_store(p + i, vf_from_vd(vd_load(source + i % SOURCE)));
}

static void negate(float *p, int64_t n)
{
    vf minus = vf_set1(-1.0f);
    for (int64_t i = 0; i < n; i += vf_lanes())
        vf_store(p + i, vf_mul(vf_load(p + i), minus));
}

static void f16_in_place(float *p, int64_t n)
{
    uint16_t *half = (uint16_t *)p;
    for (int64_t i = 0; i < 2 * n; i += vf_lanes())
        vf_store_f16(half + i, vf_load_f16(half + i));
}

static void bf16_in_place(float *p, int64_t n)
{
    uint16_t *half = (uint16_t *)p;
    for (int64_t i = 0; i < 2 * n; i += 2 * vf_lanes()) {
        vf even, odd;
        vf_load_bf16_pairs(half + i, &even, &odd);
        vf_store_bf16_pairs(half + i, even, odd);
    }
}

static const struct {
    const char *name;
    void (*run)(float *, int64_t);
    int passes; /* over the tensor: 2 where it is read and written */
} loops[] = {
    { "store", store, 1 },
    { "f64 -> f32, store", round_and_store, 1 },
    { "f32 in place", negate, 2 },
    { "f16 in place", f16_in_place, 2 },
    { "bf16 in place", bf16_in_place, 2 },
};
enum { LOOPS = sizeof loops / sizeof *loops };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_size(const char *name, float *p, int64_t bytes)
{
    const int64_t calls = bytes < 4 << 20 ? (4 << 20) / bytes : 1;
    double times[LOOPS][ROUNDS];

    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < LOOPS; i++) {
            loops[i].run(p, bytes / 4); /* what a loop finds in the caches is its own */
            const double begin = now_ns();
            for (int64_t k = 0; k < calls; k++)
                loops[i].run(p, bytes / 4);
            times[i][round] = (now_ns() - begin) / (double)calls;
        }
    printf("%-6s", name);
    for (int i = 0; i < LOOPS; i++) {
        qsort(times[i], ROUNDS, sizeof times[i][0], by_size);
        printf("  %17.1f", (double)(bytes * loops[i].passes) / times[i][ROUNDS / 2]);
    }
    puts("");
}

int main(void)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } sizes[] = {
        { "L1", 16 << 10 }, { "L2", 256 << 10 }, { "L3", 8 << 20 }, { "DRAM", 256 << 20 }
    };
    const int64_t most = sizes[3].bytes;
    float *p = aligned_alloc(4096, (size_t)most);

    if (!p)
        return 1;
    for (int64_t i = 0; i < most / 4; i++)
        p[i] = 0x1.7e7e7ep-1f; /* bits 0x3f3f3f3f: numbers of 16 bits, too, none of them 0 */
    for (int i = 0; i < SOURCE; i++)
        source[i] = 0.7 + 0.0001 * i;
    printf("GB/s  ");
    for (int i = 0; i < LOOPS; i++)
        printf("  %17s", loops[i].name);
    puts("");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        print_size(sizes[i].name, p, sizes[i].bytes);
    free(p);
    return 0;
}
