/*
 * posenc bench --probe: measures the noise of timings on this machine, for posenc doctor.
 *
 * One kernel, a rotation, is timed in A/A comparisons: in cache and in DRAM, pinned to a CPU and not, in small and huge
 * pages, and while another CPU is busy. Two conditions that are compared alternate several times a second, so that
 * drift of the machine affects both.
 */
#define _GNU_SOURCE
#include "probe.h"
#include "base/clock.h"
#include "base/machine/machine.h"
#include "base/machine/noise.h"
#include "base/machine/sysfs.h"
#include "base/statistics/stats.h"
#include "session.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum memory_level { LEVEL_CACHE, LEVEL_DRAM, N_LEVELS };
static const char *const level_name[N_LEVELS] = { "cache", "DRAM" };

/* ---- The probe ---- */

enum { ROUNDS = 40000, FREQUENCIES = 4096, MOST_CPUS = 1024 };

/* Rounds of three samples of the same rotation. */
struct probe_rounds {
    size_t n;
    double head[ROUNDS], control[ROUNDS]; /* logarithms of ratios, for threshold_summarise() */
    double seconds[ROUNDS];               /* of a call */
};

struct probe {
    struct session *session;
    bool quick;
    int cpu;                 /* CPU that is measured; -1: any */
    double start_s, total_s; /* for the progress line */
    uint64_t n_draws;        /* random numbers used so far */
    size_t bytes[N_LEVELS];  /* 0: too little memory */
    struct probe_rotation rotation[N_LEVELS];
    struct probe_rounds rounds[N_LEVELS][2]; /* on any CPU; pinned */
    size_t n_ghz;
    double ghz[FREQUENCIES]; /* CPU frequency between the rounds */
    json_t *measured;        /* member of the record */
};

/* Duration of each part in seconds. A quick run takes a fifth of it, except for the first part. */
static const double START_S = 0.6, GAPS_S = 1.0, NOISE_S = 8.0, PAGES_S = 0.8, BESIDE_S = 0.8;

/* Returns the seconds that a part takes in this run. */
static double duration_of(const struct probe *probe, double seconds)
{
    return probe->quick ? 0.2 * seconds : seconds;
}

/* Draws the progress. Returns true after a signal. */
static bool is_stopped(const void *user, const char *activity)
{
    const struct probe *probe = user;
    const double done = fmin((clock_now() - probe->start_s) / probe->total_s, 1.0);
    progress_draw(&(struct progress){ .command = "doctor",
                                      .unit = "seconds",
                                      .done = done * probe->total_s,
                                      .total = (size_t)probe->total_s,
                                      .case_id = activity });
    return outputs_interrupted() != 0;
}

static void set_number(json_t *record, const char *name, double value)
{
    if (!isnan(value))
        json_object_set_new(record, name, record_number(value));
}

/* ---- A/A comparisons ---- */

