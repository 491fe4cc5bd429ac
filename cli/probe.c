/*
 * posenc bench --probe: the noise of this machine, for posenc doctor.
 *
 * A rotation is timed against its own copies in a cache and in memory, on one CPU and wherever the system
 * puts it, in small pages and in huge ones, beside a neighbour and alone.  Conditions that are compared
 * alternate every fraction of a second, so that a machine that changes changes both of them.  Only the
 * calling thread moves between CPUs; it is allowed its own ones again at the end.
 */
#define _GNU_SOURCE
#include "probe.h"
#include "bench/machine.h"
#include "base/clock.h"
#include "base/machine/neighbours.h"
#include "base/machine/sysfs.h"
#include "base/statistics/floor.h"
#include "base/statistics/stats.h"
#include "emit.h"
#include "work.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum place { IN_CACHE, IN_DRAM, PLACES };
static const char *const place_name[PLACES] = { "cache", "DRAM" };

/* ---- The probe ---- */

enum { ROUNDS = 40000, FREQUENCIES = 4096 };

/* Rounds of a rotation and two copies of it, as floor_summarise() takes them, and the time of a call. */
struct rounds {
    size_t n;
    double head[ROUNDS], control[ROUNDS], seconds[ROUNDS];
};

struct probe {
    struct work *work;
    bool quick;
    int cpu; /* that is measured; -1: any */
    double begun, all_s;
    uint64_t draws;       /* for the order within rounds */
    size_t bytes[PLACES]; /* 0: there was no memory for it */
    struct rotation rotation[PLACES];
    struct rounds pinned[PLACES], loose[PLACES];
    size_t n_ghz;
    double ghz[FREQUENCIES];
    json_t *measured;
};

/* Seconds of each part; a quick run takes a fifth of all but the first. */
static const double START_S = 0.6, GAPS_S = 1.0, FLOORS_S = 8.0, PAGES_S = 0.8, BESIDE_S = 0.8;

static double share_of(const struct probe *probe, double seconds)
{
    return probe->quick ? 0.2 * seconds : seconds;
}

/* Shows the progress.  Returns true if a signal asks for the end. */
static bool is_stopped(const struct probe *probe, const char *doing)
{
    const double done = fmin((clock_now() - probe->begun) / probe->all_s, 1.0);
    progress_draw(&(struct progress){ .what = "doctor",
                                      .unit = "seconds",
                                      .done = done * probe->all_s,
                                      .total = (size_t)probe->all_s,
                                      .notes = "",
                                      .where = doing });
    return outputs_interrupted() != 0;
}

static bool gaps_are_stopped(void *user) { return is_stopped(user, "what interrupts a loop"); }

static void set_number(json_t *record, const char *name, double value)
{
    if (!isnan(value))
        json_object_set_new(record, name, record_number(value));
}

/* ---- A kernel against its own copy ---- */

