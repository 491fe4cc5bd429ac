/*
 * Tools of the probe (see probe.h): CPU affinity, the kernel that is timed, and measurements of one core: frequency,
 * clock, interruptions and denormals.
 *
 * The frequency is measured by a chain of additions, each of one cycle. The chain adds a register to another: newer
 * Intel cores add a constant during register renaming, in no cycle (Fog, The microarchitecture of Intel, AMD and VIA
 * CPUs, Golden Cove). The 512-bit loop multiplies and adds zeros, since the instruction and not its operands lowers the
 * frequency (Intel Optimization Reference Manual, 2.6.3).
 */
#define _GNU_SOURCE
#include "probe.h"
#include "base/clock.h"
#include "base/records.h"
#include "base/statistics/stats.h"

#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- CPUs ---- */

#if defined(__linux__)

static cpu_set_t allowed_cpus;

bool probe_pin_thread(pthread_t thread, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return false;
    CPU_SET((size_t)cpu, &set);
    return pthread_setaffinity_np(thread, sizeof set, &set) == 0;
}

void probe_save_affinity(void)
{
    if (pthread_getaffinity_np(pthread_self(), sizeof allowed_cpus, &allowed_cpus) != 0)
        CPU_ZERO(&allowed_cpus);
}

void probe_restore_affinity(void)
{
    if (CPU_COUNT(&allowed_cpus) > 0)
        pthread_setaffinity_np(pthread_self(), sizeof allowed_cpus, &allowed_cpus);
}

#else

bool probe_pin_thread(pthread_t thread, int cpu)
{
    (void)thread, (void)cpu;
    return false;
}
void probe_save_affinity(void) {}
void probe_restore_affinity(void) {}

#endif

/* ---- The kernel that is timed ---- */

