/*
 * posenc bench --probe: measures what a machine does to timings, for posenc doctor.
 */
#define _POSIX_C_SOURCE 200809L
#include "bench/doctor.h"
#include "bench/emulation.h"
#include "base/clock.h"
#include "base/machine/neighbours.h"
#include "base/machine/sysfs.h"
#include "emit.h"
#include "probe.h"
#include "work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The record ---- */

static void set_number(json_t *record, const char *name, double value)
{
    if (!isnan(value))
        json_object_set_new(record, name, record_number(value));
}

static void add_floor(json_t *list, const char *place, size_t bytes, bool pinned,
                      const struct doctor_floor *f)
{
    if (f->call_ns <= 0.0)
        return;
    json_t *floor = json_pack(
        "{s:s,s:I,s:b,s:I,s:I}", "place", place, "bytes", (json_int_t)bytes, "pinned", pinned,
        "rounds", (json_int_t)f->floor.rounds, "comparisons", (json_int_t)f->floor.comparisons);
    set_number(floor, "call_ns", f->call_ns);
    set_number(floor, "typical_pct", 100.0 * expm1(f->floor.median));
    set_number(floor, "largest_pct", 100.0 * expm1(f->floor.largest));
    set_number(floor, "process_pct", 100.0 * expm1(f->floor.process));
    set_number(floor, "detectable_pct", 100.0 * f->floor.apart);
    json_array_append_new(list, floor);
}

static json_t *floors(const struct doctor *d)
{
    static const char *const places[DOCTOR_PLACES] = { "cache", "DRAM" };
    json_t *list = json_array();
    for (int i = 0; i < DOCTOR_PLACES; i++) {
        add_floor(list, places[i], d->bytes[i], true, &d->floor[i]);
        add_floor(list, places[i], d->bytes[i], false, &d->loose[i]);
    }
    return list;
}

static json_t *frequency(const struct doctor *d)
{
    json_t *f = json_object();
    if (d->ghz <= 0.0)
        return f;
    set_number(f, "ghz", d->ghz);
    set_number(f, "low", d->ghz_low);
    set_number(f, "high", d->ghz_high);
    set_number(f, "after_sleep", d->speed.after_sleep);
    set_number(f, "settled_ms", 1e3 * d->speed.settled_s);
    if (d->speed.after_vectors > 0.0)
        set_number(f, "after_vectors", d->speed.after_vectors);
    return f;
}

static json_t *gaps(const struct probe_gaps *g)
{
    json_t *gaps = json_object(), *count = json_array();
    if (g->seconds > 0.0) {
        for (int i = 0; i < GAP_KINDS; i++)
            json_array_append_new(count, json_integer((json_int_t)g->count[i]));
        set_number(gaps, "seconds", g->seconds);
        set_number(gaps, "lost_pct", 100.0 * g->lost_s / g->seconds);
        set_number(gaps, "longest_us", 1e6 * g->longest_s);
        set_number(gaps, "over_100us", (double)(g->count[2] + g->count[3]));
        json_object_set(gaps, "from_1_10_100_1000us", count);
    }
    json_decref(count);
    return gaps;
}

static json_t *denormals(const struct probe_denormals *d)
{
    json_t *record = json_object();
    if (d->told)
        json_object_set_new(record, "flushed", json_boolean(d->flushed));
    set_number(record, "times", d->times);
    return record;
}

