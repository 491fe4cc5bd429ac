/*
 * posenc bench --probe: measures what a machine does to timings, for posenc doctor.
 */
#define _POSIX_C_SOURCE 200809L
#include "bench/doctor.h"
#include "bench/emulation.h"
#include "base/machine/neighbours.h"
#include "base/machine/sysfs.h"
#include "emit.h"
#include "probe.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
        neighbours_look("", noise_watch_start().wall_s, &seen[0]);
        work->timing = noise_watch_start();
        obstacle = doctor_measure(&options, doctor);
        work->noise = noise_watch_stop(&work->timing);
        neighbours_look("", noise_watch_start().wall_s, &seen[1]);
        if (!obstacle)
            records_append(
                &work->records,
                emit_probe(&options, doctor, neighbours_between(&seen[0], &seen[1], getpid())));
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
