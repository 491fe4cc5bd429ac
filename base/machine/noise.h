/* Noise of the machine during a measurement: the growth of system counters, {"wall_s":60.1,"steal_pct":0.2,...}, and the
 * programs that used the CPUs, {"busy":[0.5,0.1],"taken":[{"name":"cc1","cpus":0.7}]}. */
#ifndef POSENC_NOISE_H
#define POSENC_NOISE_H

#include <jansson.h>

/* Counters that only some systems report. */
enum noise_counter {
    NOISE_THROTTLED, /* seconds of waiting for a CPU quota */
    NOISE_WAIT_CPU,  /* seconds of pressure-stall information, and the next two */
    NOISE_WAIT_IO,
    NOISE_WAIT_MEM,
    NOISE_SWAPPED, /* pages, in and out */
    NOISE_HEAT,    /* events of throttling for heat */
    NOISE_COUNTERS
};

/* Counters of the whole machine, and where a comment says so, of this process and its children that it waited for. */
struct noise_counters {
    double wall_s;
    double busy_s;                /* CPU time of all programs */
    double own_s;                 /* CPU time of this process and these children */
    long involuntary_switches;    /* of this process and these children */
    unsigned long long ticks;     /* clock ticks of all CPUs since boot; 0: not reported */
    unsigned long long steal;     /* of these, taken by the hypervisor */
    double other[NOISE_COUNTERS]; /* below 0: not reported */
};
struct noise_counters noise_read(void);
/* Returns the noise since a reading: {wall_s, steal_pct, involuntary_switches, load1, others, throttled_pct,
 * wait_cpu_pct, wait_io_pct, wait_mem_pct, swapped, heat}. `others` is the average number of CPUs that other programs,
 * and children that still run, used; load1 is the load average at the end. Omits counters that the system does not
 * report, except that steal_pct is 0 then. Returns NULL without memory. */
json_t *noise_since(const struct noise_counters *start);
/* Returns the same between two readings. */
json_t *noise_between(const struct noise_counters *start, const struct noise_counters *stop,
                      double load1);

/* Returns the CPU time so far: {wall_s, busy: seconds of each CPU, processes: {PID: {name, cpu_s}}}. A CPU is also busy
 * while the hypervisor takes it. In a container, only its own processes are visible. */
json_t *cpu_usage_snapshot(void);
/* Returns {busy: share of each CPU, taken: [{name, cpus}]} between two snapshots: the four program names that used most
 * CPU time, with the average number of CPUs of all processes of that name. The process `self`, and processes that ended
 * before the second snapshot, are not counted. */
json_t *cpu_usage_between(const json_t *start, const json_t *stop, long self);

#endif
