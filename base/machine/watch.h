/*
 * What else a machine does while something is measured: counts before and after.
 */
#ifndef POSENC_WATCH_H
#define POSENC_WATCH_H

#include <jansson.h>
#include <stdbool.h>

/* Counts since some time past; of the whole machine where the system tells them (others: 0). */
struct noise_watch {
    double wall_s, busy_s, own_s; /* CPU time of everybody; of this process and its children */
    long involuntary_switches;
    unsigned long long steal, ticks;
    /* Of what not every system tells, whether it does. */
    struct watched {
        bool told;
        double count;
    } throttled_s,                         /* a quota made it wait */
        wait_cpu_s, wait_io_s, wait_mem_s, /* some task of the machine waited: pressure-stall */
        swapped,                           /* pages, in and out */
        heat;                              /* times a CPU was slowed because it was hot */
};
struct noise_watch noise_watch_start(void);
/* `root`: where /proc and /sys are (sysfs.h). */
struct noise_watch noise_watch_at(const char *root);
/* What happened since: {wall_s, steal_pct, involuntary_switches, load1, others, throttled_pct,
 * wait_cpu_pct, wait_io_pct, wait_mem_pct, swapped, heat}; others: how many CPUs other programs took on
 * average.  Left out is what the system does not tell. */
json_t *noise_watch_stop(const struct noise_watch *start);
/* The same between two counts. */
json_t *noise_between(const struct noise_watch *start, const struct noise_watch *stop,
                      double load1);

#endif
