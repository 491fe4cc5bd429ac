/*
 * Measures a machine in turns of a fraction of a second, so that a machine that changes changes all of
 * what is compared: the rotation against itself in a cache and in memory, on one CPU and wherever the
 * system puts it; small pages and huge ones; with a neighbour and without.
 */
#define _GNU_SOURCE
#include "doctor.h"
#include "caches.h"
#include "emulation.h"
#include "rotation.h"
#include "base/clock.h"
#include "base/statistics/stats.h"
#include "conformance/problem/problem.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum { ROUNDS = 40000, FREQUENCIES = 4096, MOST_RATIOS = 400, BESIDE_TURNS = 12 };

/* Seconds of each part; a quick run takes a fifth. */
static const double gaps_s = 1.0, floors_s = 8.0, pages_s = 0.8, beside_s = 0.8, start_s = 0.6;
static const double turn_s[DOCTOR_PLACES] = { 0.08, 0.25 };

/* ---- Which CPU ---- */

#if defined(__linux__)

typedef cpu_set_t cpus;

static bool run_on(pthread_t thread, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return false;
    CPU_SET((size_t)cpu, &set);
    return pthread_setaffinity_np(thread, sizeof set, &set) == 0;
}

static void note_cpus(cpus *set)
{
    if (pthread_getaffinity_np(pthread_self(), sizeof *set, set) != 0)
        CPU_ZERO(set);
}

static void give_back_cpus(const cpus *set)
{
    if (CPU_COUNT(set) > 0)
        pthread_setaffinity_np(pthread_self(), sizeof *set, set);
}

#else

typedef int cpus;

static bool run_on(pthread_t thread, int cpu)
{
    (void)thread, (void)cpu;
    return false;
}
static void note_cpus(cpus *set) { *set = 0; }
static void give_back_cpus(const cpus *set) { (void)set; }

#endif

/* ---- The course of it ---- */

struct rounds {
    size_t n;
    double *head, *null, *seconds; /* [ROUNDS]: as floor_summarise() takes them; a call */
};

struct course {
    const struct doctor_options *options;
    struct doctor *doctor;
    cpus cpus; /* that this thread had */
    double begun, all_s;
    double share;   /* of the seconds of each part */
    uint64_t draws; /* for the order of rounds */
    struct rotation rotation[DOCTOR_PLACES];
    struct rounds pinned[DOCTOR_PLACES], loose[DOCTOR_PLACES];
    size_t n_ghz;
    double ghz[FREQUENCIES];
};

static bool stopped(const struct course *c, const char *doing)
{
    const double done = (clock_now() - c->begun) / c->all_s;
    return c->options->stop && c->options->stop(c->options->user, fmin(done, 1.0), doing);
}

/* ---- Against its own copy ---- */