static json_t *beside(const struct doctor_options *options, const struct doctor *d)
{
    json_t *list = json_array();
    for (int i = 0; i < 2; i++) {
        if (isnan(d->beside[i][IN_CACHE]) && isnan(d->beside[i][IN_DRAM]))
            continue;
        json_t *one = json_pack("{s:i,s:b}", "cpu", options->beside[i], "sibling", i == 0);
        set_number(one, "cache", d->beside[i][IN_CACHE]);
        set_number(one, "dram", d->beside[i][IN_DRAM]);
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *measured(const struct doctor_options *options, const struct doctor *d)
{
    json_t *pages = json_object();
    set_number(pages, "small_over_huge", d->small_pages);
    return json_pack("{s:o,s:{s:f,s:f,s:b},s:o,s:o,s:o,s:o,s:o}", "floors", floors(d), "clock",
                     "step_ns", d->clock.step_ns, "reading_ns", d->clock.reading_ns,
                     "backwards", d->clock.backwards, "frequency", frequency(d), "gaps",
                     gaps(&d->gaps), "denormals", denormals(&d->denormals), "pages", pages,
                     "beside", beside(options, d));
}

/* Makes the record of a probe, to which posenc doctor adds a grade and findings.  Takes `neighbours`. */
static json_t *probe_record(const struct doctor_options *options, const struct doctor *d,
                            json_t *neighbours)
{
    const struct doctor_floor *cache = &d->floor[IN_CACHE], *dram = &d->floor[IN_DRAM];
    json_t *machine = json_pack("{s:s,s:i,s:f,s:{},s:o,s:o}", "t", "doctor", "cpu", d->cpu,
                                "seconds", d->seconds, "detectable", "measured",
                                measured(options, d), "neighbours", neighbours);
    if (!machine)
        return NULL;
    json_t *apart = json_object_get(machine, "detectable");
    if (cache->call_ns > 0.0)
        set_number(apart, "cache_pct", 100.0 * cache->floor.apart);
    if (dram->call_ns > 0.0)
        set_number(apart, "dram_pct", 100.0 * dram->floor.apart);
    if (cache->call_ns > 0.0)
        set_number(machine, "control_pct",
                   100.0 * expm1(dram->call_ns > 0.0
                                     ? fmax(cache->floor.process, dram->floor.process)
                                     : cache->floor.process));
    return machine;
}

/* ---- The run ---- */

/* Duration of the whole, for the line of progress. */
static const double full_s = 13.0, quick_s = 3.0;

static bool on_step(void *user, double done, const char *doing)
{
    const double *all_s = user;
    progress(&(struct progress){ .what = "doctor",
                                 .unit = "seconds",
                                 .done = done * *all_s,
                                 .total = (size_t)*all_s,
                                 .notes = "",
                                 .where = doing });
    return outputs_interrupted() != 0;
}

/* Returns a CPU that this program may use, on the core of `cpu` or on another one; -1: none. */
static int neighbour_of(const json_t *env, int cpu, bool same_core)
{
    const char *allowed = record_text(env, "cpus.list"),
               *siblings = record_text(env, "cpus.siblings");
    for (int other = 0; cpu >= 0 && other < NEIGHBOUR_CPUS; other++)
        if (other != cpu && cpu_list_has(allowed, other) &&
            cpu_list_has(siblings, other) == same_core)
            return other;
    return -1;
}

/* Measures, and appends the record. Returns NULL, or why nothing could be measured. */
static const char *examine(struct work *work)
{
    const json_t *env = json_array_get(work->records.list, 1);
    const int cpu = record_int(env, "cpus.best", -1);
    double all_s = work->cli->quick ? quick_s : full_s;
    struct doctor_options options = { .quick = work->cli->quick,
                                      .cpu = cpu,
                                      .loose = record_value(env, "cpus.allowed", 1.0) > 1.0,
                                      .beside = { neighbour_of(env, cpu, true),
                                                  neighbour_of(env, cpu, false) },
                                      .stop = on_step,
                                      .user = &all_s };
    struct doctor *doctor = malloc(sizeof *doctor);
    struct neighbours *seen = calloc(2, sizeof *seen);
    const char *obstacle = "no memory";
    if (doctor && seen) {
        neighbours_look("", clock_now(), &seen[0]);
        work->timing = noise_watch_start();
        obstacle = doctor_measure(&options, doctor);
        work->noise = noise_watch_stop(&work->timing);
        neighbours_look("", clock_now(), &seen[1]);
        if (!obstacle)
            records_append(&work->records,
                           probe_record(&options, doctor,
                                        neighbours_between(&seen[0], &seen[1], getpid())));
        neighbours_free(&seen[0]);
        neighbours_free(&seen[1]);
    }
    free(doctor);
    free(seen);
    progress_clear();
    return obstacle;
}

/* Opens the records on stdout. There is one machine in them, and nothing of the library's parts. */
static int begin(struct work *work)
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
    const char *emulator = bench_emulator();
    cli->command = "doctor";
    if (emulator) {
        cli_refuse(cli, "nothing is measured here", NULL, "%s", emulator);
        return EXIT_NOTHING;
    }
    if (begin(&work) != EXIT_FINE) {
        work_give_up(&work);
        return EXIT_USAGE;
    }
    const char *obstacle = examine(&work);
    work_end_if_interrupted(&work);
    if (!obstacle)
        return work_end(&work, true);
    cli_refuse(cli, "nothing could be measured", NULL, "%s", obstacle);
    work_give_up(&work);
    return EXIT_NOTHING;
}