/* Times three samples of the rotation in a random order, as posenc pair times base, head and a copy of base. */
static void time_round(struct probe *probe, const struct probe_rotation *r,
                       struct probe_rounds *rounds)
{
    enum { BASE, HEAD, CONTROL, SIDES, ORDERS = 6 };
    static const int orders[ORDERS][SIDES] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                               { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    const int *order = orders[rng_u64(1, probe->n_draws++) % ORDERS];
    double seconds[SIDES];
    for (int i = 0; i < SIDES; i++)
        seconds[order[i]] = probe_rotation_time(r);
    if (rounds->n == ROUNDS)
        return;
    rounds->seconds[rounds->n] = seconds[BASE];
    rounds->control[rounds->n] = log(seconds[CONTROL] / seconds[BASE]);
    rounds->head[rounds->n++] = log(seconds[HEAD] / seconds[BASE]);
}

/* Times rounds for a fraction of a second: at least THRESHOLD_ROUNDS, unless they take too long. */
static void time_rounds(struct probe *probe, enum memory_level level, bool pinned)
{
    static const double duration_s[N_LEVELS] = { 0.08, 0.25 };
    const struct probe_rotation *r = &probe->rotation[level];
    struct probe_rounds *rounds = &probe->rounds[level][pinned];
    if (pinned && probe->cpu >= 0)
        probe_pin_thread(pthread_self(), probe->cpu);
    else
        probe_restore_affinity();
    if (pinned && probe->n_ghz < FREQUENCIES)
        probe->ghz[probe->n_ghz++] =
            fmax(probe_ghz(30e-6), fmax(probe_ghz(30e-6), probe_ghz(30e-6)));
    probe_rotation_call(r); /* warms the cache of that CPU */
    const double begin = clock_now();
    double spent = 0.0;
    for (int i = 0;
         spent < duration_s[level] || (i < THRESHOLD_ROUNDS && spent < 4.0 * duration_s[level]);
         i++) {
        time_round(probe, r, rounds);
        spent = clock_now() - begin;
    }
}

static void measure_noise(struct probe *probe)
{
    static const char *const activity[N_LEVELS] = { "a kernel against its own copy, in cache",
                                                    "a kernel against its own copy, in DRAM" };
    const json_t *env = json_array_get(probe->session->records.list, 1);
    const bool unpinned = probe->cpu >= 0 && record_value(env, "cpus.allowed", 1.0) > 1.0;
    bool stopped = false;
    for (double end = clock_now() + duration_of(probe, NOISE_S); !stopped && clock_now() < end;)
        for (enum memory_level level = LEVEL_CACHE; !stopped && level < N_LEVELS; level++) {
            if (probe->bytes[level] == 0)
                continue;
            time_rounds(probe, level, true);
            stopped = is_stopped(probe, activity[level]);
            if (unpinned && !stopped && !(probe->quick && level == LEVEL_DRAM))
                time_rounds(probe, level, false);
        }
}

static struct threshold_summary summarise(const struct probe_rounds *rounds)
{
    return threshold_summarise(rounds->head, rounds->control, rounds->n);
}

static json_t *threshold_record(const struct probe *probe, enum memory_level level, bool pinned)
{
    const struct probe_rounds *rounds = &probe->rounds[level][pinned];
    const struct threshold_summary threshold = summarise(rounds);
    json_t *one = json_pack("{s:s,s:I,s:b,s:I,s:I}", "place", level_name[level], "bytes",
                            (json_int_t)probe->bytes[level], "pinned", pinned, "rounds",
                            (json_int_t)threshold.rounds, "comparisons",
                            (json_int_t)threshold.comparisons);
    set_number(one, "call_ns", 1e9 * stats_median(rounds->seconds, rounds->n));
    set_number(one, "typical_pct", 100.0 * expm1(threshold.median));
    set_number(one, "largest_pct", 100.0 * expm1(threshold.largest));
    set_number(one, "process_pct", 100.0 * expm1(threshold.typical_process));
    set_number(one, "detectable_pct", 100.0 * threshold.detectable);
    return one;
}

static json_t *thresholds_record(const struct probe *probe)
{
    json_t *list = json_array();
    for (enum memory_level level = LEVEL_CACHE; level < N_LEVELS; level++)
        for (int pinned = 1; pinned >= 0; pinned--)
            if (probe->rounds[level][pinned].n > 0)
                json_array_append_new(list, threshold_record(probe, level, pinned));
    return list;
}

/* ---- One condition against another ---- */

/* Thread on another CPU that calls its own rotation while `is_active` is set. */
struct busy_thread {
    const struct probe_rotation *rotation;
    atomic_bool is_active, must_end;
};

static void *run_busy_thread(void *user)
{
    struct busy_thread *busy = user;
    while (!atomic_load(&busy->must_end)) {
        if (atomic_load(&busy->is_active))
            probe_rotation_call(busy->rotation);
        else
            sched_yield();
    }
    return NULL;
}

/* Condition of a timing: a rotation, and a busy thread or NULL. */
struct condition {
    const struct probe_rotation *rotation;
    struct busy_thread *busy;
};

/* Times a condition for so many seconds. Returns the median seconds of a call. */
static double time_condition(const struct condition *condition, double seconds)
{
    enum { LEAST = 3, MOST = 256 };
    double sample[MOST], end = clock_now() + seconds;
    size_t n = 0;
    if (condition->busy)
        atomic_store(&condition->busy->is_active, true);
    probe_rotation_call(condition->rotation);
    while (n < LEAST || (n < MOST && clock_now() < end))
        sample[n++] = probe_rotation_time(condition->rotation);
    if (condition->busy)
        atomic_store(&condition->busy->is_active, false);
    return stats_median(sample, n);
}

/* Returns the ratio of times under two conditions: 1 if its 99 % interval contains 1, NaN after few alternations. */
static double slowdown(const struct probe *probe, struct condition slow, struct condition fast,
                       double seconds, const char *activity)
{
    enum { LEAST = 5, ALTERNATIONS = 12 };
    const double each = seconds / (2 * ALTERNATIONS), end = clock_now() + 4.0 * seconds;
    double ratio[ALTERNATIONS];
    size_t n = 0;
    for (; n < ALTERNATIONS && clock_now() < end && !is_stopped(probe, activity); n++) {
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
    const size_t bytes = probe->bytes[LEVEL_DRAM];
    json_t *pages = json_object();
    struct probe_rotation small, huge;
    if (bytes == 0 || !probe_rotation_create(&small, bytes, PAGES_SMALL))
        return pages;
    if (probe_rotation_create(&huge, bytes, PAGES_HUGE)) {
        set_number(pages, "small_over_huge",
                   slowdown(probe, (struct condition){ &small, NULL },
                            (struct condition){ &huge, NULL }, duration_of(probe, PAGES_S),
                            "small pages and huge ones"));
        probe_rotation_destroy(&huge);
    }
    probe_rotation_destroy(&small);
    return pages;
}

/* Returns the slowdown of a call while a thread on `cpu` is busy; NaN: unknown. */
static double slowdown_with_busy_cpu(const struct probe *probe, enum memory_level level,
                                     int cpu)
{
    const struct probe_rotation *mine = &probe->rotation[level];
    struct probe_rotation other_rotation;
    struct busy_thread busy = { .rotation = &other_rotation };
    pthread_t thread;
    double ratio = (double)NAN;
    if (probe->bytes[level] == 0 ||
        !probe_rotation_create(&other_rotation, probe->bytes[level], PAGES_OF_SYSTEM))
        return ratio;
    if (pthread_create(&thread, NULL, run_busy_thread, &busy) == 0) {
        if (probe_pin_thread(thread, cpu))
            ratio = slowdown(probe, (struct condition){ mine, &busy },
                             (struct condition){ mine, NULL }, duration_of(probe, BESIDE_S),
                             "beside a neighbour");
        atomic_store(&busy.must_end, true);
        pthread_join(thread, NULL);
    }
    probe_rotation_destroy(&other_rotation);
    return ratio;
}

/* Returns another CPU that this program may use, on the measured core or not; -1: none. */
static int find_other_cpu(const struct probe *probe, bool same_core)
{
    const json_t *env = json_array_get(probe->session->records.list, 1);
    const char *allowed = record_text(env, "cpus.list"),
               *siblings = record_text(env, "cpus.siblings");
    for (int other = 0; probe->cpu >= 0 && other < MOST_CPUS; other++)
        if (other != probe->cpu && cpu_list_has(allowed, other) &&
            cpu_list_has(siblings, other) == same_core)
            return other;
    return -1;
}

static json_t *busy_cpus_record(const struct probe *probe)
{
    json_t *list = json_array();
    for (int same_core = 1; same_core >= 0; same_core--) {
        const int cpu = find_other_cpu(probe, same_core);
        if (cpu < 0)
            continue;
        const double cache = slowdown_with_busy_cpu(probe, LEVEL_CACHE, cpu),
                     dram = slowdown_with_busy_cpu(probe, LEVEL_DRAM, cpu);
        if (isnan(cache) && isnan(dram))
            continue;
        json_t *one = json_pack("{s:i,s:b}", "cpu", cpu, "sibling", same_core);
        set_number(one, "cache", cache);
        set_number(one, "dram", dram);
        json_array_append_new(list, one);
    }
    return list;
}

/* ---- The command ---- */

/* Chooses half of L2, at most 256 KiB, and 1.5 times L3, 64 to 256 MiB, if memory allows it. */
static void choose_bytes(struct probe *probe)
{
    const struct machine_caches caches = machine_caches();
    const size_t l2 = caches.l2 > 0 ? caches.l2 : 512 * KIB;
    size_t dram = caches.l3 / 2 * 3;
    probe->bytes[LEVEL_CACHE] = l2 / 2 < 256 * KIB ? l2 / 2 : 256 * KIB;
    dram = dram < 64 * MIB ? 64 * MIB : dram;
    dram = dram > 256 * MIB ? 256 * MIB : dram;
    probe->bytes[LEVEL_DRAM] = dram <= machine_memory_bytes() / 16 ? dram : 0;
    for (int level = 0; level < N_LEVELS; level++)
        if (probe->bytes[level] > 0 &&
            !probe_rotation_create(&probe->rotation[level], probe->bytes[level],
                                   PAGES_OF_SYSTEM))
            probe->bytes[level] = 0;
}

/* Adds the median and the 5 % and 95 % quantiles of all measured frequencies. */
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
           *gaps = probe_gaps(duration_of(probe, GAPS_S), is_stopped, probe);
    measure_noise(probe);
    probe_pin_thread(pthread_self(), probe->cpu);
    json_t *pages = pages_record(probe), *busy = busy_cpus_record(probe);
    add_frequency(probe, frequency);
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "floors", thresholds_record(probe),
                     "clock", clock, "frequency", frequency, "gaps", gaps, "denormals",
                     denormals, "pages", pages, "beside", busy);
}

