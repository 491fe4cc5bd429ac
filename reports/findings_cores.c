/*
 * Findings about the CPU that is measured on and those beside it; see findings.h.
 */
#include "findings.h"
#include "noise.h"
#include "records.h"
#include "sysfs.h"

#include <math.h>
#include <string.h>

/* Differences of what is told apart, and loads, that are felt. */
static const double felt_pct = 0.5, felt_busy = 0.05;

/* What more the one cannot tell apart; NaN where either had no time for a whole comparison. */
static double worse_than(const json_t *a, const json_t *b)
{
    bool whole = record_value(a, "comparisons", 0.0) >= 1.0 &&
                 record_value(b, "comparisons", 0.0) >= 1.0;
    return whole ? record_value(a, "apart_pct", (double)NAN) -
                       record_value(b, "apart_pct", (double)NAN)
                 : (double)NAN;
}

/* What the system's choice of a CPU costs, against one CPU. */
static void pinning(struct diagnosis *d)
{
    static const char *const places[] = { "cache", "DRAM" };
    int cpu = record_int(d->machine, "cpu", -1);
    double cost = (double)NAN;
    const char *at = places[0];
    char command[80];
    for (size_t i = 0; i < 2; i++) {
        double more = worse_than(floor_in(d->machine, places[i], false),
                                 floor_in(d->machine, places[i], true));
        if (!isnan(more) && !(cost >= more)) {
            cost = more;
            at = places[i];
        }
    }
    snprintf(command, sizeof command, "taskset -c %d posenc compare BASE HEAD", cpu);
    const struct remedy keep = { "Keep the program on one CPU.", command, false };
    if (cpu < 0)
        found_hidden(d, "pinning", "a way to keep a program on one CPU");
    else if (record_value(d->env, "cpus.pinned", -1.0) >= 0.0)
        found(d, FINDING_FINE, "pinning", 0.0, NULL, "kept to CPU %d by who started it", cpu);
    else if (cost > felt_pct)
        found(d, FINDING_COSTS, "pinning", cost, &keep,
              "free to move, it tells apart %.1f %% in %s; kept to CPU %d, %.1f %%",
              record_value(floor_in(d->machine, at, false), "apart_pct", 0.0), at, cpu,
              record_value(floor_in(d->machine, at, true), "apart_pct", 0.0));
    else if (!isnan(cost))
        found(d, FINDING_FINE, "pinning", 0.0, NULL,
              "kept to CPU %d or not, it tells the same apart", cpu);
}

/* What was measured beside a CPU of that kind; NULL. */
static const json_t *beside(const struct diagnosis *d, bool sibling)
{
    const json_t *list = json_object_get(json_object_get(d->machine, "measured"), "beside");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_true(json_object_get(json_array_get(list, i), "sibling")) == sibling)
            return json_array_get(list, i);
    return NULL;
}

static double busy_of(const struct diagnosis *d, int cpu)
{
    const json_t *busy = json_object_get(json_object_get(d->machine, "neighbours"), "busy");
    const json_t *share = cpu >= 0 ? json_array_get(busy, (size_t)cpu) : NULL;
    return share ? json_number_value(share) : 0.0;
}

/* "3.1 times as long in cache, 1.2 in DRAM"; and the larger of them in %. */
static double times_words(const json_t *beside, char *text, size_t bytes)
{
    double cache = record_value(beside, "cache", -1.0),
           dram = record_value(beside, "dram", -1.0);
    text[0] = 0;
    if (fmax(cache, dram) == 1.0)
        snprintf(text, bytes, "no longer, as far as it can be told");
    else if (cache > 0.0 && dram > 0.0)
        snprintf(text, bytes, "%.2f times as long in cache and %.2f times in DRAM", cache,
                 dram);
    else if (cache > 0.0 || dram > 0.0)
        snprintf(text, bytes, "%.2f times as long", fmax(cache, dram));
    double most = fmax(cache, dram);
    return most > 1.0 ? 100.0 * (most - 1.0) : most > 0.0 ? 0.0 : COST_UNKNOWN;
}