/* Requests pages of a kind. Returns false if the system does not offer the choice. */
static bool choose_pages(void *begin, size_t bytes, enum page_kind pages)
{
#if defined(MADV_HUGEPAGE) && defined(MADV_NOHUGEPAGE)
    return pages == PAGES_OF_SYSTEM ||
           madvise(begin, bytes, pages == PAGES_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0;
#else
    (void)begin, (void)bytes;
    return pages == PAGES_OF_SYSTEM;
#endif
}

void probe_rotation_call(const struct probe_rotation *r)
{
    const enum posenc_status status = posenc_rope_half(NULL, &r->args, NULL);
    (void)status; /* probe_rotation_create() checked it */
}

double probe_rotation_time(const struct probe_rotation *r)
{
    const double begin = clock_now();
    for (int64_t i = 0; i < r->calls; i++)
        probe_rotation_call(r);
    return (clock_now() - begin) / (double)r->calls;
}

/* Sets the number of calls in a sample, so that it takes long enough for the clock. */
static void calibrate(struct probe_rotation *r)
{
    const double least_s = clock_least_sample();
    double call_s = probe_rotation_time(r);
    while (call_s * (double)r->calls < least_s) {
        r->calls *= 2;
        call_s = probe_rotation_time(r);
    }
    r->calls = (int64_t)fmax(ceil(least_s / call_s), 1.0);
}

void probe_rotation_destroy(struct probe_rotation *r)
{
    if (r->mapped)
        munmap(r->mapped, r->mapped_bytes);
    *r = (struct probe_rotation){ .calls = 0 };
}

/* The mapping has the cosines, the sines, and the data from the next page on, at another offset in its page, so that
 * loads of the tables wait for no store to the data (4 KiB aliasing). */
bool probe_rotation_create(struct probe_rotation *r, size_t bytes, enum page_kind pages)
{
    enum { HEADS = 32, DIM = 128, PAGE = 4096, OFFSET_IN_PAGE = 39 * 64 };
    static const size_t HUGE_PAGE = (size_t)2 << 20;
    const int64_t tokens = (int64_t)(bytes / (HEADS * DIM * sizeof(float)));
    const size_t angles = (size_t)tokens * (DIM / 2), table_bytes = 2 * angles * sizeof(float),
                 data_at = (table_bytes + PAGE - 1) / PAGE * PAGE + OFFSET_IN_PAGE;
    *r = (struct probe_rotation){ .args = posenc_rope_args_init(), .calls = 1 };
    r->mapped_bytes = data_at + bytes + HUGE_PAGE;
    r->mapped =
        mmap(NULL, r->mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r->mapped == MAP_FAILED) {
        r->mapped = NULL;
        return false;
    }
    char *begin =
        (char *)r->mapped + (HUGE_PAGE - (uintptr_t)r->mapped % HUGE_PAGE) % HUGE_PAGE;
    float *cosines = (float *)begin, *sines = cosines + angles;
    const bool has_pages = tokens > 0 && choose_pages(begin, data_at + bytes, pages);
    for (size_t i = 0; has_pages && i < angles; i++) {
        cosines[i] = 1.0f;
        sines[i] = 0.0f;
    }
    if (has_pages)
        memset(begin + data_at, 0x3f, bytes);
    r->args.out =
        posenc_tensor_3d(POSENC_DTYPE_F32, (float *)(begin + data_at), tokens, HEADS, DIM);
    r->args.x = posenc_const_view(r->args.out);
    r->args.cos = posenc_const_tensor_2d(POSENC_DTYPE_F32, cosines, tokens, DIM / 2);
    r->args.sin = posenc_const_tensor_2d(POSENC_DTYPE_F32, sines, tokens, DIM / 2);
    if (!has_pages || posenc_rope_half(NULL, &r->args, NULL) != POSENC_OK) {
        probe_rotation_destroy(r);
        return false;
    }
    calibrate(r);
    return true;
}

/* ---- Frequency ---- */

#if defined(__x86_64__)
#define CHAIN ".rept 64\n\tadd %1, %0\n\t.endr"
#elif defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64)
#define CHAIN ".rept 64\n\tadd %0, %0, %1\n\t.endr"
#else
#define CHAIN ""
#endif

double probe_ghz(double seconds)
{
    enum { ADDITIONS = 64 }; /* of CHAIN */
    uint64_t sum = 1, step = 3;
    long times = 16;
    if (sizeof CHAIN == 1) /* unknown instruction set */
        return 0.0;
    for (;;) {
        const double begin = clock_now();
        for (long i = 0; i < times; i++)
            __asm__ volatile(CHAIN : "+r"(sum) : "r"(step) : "cc");
        const double spent_s = clock_now() - begin;
        if (spent_s >= 0.5 * seconds)
            return 1e-9 * ADDITIONS * (double)times / spent_s;
        const double factor = spent_s > 0.0 ? seconds / spent_s : 16.0;
        times = (long)((double)times * fmin(fmax(factor, 2.0), 16.0));
    }
}

/* Runs 512-bit arithmetic. Returns false if the CPU has no AVX-512. */
static bool run_512_bit_arithmetic(double seconds)
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

static const double SLICE_S = 0.2e-3; /* of one measurement of the frequency */

/* Measures the frequency in slices after a sleep of 30 ms: `first` is that of the first slice relative to the settled
 * one, `settled_s` the time until it is within 2 % of that. */
static void watch_waking(double *first, double *settled_s)
{
    enum { SLICES = 150, SLEEP_NS = 30 * 1000 * 1000 };
    static const double WATCH_S = 30e-3;
    double ghz[SLICES], at[SLICES];
    nanosleep(&(struct timespec){ 0, SLEEP_NS }, NULL);
    const double begin = clock_now();
    size_t n = 0;
    for (; n < SLICES && clock_now() - begin < WATCH_S; n++) {
        ghz[n] = probe_ghz(SLICE_S);
        at[n] = clock_now() - begin;
    }
    const double settled = stats_median(ghz + 2 * n / 3, n - 2 * n / 3);
    *first = ghz[0] / settled;
    *settled_s = 0.0;
    for (size_t i = 0; i + 1 < n && ghz[i] < 0.98 * settled; i++)
        *settled_s = at[i];
}

json_t *probe_frequency(int tries)
{
    enum { MOST_TRIES = 5 };
    double first[MOST_TRIES], settled[MOST_TRIES], vectors[MOST_TRIES];
    const size_t n = (size_t)(tries < MOST_TRIES ? tries : MOST_TRIES);
    json_t *frequency = json_object();
    if (probe_ghz(SLICE_S) <= 0.0)
        return frequency;
    for (size_t i = 0; i < n; i++) {
        watch_waking(&first[i], &settled[i]);
        const double before = probe_ghz(SLICE_S);
        vectors[i] = run_512_bit_arithmetic(2e-3) ? probe_ghz(SLICE_S) / before : (double)NAN;
    }
    json_object_set_new(frequency, "after_sleep", record_number(stats_median(first, n)));
    json_object_set_new(frequency, "settled_ms", record_number(1e3 * stats_median(settled, n)));
    if (!isnan(vectors[0]))
        json_object_set_new(frequency, "after_vectors",
                            record_number(stats_median(vectors, n)));
    return frequency;
}

/* ---- Clock and interruptions ---- */

json_t *probe_clock(void)
{
    enum { BATCHES = 201, READINGS = 100 };
    double batch_ns[BATCHES], last = clock_now(), step_ns = 1e9;
    bool backwards = false;
    for (int i = 0; i < BATCHES; i++) {
        const double begin = last;
        for (int k = 0; k < READINGS; k++) {
            const double now = clock_now();
            backwards |= now < last;
            if (now > last)
                step_ns = fmin(step_ns, 1e9 * (now - last));
            last = now;
        }
        batch_ns[i] = 1e9 * (last - begin) / READINGS;
    }
    /* The median is not affected by interrupted batches. */
    return json_pack("{s:f,s:f,s:b}", "step_ns", step_ns, "reading_ns",
                     stats_median(batch_ns, BATCHES), "backwards", backwards);
}

/* Measures gaps between readings of the clock, caused by interrupts, other programs, a hypervisor or firmware. */
json_t *probe_gaps(double seconds, bool (*stop)(const void *user, const char *activity),
                   const void *user)
{
    static const double LEAST_S = 1e-6, LONG_S = 100e-6, BATCH_S = 0.05;
    double spent = 0.0, lost = 0.0, longest = 0.0; /* seconds */
    int n_long = 0;
    while (spent < seconds && !stop(user, "what interrupts a loop")) {
        const double begin = clock_now();
        double last = begin;
        while (last - begin < BATCH_S) {
            const double now = clock_now(), gap = now - last;
            last = now;
            lost += gap > LEAST_S ? gap : 0.0;
            longest = fmax(longest, gap);
            n_long += gap > LONG_S;
        }
        spent += last - begin;
    }
    if (spent <= 0.0)
        return json_object();
    return json_pack("{s:f,s:f,s:f,s:i}", "seconds", spent, "lost_pct", 100.0 * lost / spent,
                     "longest_us", longest > LEAST_S ? 1e6 * longest : 0.0, "over_100us",
                     n_long);
}

/* ---- Denormals ---- */

json_t *probe_denormals(void)
{
    json_t *denormals = json_object();
    /* Bits of the control register that replace denormals by zero: FTZ and DAZ, or FZ. */
#if defined(__x86_64__)
    json_object_set_new(denormals, "flushed", json_boolean(_mm_getcsr() & 0x8040));
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    json_object_set_new(denormals, "flushed", json_boolean(fpcr >> 24 & 1));
#endif
    return denormals;
}
