/* Noise of the machine during a measurement: the growth of system counters. */
#ifndef POSENC_NOISE_H
#define POSENC_NOISE_H

#include <jansson.h>
#include <stdbool.h>

/* Counters of the whole machine. */
struct noise_counters {
    double wall_s;
    double busy_s, own_s; /* CPU time of all programs, and of this process and its children */
    long involuntary_switches;
    unsigned long long steal, ticks; /* taken by the hypervisor, and all; 0: not reported */
    /* Counters that only some systems report. */
    struct optional_counter {
        bool known;
        double count;
    } throttled_s,                         /* waiting for a CPU quota */
        wait_cpu_s, wait_io_s, wait_mem_s, /* pressure-stall information */
        swapped,                           /* pages, in and out */
        heat;                              /* thermal throttling events */
};
struct noise_counters noise_read(void);
/* Reads the counters below `root` (sysfs.h). */
struct noise_counters noise_read_from(const char *root);
/* Returns the noise since a reading: {wall_s, steal_pct, involuntary_switches, load1, others, throttled_pct,
 * wait_cpu_pct, wait_io_pct, wait_mem_pct, swapped, heat}. `others` is the average number of CPUs that other programs
 * used. Counters that the system does not report are omitted. */
json_t *noise_since(const struct noise_counters *start);
/* Returns the same between two readings. */
json_t *noise_between(const struct noise_counters *start, const struct noise_counters *stop,
                      double load1);

#endif