/* The first CPU of the same core that is not the one measured on; -1. */
static int sibling_of(const struct diagnosis *d)
{
    const char *list = record_text(d->env, "cpus.siblings");
    int cpu = record_int(d->machine, "cpu", record_int(d->env, "cpus.best", -1));
    for (int other = 0; cpu >= 0 && other < 4096; other++)
        if (other != cpu && cpu_list_has(list, other) && cpu_list_has(list, cpu))
            return other;
    return -1;
}

static void siblings(struct diagnosis *d)
{
    static const struct remedy off = {
        "Keep the other thread of the core idle, or switch them off.",
        "echo off | sudo tee /sys/devices/system/cpu/smt/control", true
    };
    const char *smt = record_text(d->env, "cpus.smt");
    int other = sibling_of(d);
    char words[96];
    double cost = times_words(beside(d, true), words, sizeof words),
           busy = 100.0 * busy_of(d, other);
    if (other >= 0 && *words)
        found(
            d, busy > 100.0 * felt_busy ? FINDING_COSTS : FINDING_NOTE, "SMT", cost, &off,
            "CPU %d is a thread of the same core and was busy for %.0f %% of the time; with a "
            "program on it a call takes %s",
            other, busy, words);
    else if (other >= 0)
        found(d, busy > 100.0 * felt_busy ? FINDING_COSTS : FINDING_NOTE, "SMT", COST_UNKNOWN,
              &off, "CPU %d is a thread of the same core and was busy for %.0f %% of the time",
              other, busy);
    else if (!*record_text(d->env, "cpus.siblings") && (!*smt || strcmp(smt, NOT_EXPOSED) == 0))
        found_hidden(d, "SMT", "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    else
        found(d, FINDING_FINE, "SMT", 0.0, NULL,
              "no other thread shares the core, as far as it "
              "is told");
}

/* What a program on another core takes of caches and memory. */
static void shared_memory(struct diagnosis *d)
{
    static const struct remedy quiet = {
        "Let nothing run on the other cores while it measures.", "top", false
    };
    const json_t *other = beside(d, false);
    char words[96], others[96];
    double cost = times_words(other, words, sizeof words);
    int cpu = record_int(other, "cpu", -1);
    bool busy =
        busy_of(d, cpu) > felt_busy || noise_of_others(d->env, d->noise, others, sizeof others);
    if (cost < 0.0)
        return;
    found(d,
          cost <= 2.0 ? FINDING_FINE
          : busy      ? FINDING_COSTS
                      : FINDING_NOTE,
          "shared memory", cost, cost <= 2.0 ? NULL : &quiet,
          "while CPU %d does the same a call takes %s", cpu, words);
}

static void kinds(struct diagnosis *d)
{
    double n = record_value(d->env, "cpus.kinds", 1.0);
    int best = record_int(d->env, "cpus.best", 0);
    char command[80];
    snprintf(command, sizeof command, "taskset -c %d posenc bench", best);
    const struct remedy keep = { "Keep the program on a core of one kind.", command, false };
    if (n > 1.0)
        found(d, FINDING_NOTE, "kinds of core", COST_UNKNOWN, &keep,
              "its cores are of %.0f kinds of different speed; CPU %d is of the fastest", n,
              best);
}

static void free_cores(struct diagnosis *d)
{
    const char *isolated = record_text(d->env, "cpus.isolated");
    if (*isolated)
        found(d, FINDING_FINE, "isolation", 0.0, NULL,
              "the kernel puts nothing on CPU %s by itself", isolated);
}

void find_cores(struct diagnosis *d)
{
    pinning(d);
    siblings(d);
    shared_memory(d);
    kinds(d);
    free_cores(d);
}