/* Times the rotation and two copies of it, in an order that is drawn. */
static void time_round(struct probe *probe, const struct rotation *r, struct rounds *rounds)
{
    enum { ITSELF, COPY, AGAIN, COPIES, ORDERS = 6 };
    static const int orders[ORDERS][COPIES] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                                { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    const int *order = orders[rng_u64(1, probe->draws++) % ORDERS];
    double seconds[COPIES];
    for (int i = 0; i < COPIES; i++)
        seconds[order[i]] = rotation_sample(r);
    if (rounds->n == ROUNDS)
        return;
    rounds->seconds[rounds->n] = seconds[ITSELF];
    rounds->control[rounds->n] = log(seconds[AGAIN] / seconds[ITSELF]);
    rounds->head[rounds->n++] = log(seconds[COPY] / seconds[ITSELF]);
}

/* Times rounds for a fraction of a second: at least FLOOR_ROUNDS, unless they take too long. */
static void time_rounds(struct probe *probe, enum place place, bool pinned)
{
    static const double turn_s[PLACES] = { 0.08, 0.25 };
    const struct rotation *r = &probe->rotation[place];
    struct rounds *rounds = pinned ? &probe->pinned[place] : &probe->loose[place];
    if (pinned && probe->cpu >= 0)
        probe_run_on(pthread_self(), probe->cpu);
    else
        probe_run_on_kept_cpus();
    if (pinned && probe->n_ghz < FREQUENCIES)
        probe->ghz[probe->n_ghz++] =
            fmax(probe_ghz(30e-6), fmax(probe_ghz(30e-6), probe_ghz(30e-6)));
    rotation_call(r); /* into the cache of that CPU */
    const double begin = clock_now();
    double spent = 0.0;
    for (int i = 0; spent < turn_s[place] || (i < FLOOR_ROUNDS && spent < 4.0 * turn_s[place]);
         i++) {
        time_round(probe, r, rounds);
        spent = clock_now() - begin;
    }
}

static void measure_floors(struct probe *probe)
{
    static const char *const doing[PLACES] = { "a kernel against its own copy, in cache",
                                               "a kernel against its own copy, in DRAM" };
    const json_t *env = json_array_get(probe->work->records.list, 1);
    const bool loose = probe->cpu >= 0 && record_value(env, "cpus.allowed", 1.0) > 1.0;
    bool stopped = false;
    for (double end = clock_now() + share_of(probe, FLOORS_S); !stopped && clock_now() < end;)
        for (enum place place = IN_CACHE; !stopped && place < PLACES; place++) {
            if (probe->bytes[place] == 0)
                continue;
            time_rounds(probe, place, true);
            stopped = is_stopped(probe, doing[place]);
            if (loose && !stopped && !(probe->quick && place == IN_DRAM))
                time_rounds(probe, place, false);
        }
}

static struct floor_summary summarise(const struct rounds *rounds)
{
    return floor_summarise(rounds->head, rounds->control, rounds->n);
}

static void add_floor(const struct probe *probe, json_t *list, enum place place, bool pinned)
{
    const struct rounds *rounds = pinned ? &probe->pinned[place] : &probe->loose[place];
    const struct floor_summary floor = summarise(rounds);
    if (rounds->n == 0)
        return;
    json_t *one =
        json_pack("{s:s,s:I,s:b,s:I,s:I}", "place", place_name[place], "bytes",
                  (json_int_t)probe->bytes[place], "pinned", pinned, "rounds",
                  (json_int_t)floor.rounds, "comparisons", (json_int_t)floor.comparisons);
    set_number(one, "call_ns", 1e9 * stats_median(rounds->seconds, rounds->n));
    set_number(one, "typical_pct", 100.0 * expm1(floor.median));
    set_number(one, "largest_pct", 100.0 * expm1(floor.largest));
    set_number(one, "process_pct", 100.0 * expm1(floor.process));
    set_number(one, "detectable_pct", 100.0 * floor.apart);
    json_array_append_new(list, one);
}

static json_t *floors_record(const struct probe *probe)
{
    json_t *list = json_array();
    for (enum place place = IN_CACHE; place < PLACES; place++) {
        add_floor(probe, list, place, true);
        add_floor(probe, list, place, false);
    }
    return list;
}

/* ---- One condition against another ---- */

/* A thread on another CPU that calls a rotation of its own while `works` is set. */
struct busy_thread {
    const struct rotation *rotation;
    atomic_bool works, ends;
};

static void *run_busy_thread(void *user)
{
    struct busy_thread *n = user;
    while (!atomic_load(&n->ends)) {
        if (atomic_load(&n->works))
            rotation_call(n->rotation);
        else
            sched_yield();
    }
    return NULL;
}

/* A rotation, and the thread that works meanwhile; NULL: none does. */
struct condition {
    const struct rotation *rotation;
    struct busy_thread *beside;
};

/* Returns the median time of a call in so many seconds. */
static double time_condition(const struct condition *condition, double seconds)
{
    enum { LEAST = 3, MOST = 256 };
    double sample[MOST], end = clock_now() + seconds;
    size_t n = 0;
    if (condition->beside)
        atomic_store(&condition->beside->works, true);
    rotation_call(condition->rotation);
    while (n < LEAST || (n < MOST && clock_now() < end))
        sample[n++] = rotation_sample(condition->rotation);
    if (condition->beside)
        atomic_store(&condition->beside->works, false);
    return stats_median(sample, n);
}

/* Returns how many times as long a call takes under one condition as under the other: 1 if the
 * alternations do not show with 99 % which is longer; NaN if there were too few. */
static double slowdown(const struct probe *probe, struct condition slow, struct condition fast,
                       double seconds, const char *doing)
{
    enum { LEAST = 5, ALTERNATIONS = 12 };
    const double each = seconds / (2 * ALTERNATIONS), end = clock_now() + 4.0 * seconds;
    double ratio[ALTERNATIONS];
    size_t n = 0;
    for (; n < ALTERNATIONS && clock_now() < end && !is_stopped(probe, doing); n++) {
        const double under = time_condition(&fast, each);
        ratio[n] = time_condition(&slow, each) / under;
    }
    const struct stats_summary s = stats_summarise(ratio, n);
    if (n < LEAST)
        return (double)NAN;
    return s.interval.low <= 1.0 && s.interval.high >= 1.0 ? 1.0 : s.median;
}

static json_t *pages_record(const struct probe *probe)
{
    const size_t bytes = probe->bytes[IN_DRAM];
    json_t *pages = json_object();
    struct rotation small, huge;
    if (bytes == 0 || !rotation_make(&small, bytes, PAGES_SMALL))
        return pages;
    if (rotation_make(&huge, bytes, PAGES_HUGE)) {
        set_number(pages, "small_over_huge",
                   slowdown(probe, (struct condition){ &small, NULL },
                            (struct condition){ &huge, NULL }, share_of(probe, PAGES_S),
                            "small pages and huge ones"));
        rotation_free(&huge);
    }
    rotation_free(&small);
    return pages;
}

/* Returns how many times as long a call takes beside one that does the same on `cpu`; NaN: unknown. */
static double slowdown_beside(const struct probe *probe, enum place place, int cpu)
{
    const struct rotation *mine = &probe->rotation[place];
    struct rotation others;
    struct busy_thread thread_beside = { .rotation = &others };
    pthread_t thread;
    double times = (double)NAN;
    if (probe->bytes[place] == 0 ||
        !rotation_make(&others, probe->bytes[place], PAGES_OF_SYSTEM))
        return times;
    if (pthread_create(&thread, NULL, run_busy_thread, &thread_beside) == 0) {
        if (probe_run_on(thread, cpu))
            times = slowdown(probe, (struct condition){ mine, &thread_beside },
                             (struct condition){ mine, NULL }, share_of(probe, BESIDE_S),
                             "beside a neighbour");
        atomic_store(&thread_beside.ends, true);
        pthread_join(thread, NULL);
    }
    rotation_free(&others);
    return times;
}

/* Returns a CPU that this program may use, on the measured core or on another one; -1: none. */
static int find_other_cpu(const struct probe *probe, bool same_core)
{
    const json_t *env = json_array_get(probe->work->records.list, 1);
    const char *allowed = record_text(env, "cpus.list"),
               *siblings = record_text(env, "cpus.siblings");
    for (int other = 0; probe->cpu >= 0 && other < NEIGHBOUR_CPUS; other++)
        if (other != probe->cpu && cpu_list_has(allowed, other) &&
            cpu_list_has(siblings, other) == same_core)
            return other;
    return -1;
}

static json_t *beside_record(const struct probe *probe)
{
    json_t *list = json_array();
    for (int same_core = 1; same_core >= 0; same_core--) {
        const int cpu = find_other_cpu(probe, same_core);
        if (cpu < 0)
            continue;
        const double cache = slowdown_beside(probe, IN_CACHE, cpu),
                     dram = slowdown_beside(probe, IN_DRAM, cpu);
        if (isnan(cache) && isnan(dram))
            continue;
        json_t *one = json_pack("{s:i,s:b}", "cpu", cpu, "sibling", same_core);
        set_number(one, "cache", cache);
        set_number(one, "dram", dram);
        json_array_append_new(list, one);
    }
    return list;
}

/* ---- All of it ---- */

/* Chooses half of the second cache, and bytes beyond the last one if memory allows it. */
static void choose_bytes(struct probe *probe)
{
    const struct machine_caches caches = machine_caches();
    const size_t l2 = caches.l2 > 0 ? caches.l2 : 512 * KIB;
    size_t dram = caches.l3 / 2 * 3;
    probe->bytes[IN_CACHE] = l2 / 2 < 256 * KIB ? l2 / 2 : 256 * KIB;
    dram = dram < 64 * MIB ? 64 * MIB : dram;
    dram = dram > 256 * MIB ? 256 * MIB : dram;
    probe->bytes[IN_DRAM] = dram <= machine_memory_bytes() / 16 ? dram : 0;
    for (int place = 0; place < PLACES; place++)
        if (probe->bytes[place] > 0 &&
            !rotation_make(&probe->rotation[place], probe->bytes[place], PAGES_OF_SYSTEM))
            probe->bytes[place] = 0;
}

/* Adds the frequency that was seen all along: the median, and what 95 % lie above and below. */
static void add_frequency(struct probe *probe, json_t *frequency)
{
    const size_t n = probe->n_ghz;
    stats_sort(probe->ghz, n);
    if (n == 0 || probe->ghz[n / 2] <= 0.0)
        return;
    set_number(frequency, "ghz", probe->ghz[n / 2]);
    set_number(frequency, "low", probe->ghz[n / 20]);
    set_number(frequency, "high", probe->ghz[n - 1 - n / 20]);
}

static json_t *measure(struct probe *probe)
{
    json_t *clock = probe_clock(), *denormals = probe_denormals(),
           *frequency = probe_frequency(probe->quick ? 2 : 5),
           *gaps = probe_gaps(share_of(probe, GAPS_S), gaps_are_stopped, probe);
    measure_floors(probe);
    probe_run_on(pthread_self(), probe->cpu);
    json_t *pages = pages_record(probe), *beside = beside_record(probe);
    add_frequency(probe, frequency);
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "floors", floors_record(probe), "clock",
                     clock, "frequency", frequency, "gaps", gaps, "denormals", denormals,
                     "pages", pages, "beside", beside);
}

