/* Noise of the machine during a measurement, from counters before and after it. */
#ifndef POSENC_WATCH_H
#define POSENC_WATCH_H

#include <jansson.h>
#include <stdbool.h>

/* Counters of the whole machine, since a time in the past; 0 if the system does not report one. */
struct noise_watch {
    double wall_s, busy_s,
        own_s; /* CPU time of all programs; of this process and its children */
    long involuntary_switches;
    unsigned long long steal, ticks;
    /* A counter that only some systems report. */
    struct watched {
        bool known;
        double count;
    } throttled_s,                         /* waited for a quota */
        wait_cpu_s, wait_io_s, wait_mem_s, /* some task waited: pressure-stall information */
        swapped,                           /* pages, in and out */
        heat;                              /* times a CPU was throttled for heat */
};
struct noise_watch noise_watch_start(void);
/* `root`: where /proc and /sys are (sysfs.h). */
struct noise_watch noise_watch_at(const char *root);
/* Returns the noise since then: {wall_s, steal_pct, involuntary_switches, load1, others, throttled_pct, wait_cpu_pct,
 * wait_io_pct, wait_mem_pct, swapped, heat}. `others` is the average number of CPUs that other programs took. Counters
 * that the system does not report are left out. */
json_t *noise_watch_stop(const struct noise_watch *start);
/* Does the same between two readings. */
json_t *noise_between(const struct noise_watch *start, const struct noise_watch *stop,
                      double load1);

#endif