/* Times the rotation and two copies of it, in an order that is drawn. */
static void time_round(struct course *c, const struct rotation *r, struct rounds *rounds)
{
    enum { ITSELF, COPY, AGAIN, COPIES };
    static const int orders[6][COPIES] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                           { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    const int *order = orders[mix64(1, c->draws++) % 6];
    double seconds[COPIES];
    for (int i = 0; i < COPIES; i++)
        seconds[order[i]] = rotation_seconds(r);
    if (rounds->n == ROUNDS)
        return;
    rounds->seconds[rounds->n] = seconds[ITSELF];
    rounds->null[rounds->n] = log(seconds[AGAIN] / seconds[ITSELF]);
    rounds->head[rounds->n++] = log(seconds[COPY] / seconds[ITSELF]);
}

/* Takes a turn of at least FLOOR_ROUNDS, unless that takes too long. */
static void take_turn(struct course *c, enum doctor_place place, bool pinned)
{
    const struct rotation *r = &c->rotation[place];
    struct rounds *rounds = pinned ? &c->pinned[place] : &c->loose[place];
    if (pinned && c->doctor->cpu >= 0)
        run_on(pthread_self(), c->doctor->cpu);
    else
        give_back_cpus(&c->cpus);
    if (pinned && c->n_ghz < FREQUENCIES)
        c->ghz[c->n_ghz++] = fmax(probe_ghz(30e-6), fmax(probe_ghz(30e-6), probe_ghz(30e-6)));
    rotation_call(r); /* into the cache of that CPU */
    double begin = clock_now(), spent = 0.0;
    for (int i = 0; spent < turn_s[place] || (i < FLOOR_ROUNDS && spent < 4.0 * turn_s[place]);
         i++) {
        time_round(c, r, rounds);
        spent = clock_now() - begin;
    }
}

static struct doctor_floor summary_of(const struct rounds *rounds)
{
    struct doctor_floor floor = { 0.0, floor_summarise(rounds->head, rounds->null, rounds->n) };
    if (rounds->n > 0)
        floor.call_ns = 1e9 * stats_median(rounds->seconds, rounds->n);
    return floor;
}

static void measure_floors(struct course *c, double seconds)
{
    static const char *const doing[] = { "a kernel against its own copy, in cache",
                                         "a kernel against its own copy, in DRAM" };
    const bool loose = c->options->loose && c->doctor->cpu >= 0;
    bool ended = false;
    for (double end = clock_now() + seconds; !ended && clock_now() < end;) {
        for (enum doctor_place place = IN_CACHE; !ended && place < DOCTOR_PLACES; place++) {
            if (c->doctor->bytes[place] == 0)
                continue;
            take_turn(c, place, true);
            ended = stopped(c, doing[place]);
            if (loose && !ended && !(c->options->quick && place == IN_DRAM))
                take_turn(c, place, false);
        }
    }
    for (int place = 0; place < DOCTOR_PLACES; place++) {
        c->doctor->floor[place] = summary_of(&c->pinned[place]);
        c->doctor->loose[place] = summary_of(&c->loose[place]);
    }
}

/* Returns how much longer the one takes: 1 if the rounds do not show with 99 % which is longer. */
static double certain_ratio(const double *over, const double *under, size_t n)
{
    double ratio[MOST_RATIOS];
    for (size_t i = 0; i < n; i++)
        ratio[i] = over[i] / under[i];
    const struct stats_summary s = stats_summarise(ratio, n);
    return s.interval.low <= 1.0 && s.interval.high >= 1.0 ? 1.0 : s.median;
}

/* ---- Pages ---- */

static void measure_pages(struct course *c, double seconds)
{
    struct rotation small, huge;
    double slow[MOST_RATIOS], fast[MOST_RATIOS];
    size_t n = 0, bytes = c->doctor->bytes[IN_DRAM];
    if (bytes == 0 || !rotation_make(&small, bytes, PAGES_SMALL))
        return;
    if (rotation_make(&huge, bytes, PAGES_HUGE)) {
        double begin = clock_now(), spent = 0.0;
        for (; n < MOST_RATIOS && (spent < seconds || (n < 5 && spent < 4.0 * seconds));
             spent = clock_now() - begin) {
            slow[n] = rotation_seconds(&small);
            fast[n++] = rotation_seconds(&huge);
            if (stopped(c, "small pages and huge ones"))
                break;
        }
        if (n >= 5)
            c->doctor->small_pages = certain_ratio(slow, fast, n);
        rotation_free(&huge);
    }
    rotation_free(&small);
}

/* ---- Beside a neighbour ---- */

struct neighbour {
    const struct rotation *rotation;
    atomic_bool work, quit;
};

static void *neighbour_main(void *user)
{
    struct neighbour *n = user;
    while (!atomic_load(&n->quit)) {
        if (atomic_load(&n->work))
            rotation_call(n->rotation);
        else
            sched_yield();
    }
    return NULL;
}

/* Returns the median time of a call for some seconds, while the neighbour works or not. */
static double time_beside(struct neighbour *n, bool works, const struct rotation *mine,
                          double seconds)
{
    enum { MOST = 256 };
    double sample[MOST], end = clock_now() + seconds;
    size_t k = 0;
    atomic_store(&n->work, works);
    rotation_call(mine);
    while (k < 3 || (k < MOST && clock_now() < end))
        sample[k++] = rotation_seconds(mine);
    return stats_median(sample, k);
}

/* Returns how much longer a call takes beside one that does the same on `cpu`. */
static double beside(struct course *c, const struct rotation *mine,
                     const struct rotation *others, int cpu, double seconds)
{
    struct neighbour n = { .rotation = others };
    pthread_t thread;
    double with[BESIDE_TURNS], without[BESIDE_TURNS];
    const double turn = seconds / (2 * BESIDE_TURNS), begin = clock_now();
    size_t turns = 0;
    if (pthread_create(&thread, NULL, neighbour_main, &n) != 0)
        return (double)NAN;
    const bool placed = run_on(thread, cpu);
    while (placed && turns < BESIDE_TURNS && clock_now() - begin < 2.0 * seconds &&
           !stopped(c, "beside a neighbour")) {
        without[turns] = time_beside(&n, false, mine, turn);
        with[turns++] = time_beside(&n, true, mine, turn);
    }
    atomic_store(&n.quit, true);
    pthread_join(thread, NULL);
    return turns > 0 ? certain_ratio(with, without, turns) : (double)NAN;
}

static void measure_beside(struct course *c, double seconds)
{
    struct doctor *d = c->doctor;
    for (int place = 0; place < DOCTOR_PLACES; place++) {
        struct rotation others;
        if (d->bytes[place] == 0 || !rotation_make(&others, d->bytes[place], PAGES_AS_EVER))
            continue;
        for (int i = 0; i < 2; i++) {
            const int cpu = c->options->beside[i];
            if (cpu >= 0 && cpu != d->cpu)
                d->beside[i][place] = beside(c, &c->rotation[place], &others, cpu, seconds);
        }
        rotation_free(&others);
    }
}

/* ---- All of it ---- */

/* Chooses half of the second cache, and bytes beyond the last one if memory allows it. */
static void choose_bytes(struct doctor *d)
{
    const struct bench_caches caches = bench_caches();
    const size_t l2 = caches.l2 > 0 ? caches.l2 : 512 * KIB;
    size_t dram = caches.l3 / 2 * 3;
    d->bytes[IN_CACHE] = l2 / 2 < 256 * KIB ? l2 / 2 : 256 * KIB;
    dram = dram < 64 * MIB ? 64 * MIB : dram > 256 * MIB ? 256 * MIB : dram;
    d->bytes[IN_DRAM] = dram <= bench_memory_bytes() / 16 ? dram : 0;
}

static bool get_rounds(struct rounds *rounds)
{
    rounds->head = malloc(3 * ROUNDS * sizeof *rounds->head);
    rounds->null = rounds->head ? rounds->head + ROUNDS : NULL;
    rounds->seconds = rounds->head ? rounds->null + ROUNDS : NULL;
    return rounds->head;
}

static bool prepare(struct course *c)
{
    struct doctor *d = c->doctor;
    choose_bytes(d);
    for (int place = 0; place < DOCTOR_PLACES; place++) {
        if (!get_rounds(&c->pinned[place]) || !get_rounds(&c->loose[place]))
            return false;
        if (d->bytes[place] > 0 &&
            !rotation_make(&c->rotation[place], d->bytes[place], PAGES_AS_EVER))
            d->bytes[place] = 0;
    }
    return d->bytes[IN_CACHE] > 0;
}

static void clean_up(struct course *c)
{
    for (int place = 0; place < DOCTOR_PLACES; place++) {
        free(c->pinned[place].head);
        free(c->loose[place].head);
        rotation_free(&c->rotation[place]);
    }
    give_back_cpus(&c->cpus);
    free(c);
}

static void sum_up_frequency(struct course *c)
{
    struct doctor *d = c->doctor;
    if (c->n_ghz == 0)
        return;
    stats_sort(c->ghz, c->n_ghz);
    d->ghz = c->ghz[c->n_ghz / 2];
    d->ghz_low = c->ghz[c->n_ghz / 20];
    d->ghz_high = c->ghz[c->n_ghz - 1 - c->n_ghz / 20];
}

static void measure(struct course *c)
{
    struct doctor *d = c->doctor;
    d->clock = probe_clock();
    d->denormals = probe_denormals();
    d->speed = probe_speed(c->options->quick ? 2 : 5);
    for (double end = clock_now() + c->share * gaps_s;
         clock_now() < end && !stopped(c, "what interrupts a loop");)
        probe_gaps(0.05, &d->gaps);
    measure_floors(c, c->share * floors_s);
    run_on(pthread_self(), d->cpu);
    if (!stopped(c, "small pages and huge ones"))
        measure_pages(c, c->share * pages_s);
    if (!stopped(c, "beside a neighbour"))
        measure_beside(c, c->share * beside_s);
    sum_up_frequency(c);
}

const char *doctor_measure(const struct doctor_options *options, struct doctor *doctor)
{
    const double none = (double)NAN, share = options->quick ? 0.2 : 1.0;
    *doctor = (struct doctor){ .cpu = -1,
                               .small_pages = none,
                               .beside = { { none, none }, { none, none } } };
    if (bench_emulator())
        return bench_emulator();
    struct course *c = calloc(1, sizeof *c);
    if (!c)
        return "no memory";
    c->options = options;
    c->doctor = doctor;
    c->begun = clock_now();
    c->share = share;
    c->all_s = share * (gaps_s + floors_s + pages_s + 4.0 * beside_s) + start_s;
    note_cpus(&c->cpus);
    if (run_on(pthread_self(), options->cpu))
        doctor->cpu = options->cpu;
    const bool ready = prepare(c);
    if (ready)
        measure(c);
    doctor->seconds = clock_now() - c->begun;
    clean_up(c);
    return ready ? NULL : "no memory, or no backend for rope_half";
}