/* Makes the record of a probe, to which posenc doctor adds a grade and findings.  Takes `neighbours`. */
static json_t *probe_record(const struct probe *probe, json_t *neighbours)
{
    static const char *const limit_name[PLACES] = { "cache_pct", "dram_pct" };
    json_t *detectable = json_object();
    json_t *record = json_pack("{s:s,s:i,s:f,s:o,s:O,s:o}", "t", "doctor", "cpu", probe->cpu,
                               "seconds", clock_now() - probe->begun, "detectable", detectable,
                               "measured", probe->measured, "neighbours", neighbours);
    double control = (double)NAN;
    for (int place = 0; record && place < PLACES; place++) {
        const struct floor_summary floor = summarise(&probe->pinned[place]);
        set_number(detectable, limit_name[place], 100.0 * floor.apart);
        control = fmax(control, 100.0 * expm1(floor.process)); /* fmax() skips NaN */
    }
    if (record)
        set_number(record, "control_pct", control);
    return record;
}

static void close_probe(struct probe *probe)
{
    for (int place = 0; place < PLACES; place++)
        rotation_free(&probe->rotation[place]);
    probe_run_on_kept_cpus();
    json_decref(probe->measured);
    free(probe);
}

/* Measures, and appends the record.  Returns NULL, or why nothing could be measured. */
static const char *run_probe(struct work *work)
{
    const int cpu = record_int(json_array_get(work->records.list, 1), "cpus.best", -1);
    struct probe *probe = calloc(1, sizeof *probe);
    struct neighbours seen[2];
    if (!probe)
        return "no memory";
    probe->work = work;
    probe->quick = work->cli->quick;
    probe->begun = clock_now();
    probe->all_s =
        START_S + share_of(probe, GAPS_S + FLOORS_S + PAGES_S + (double)4 * BESIDE_S);
    probe_keep_cpus();
    probe->cpu = probe_run_on(pthread_self(), cpu) ? cpu : -1;
    neighbours_look("", clock_now(), &seen[0]);
    work->timing = noise_watch_start();
    choose_bytes(probe);
    const bool ready = probe->bytes[IN_CACHE] > 0;
    if (ready)
        probe->measured = measure(probe);
    work->noise = noise_watch_stop(&work->timing);
    neighbours_look("", clock_now(), &seen[1]);
    if (ready)
        records_append(&work->records,
                       probe_record(probe, neighbours_between(&seen[0], &seen[1], getpid())));
    neighbours_free(&seen[0]);
    neighbours_free(&seen[1]);
    close_probe(probe);
    progress_clear();
    return ready ? NULL : "no memory, or no backend for rope_half";
}