/* Returns the record of a probe. Takes the reference to `usage`. */
static json_t *probe_record(const struct probe *probe, json_t *usage)
{
    static const char *const limit_name[N_LEVELS] = { "cache_pct", "dram_pct" };
    json_t *detectable = json_object();
    json_t *record = json_pack("{s:s,s:i,s:f,s:o,s:O,s:o}", "t", "doctor", "cpu", probe->cpu,
                               "seconds", clock_now() - probe->start_s, "detectable",
                               detectable, "measured", probe->measured, "neighbours", usage);
    double control = (double)NAN;
    for (int level = 0; record && level < N_LEVELS; level++) {
        const struct threshold_summary threshold = summarise(&probe->rounds[level][true]);
        set_number(detectable, limit_name[level], 100.0 * threshold.detectable);
        control =
            fmax(control, 100.0 * expm1(threshold.typical_process)); /* fmax() skips NaN */
    }
    if (record)
        set_number(record, "control_pct", control);
    return record;
}

static void close_probe(struct probe *probe)
{
    for (int level = 0; level < N_LEVELS; level++)
        probe_rotation_destroy(&probe->rotation[level]);
    probe_restore_affinity();
    json_decref(probe->measured);
    free(probe);
}

/* Measures and appends the record. Returns NULL, or the reason why nothing was measured. */
static const char *run_probe(struct session *session)
{
    const int cpu = record_int(json_array_get(session->records.list, 1), "cpus.best", -1);
    struct probe *probe = cli_allocate(1, sizeof *probe);
    probe->session = session;
    probe->quick = session->cli->quick;
    probe->start_s = clock_now();
    probe->total_s =
        START_S + duration_of(probe, GAPS_S + NOISE_S + PAGES_S + (double)4 * BESIDE_S);
    probe_save_affinity();
    probe->cpu = probe_pin_thread(pthread_self(), cpu) ? cpu : -1;
    json_t *before = cpu_usage_snapshot();
    session->at_timing_start = noise_read();
    choose_bytes(probe);
    const bool ready = probe->bytes[LEVEL_CACHE] > 0;
    if (ready)
        probe->measured = measure(probe);
    session->noise = noise_since(&session->at_timing_start);
    json_t *after = cpu_usage_snapshot();
    if (ready)
        records_append(&session->records,
                       probe_record(probe, cpu_usage_between(before, after, getpid())));
    json_decref(before);
    json_decref(after);
    close_probe(probe);
    progress_clear();
    return ready ? NULL : "no memory, or no backend for rope_half";
}

int bench_probe(struct cli *cli)
{
    struct session session = { .cli = cli };
    const char *emulator = machine_emulator();
    cli_set_command(cli->command = "doctor");
    cli->full = !cli->quick;
    if (cli->out.n == 0)
        cli->out = (struct option_values){ 1, { "jsonl" } };
    if (emulator) {
        cli_complain("nothing is measured here", NULL, "%s", emulator);
        return EXIT_SKIPPED;
    }
    session_open(&session, false);
    const char *problem = run_probe(&session);
    session_exit_if_interrupted(&session);
    if (problem) {
        cli_complain("nothing could be measured", NULL, "%s", problem);
        session_free(&session);
        return EXIT_SKIPPED;
    }
    session_end(&session, true);
    return EXIT_OK;
}
