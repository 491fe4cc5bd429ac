/*
 * Loops that show what a core does.
 *
 * The chain adds a register to another one.  Adding a constant would not do: newer Intel cores do that
 * where registers are renamed, in no cycle (Fog, The microarchitecture of Intel, AMD and VIA CPUs, Golden
 * Cove).  The 512-bit loop multiplies and adds zeros: a core lowers its frequency for the kind of
 * instruction, not for its numbers (Intel Optimization Reference Manual, 2.6.3).
 */
#define _POSIX_C_SOURCE 200809L
#include "probe.h"
#include "base/clock.h"
#include "base/statistics/stats.h"

#include <math.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const double slice_s = 0.2e-3, sleep_s = 30e-3, watch_s = 30e-3;
enum { SLICES = 150, ADDITIONS = 64, DENORMALS = 2048 };

/* ---- Frequency ---- */

#if defined(__x86_64__)
#define CHAIN ".rept 64\n\tadd %1, %0\n\t.endr"
#elif defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
#define CHAIN ".rept 64\n\tadd %0, %0, %1\n\t.endr"
#endif

#if defined(CHAIN)

static double chain_seconds(long times)
{
    uint64_t sum = 1, step = 3;
    const double begin = clock_now();
    for (long i = 0; i < times; i++)
        __asm__ volatile(CHAIN : "+r"(sum) : "r"(step) : "cc");
    return clock_now() - begin;
}

double probe_ghz(double seconds)
{
    long times = 16;
    double took;
    while ((took = chain_seconds(times)) < 0.5 * seconds) {
        const double more = took > 0.0 ? seconds / took : 16.0;
        times = (long)((double)times * fmin(fmax(more, 2.0), 16.0));
    }
    return 1e-9 * ADDITIONS * (double)times / took;
}

#else

double probe_ghz(double seconds)
{
    (void)seconds;
    return 0.0;
}

#endif

/* Runs 512-bit arithmetic.  Returns false if there are no such instructions. */
static bool run_vectors(double seconds)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx512f"))
        return false;
    for (double end = clock_now() + seconds; clock_now() < end;)
        for (int i = 0; i < 500; i++)
            __asm__ volatile("vpxor %%xmm8, %%xmm8, %%xmm8\n\t"
                             ".irp n, 0, 1, 2, 3, 4, 5, 6, 7\n\t"
                             "vpxor %%xmm\\n, %%xmm\\n, %%xmm\\n\n\t"
                             "vfmadd231pd %%zmm8, %%zmm8, %%zmm\\n\n\t"
                             ".endr\n\t"
                             "vzeroupper" ::
                                 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
                                   "xmm7", "xmm8");
    return true;
#else
    (void)seconds;
    return false;
#endif
}

/* Times the first slices after a sleep, as shares of the median of the last third. */
static void watch_waking(double *first, double *settled_s)
{
    double ghz[SLICES], at[SLICES];
    nanosleep(&(struct timespec){ 0, (long)(1e9 * sleep_s) }, NULL);
    double begin = clock_now();
    size_t n = 0;
    for (; n < SLICES && clock_now() - begin < watch_s; n++) {
        ghz[n] = probe_ghz(slice_s);
        at[n] = clock_now() - begin;
    }
    double settled = stats_median(ghz + 2 * n / 3, n - 2 * n / 3);
    *first = ghz[0] / settled;
    *settled_s = 0.0;
    for (size_t i = 0; i + 1 < n && ghz[i] < 0.98 * settled; i++)
        *settled_s = at[i];
}

struct probe_speed probe_speed(int times)
{
    enum { MOST = 16 };
    struct probe_speed speed = { 0.0, 0.0, 0.0 };
    double first[MOST], settled[MOST], vectors[MOST];
    size_t n = (size_t)(times < MOST ? times : MOST);
    if (probe_ghz(slice_s) <= 0.0)
        return speed;
    for (size_t i = 0; i < n; i++) {
        watch_waking(&first[i], &settled[i]);
        double before = probe_ghz(slice_s);
        vectors[i] = run_vectors(2e-3) ? probe_ghz(slice_s) / before : (double)NAN;
    }
    speed.after_sleep = stats_median(first, n);
    speed.settled_s = stats_median(settled, n);
    speed.after_vectors = isnan(vectors[0]) ? 0.0 : stats_median(vectors, n);
    return speed;
}

/* ---- Clock ---- */

struct probe_clock probe_clock(void)
{
    enum { BATCHES = 201, READINGS = 100 };
    struct probe_clock clock = { 1e9, 0.0, false };
    double batch[BATCHES], last = clock_now();
    for (int i = 0; i < BATCHES; i++) {
        const double begin = last;
        for (int k = 0; k < READINGS; k++) {
            double now = clock_now();
            clock.backwards |= now < last;
            if (now > last)
                clock.step_ns = fmin(clock.step_ns, 1e9 * (now - last));
            last = now;
        }
        batch[i] = 1e9 * (last - begin) / READINGS;
    }
    clock.reading_ns = stats_median(batch, BATCHES); /* some batches are interrupted */
    return clock;
}

void probe_gaps(double seconds, struct probe_gaps *gaps)
{
    static const double least[GAP_KINDS] = { 1e-6, 10e-6, 100e-6, 1e-3 };
    double begin = clock_now(), last = begin;
    while (last - begin < seconds) {
        double now = clock_now(), gap = now - last;
        last = now;
        if (gap <= least[0])
            continue;
        int kind = GAP_KINDS - 1;
        while (gap <= least[kind])
            kind--;
        gaps->count[kind]++;
        gaps->lost_s += gap;
        gaps->longest_s = fmax(gaps->longest_s, gap);
    }
    gaps->seconds += last - begin;
}

/* ---- Denormals ---- */

/* Times multiplications.  Results are written, so that they are not left out; the factor is volatile, so
 * that they are not done at compile time. */
static double multiply_seconds(float factor, float *numbers)
{
    for (int i = 0; i < DENORMALS; i++)
        numbers[i] = 0x1p-100f;
    volatile float f = factor;
    double begin = clock_now();
    for (int i = 0; i < DENORMALS; i++)
        numbers[i] *= f;
    __asm__ volatile("" : : "r"(numbers) : "memory");
    return clock_now() - begin;
}

/* Reads the register that decides whether denormals are replaced by zero: FTZ and DAZ, or FZ. */
static void read_flushing(struct probe_denormals *d)
{
#if defined(__x86_64__)
    d->told = true;
    d->flushed = (_mm_getcsr() & 0x8040) != 0;
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    d->told = true;
    d->flushed = (fpcr >> 24 & 1) != 0;
#else
    (void)d;
#endif
}

struct probe_denormals probe_denormals(void)
{
    enum { TIMES = 41 };
    static float numbers[DENORMALS];
    struct probe_denormals d = { false, false, 0.0 };
    double normal[TIMES], denormal[TIMES];
    read_flushing(&d);
    for (int i = 0; i < TIMES; i++) {
        normal[i] = multiply_seconds(0x1p-20f, numbers);
        denormal[i] = multiply_seconds(0x1p-40f, numbers);
    }
    d.times = stats_median(denormal, TIMES) / stats_median(normal, TIMES);
    return d;
}
