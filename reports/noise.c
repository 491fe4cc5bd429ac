/*
 * Watches what else a machine does, and says so; see noise.h.
 */
#define _DEFAULT_SOURCE
#include "noise.h"
#include "document.h"
#include "ranking.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- While measuring ---- */

/* Ticks of all CPUs since boot (proc(5), /proc/stat): those a hypervisor gave to others, all of them,
 * and those in which something ran here. */
static void cpu_ticks(struct noise_watch *watch)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, KINDS };
    unsigned long long tick[KINDS] = { 0 };
    FILE *file = fopen("/proc/stat", "r");
    if (!file)
        return;
    if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &tick[USER], &tick[NICE],
               &tick[SYSTEM], &tick[IDLE], &tick[IOWAIT], &tick[IRQ], &tick[SOFTIRQ],
               &tick[STEAL]) < 4)
        memset(tick, 0, sizeof tick);
    fclose(file);
    for (int i = 0; i < KINDS; i++)
        watch->ticks += tick[i];
    watch->steal = tick[STEAL];
    watch->busy_s = (double)(watch->ticks - tick[STEAL] - tick[IDLE] - tick[IOWAIT]) /
                    (double)sysconf(_SC_CLK_TCK);
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

struct noise_watch noise_watch_start(void)
{
    struct noise_watch watch = { 0 };
    struct rusage own, children;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    watch.wall_s = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    if (getrusage(RUSAGE_SELF, &own) == 0 && getrusage(RUSAGE_CHILDREN, &children) == 0) {
        watch.involuntary_switches = own.ru_nivcsw;
        watch.own_s = seconds_of(own.ru_utime) + seconds_of(own.ru_stime) +
                      seconds_of(children.ru_utime) + seconds_of(children.ru_stime);
    }
    cpu_ticks(&watch);
    return watch;
}

json_t *noise_between(const struct noise_watch *start, const struct noise_watch *stop,
                      double load1)
{
    double ticks = (double)(stop->ticks - start->ticks), wall = stop->wall_s - start->wall_s;
    double others = (stop->busy_s - start->busy_s) - (stop->own_s - start->own_s);
    json_t *noise = json_pack(
        "{s:f,s:f,s:I,s:f}", "wall_s", wall, "steal_pct",
        ticks > 0.0 ? 100.0 * (double)(stop->steal - start->steal) / ticks : 0.0,
        "involuntary_switches",
        (json_int_t)(stop->involuntary_switches - start->involuntary_switches), "load1", load1);
    if (noise && ticks > 0.0 && wall > 0.0)
        json_object_set_new(noise, "others", json_real(others > 0.0 ? others / wall : 0.0));
    return noise;
}

json_t *noise_watch_stop(const struct noise_watch *start)
{
    struct noise_watch stop = noise_watch_start();
    double load[1] = { -1.0 };
    if (getloadavg(load, 1) != 1)
        load[0] = -1.0;
    return noise_between(start, &stop, load[0]);
}

/* ---- What the records say of it ---- */

static const double felt = 0.1;            /* share of a machine */
static const double far_from_itself = 3.0; /* a copy of a backend, in % */

bool noise_of_others(const json_t *env, const json_t *noise, char *words, size_t bytes)
{
    double cpus = record_value(env, "cpus.online", 1.0),
           others = record_value(noise, "others", -1.0),
           load = record_value(noise, "load1", record_value(env, "noise.load1", -1.0));
    if (others >= 0.0)
        snprintf(words, bytes, "other programs took %.1f of its %.0f CPUs", others, cpus);
    else
        snprintf(words, bytes, "the load average was %.1f on %.0f CPUs", load, cpus);
    return others >= 0.0 ? others > felt * cpus : load > cpus;
}

struct sentence {
    char *text;
    size_t at;
};

FORMATTED(2, 3) static void say(struct sentence *s, const char *format, ...)
{
    va_list list;
    if (s->at >= NOISE_TEXT)
        return;
    va_start(list, format);
    s->at += (size_t)vsnprintf(s->text + s->at, NOISE_TEXT - s->at, format, list);
    va_end(list);
}

/* What is severe enough to be said first, and what to do. */
static void say_disturbance(struct sentence *s, const struct results *r, bool many_noisy)
{
    char others[96];
    double steal = record_value(r->noise, "steal_pct", 0.0), copies = median_null(r);
    bool taken = noise_of_others(r->env, r->noise, others, sizeof others),
         stolen = steal > stolen_pct, apart = copies > far_from_itself;
    if (!(taken || stolen || apart || many_noisy))
        return;
    say(s, "**%s.**", taken || stolen ? "The machine was busy" : "The machine was not quiet");
    const char *begin = "  While it was measured ";
    if (taken)
        say(s, "%s%s", begin, others);
    if (stolen)
        say(s, "%sa hypervisor gave %.1f %% of its time to others", taken ? ", and " : begin,
            steal);
    if (taken || stolen)
        say(s, ".");
    if (apart)
        say(s, "  A backend was %.1f %% from its own copy (median over cases).", copies);
    say(s, "  %s, or give it more time with `--budget SECONDS`.  ",
        taken ? "What runs beside it is shown by `top`: end that and run again"
              : "Run again at a quieter time or on a machine of your own");
}

bool noise_warning(const struct results *r, char text[NOISE_TEXT])
{
    struct sentence s = { text, 0 };
    size_t timed = 0, noisy = 0;
    for (size_t i = 0; i < r->n_bench; i++) {
        timed += !*r->bench[i].refused;
        noisy += !*r->bench[i].refused && is_noisy(&r->bench[i]);
    }
    if (timed > 0)
        say_disturbance(&s, r, 4 * noisy >= timed);
    if (noisy > 0)
        say(&s,
            "%zu of %zu timings are noisy: their interval is wider than 10 %%, or a copy of a "
            "backend was further than that from itself, or they are a fifth above the roof and "
            "not known to 3 %%.  Such are shown and decide nothing.",
            noisy, timed);
    while (s.at > 0 && s.at < NOISE_TEXT && text[s.at - 1] == ' ')
        text[--s.at] = 0;
    return s.at > 0;
}
