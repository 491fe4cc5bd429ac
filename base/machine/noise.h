/* Noise of the machine during a measurement: the growth of system counters. */
#ifndef POSENC_NOISE_H
#define POSENC_NOISE_H

#include <jansson.h>
#include <stdbool.h>

/* A counter that only some systems report. */
struct optional_counter {
    bool known;
    double value;
};

/* Counters of the whole machine, and where a comment says so, of this process and its children that it waited for. */
struct noise_counters {
    double wall_s;
    double busy_s;             /* CPU time of all programs */
    double own_s;              /* CPU time of this process and these children */
    long involuntary_switches; /* of this process and these children */
    unsigned long long ticks;  /* clock ticks of all CPUs since boot; 0: not reported */
    unsigned long long steal;  /* of these, taken by the hypervisor */
    struct optional_counter throttled_s;                       /* waiting for a CPU quota */
    struct optional_counter wait_cpu_s, wait_io_s, wait_mem_s; /* pressure-stall information */
    struct optional_counter swapped;                           /* pages, in and out */
    struct optional_counter throttle_events;                   /* for heat */
};
struct noise_counters noise_read(void);
/* Reads the counters below `root` (sysfs.h). */
struct noise_counters noise_read_from(const char *root);
/* Returns the noise since a reading: {wall_s, steal_pct, involuntary_switches, load1, others, throttled_pct,
 * wait_cpu_pct, wait_io_pct, wait_mem_pct, swapped, heat}. `others` is the average number of CPUs that other programs,
 * and children that still run, used; load1 is the load average at the end. Omits counters that the system does not
 * report, except that steal_pct is 0 then. Returns NULL without memory. */
json_t *noise_since(const struct noise_counters *start);
/* Returns the same between two readings. */
json_t *noise_between(const struct noise_counters *start, const struct noise_counters *stop,
                      double load1);

#endif