/* Opens the records on stdout.  They are of one machine, without the library's parts. */
static int open_records(struct work *work)
{
    char error[RECORDS_ERROR];
    struct cli *cli = work->cli;
    const struct emit_run run = { .cli = cli, .mode = cli->quick ? "quick" : "full" };
    if (records_open(&work->records, error) != 0)
        return cli_refuse(cli, "records", NULL, "%s", error);
    work->records.stream = stdout;
    if (records_append(&work->records, emit_header(&run)) != 0 ||
        records_append(&work->records, emit_env()) != 0)
        return cli_refuse(cli, "records", NULL, "cannot be written: %s",
                          strerror(work->records.failed));
    work->watch = work->timing = noise_watch_start();
    outputs_finish_on_signal();
    return EXIT_FINE;
}

int probe_machine(struct cli *cli)
{
    struct work work = { .cli = cli };
    const char *emulator = machine_emulator();
    cli->command = "doctor";
    if (emulator) {
        cli_refuse(cli, "nothing is measured here", NULL, "%s", emulator);
        return EXIT_NOTHING;
    }
    if (open_records(&work) != EXIT_FINE) {
        work_give_up(&work);
        return EXIT_USAGE;
    }
    const char *problem = run_probe(&work);
    work_end_if_interrupted(&work);
    if (!problem)
        return work_end(&work, true);
    cli_refuse(cli, "nothing could be measured", NULL, "%s", problem);
    work_give_up(&work);
    return EXIT_NOTHING;
}
