/*
 * Reads counters of noise (see noise.h). proc(5) describes /proc/stat and /proc/vmstat, the kernel's documentation
 * accounting/psi and cgroup-v2.
 */
#define _DEFAULT_SOURCE
#include "noise.h"
#include "base/clock.h"
#include "env_parts.h"
#include "sysfs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Reads the ticks of all CPUs since boot: total, stolen by the hypervisor, and busy. */
static void read_ticks(const char *root, struct noise_counters *watch)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, KINDS };
    unsigned long long tick[KINDS] = { 0 };
    FILE *file = sysfs_open(root, "/proc/stat");
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

static struct optional_counter known_if(bool known, double value)
{
    return (struct optional_counter){ known, known ? value : 0.0 };
}

/* Reads "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", in microseconds. */
static struct optional_counter read_pressure(const char *root, const char *resource)
{
    char line[128];
    sysfs_line(root, line, sizeof line, "/proc/pressure/%s", resource);
    const char *total = strncmp(line, "some ", 5) == 0 ? strstr(line, "total=") : NULL;
    return known_if(total != NULL, total ? 1e-6 * strtod(total + strlen("total="), NULL) : 0.0);
}

static void read_counters(const char *root, struct noise_counters *watch)
{
    const char *vmstat = "/proc/vmstat";
    double throttled = cgroup_limits(root).throttled_s,
           in = sysfs_value_number(root, vmstat, "pswpin", -1.0),
           out = sysfs_value_number(root, vmstat, "pswpout", 0.0);
    /* All CPUs of a package are throttled together: the count of the first one is enough. */
    double events = (double)sysfs_number(
        root, -1, "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count");
    watch->throttled_s = known_if(throttled >= 0.0, throttled);
    watch->swapped = known_if(in >= 0.0, in + out);
    watch->throttle_events = known_if(events >= 0.0, events);
    watch->wait_cpu_s = read_pressure(root, "cpu");
    watch->wait_io_s = read_pressure(root, "io");
    watch->wait_mem_s = read_pressure(root, "memory");
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

struct noise_counters noise_read_from(const char *root)
{
    struct noise_counters watch = { 0 };
    struct rusage own, children;
    watch.wall_s = clock_now();
    if (getrusage(RUSAGE_SELF, &own) == 0 && getrusage(RUSAGE_CHILDREN, &children) == 0) {
        watch.involuntary_switches = own.ru_nivcsw + children.ru_nivcsw;
        watch.own_s = seconds_of(own.ru_utime) + seconds_of(own.ru_stime) +
                      seconds_of(children.ru_utime) + seconds_of(children.ru_stime);
    }
    read_ticks(root, &watch);
    read_counters(root, &watch);
    return watch;
}

struct noise_counters noise_read(void) { return noise_read_from(""); }

/* Adds the growth of a counter, times `scale`, if both readings are known. */
static void set_growth(json_t *noise, const char *name, struct optional_counter start,
                       struct optional_counter stop, double scale)
{
    double growth = stop.value - start.value;
    if (start.known && stop.known)
        json_object_set_new(noise, name, json_real(growth > 0.0 ? scale * growth : 0.0));
}

json_t *noise_between(const struct noise_counters *start, const struct noise_counters *stop,
                      double load1)
{
    /* Counters may go backwards when a machine migrates. */
    const double ticks = (double)stop->ticks - (double)start->ticks,
                 steal = (double)stop->steal - (double)start->steal;
    double wall = stop->wall_s - start->wall_s, per_cent = wall > 0.0 ? 100.0 / wall : 0.0;
    double others = (stop->busy_s - start->busy_s) - (stop->own_s - start->own_s);
    json_t *noise = json_pack(
        "{s:f,s:f,s:I,s:f}", "wall_s", wall, "steal_pct",
        ticks > 0.0 ? 100.0 * fmax(steal, 0.0) / ticks : 0.0, "involuntary_switches",
        (json_int_t)(stop->involuntary_switches - start->involuntary_switches), "load1", load1);
    if (!noise)
        return NULL;
    if (ticks > 0.0 && wall > 0.0)
        json_object_set_new(noise, "others", json_real(others > 0.0 ? others / wall : 0.0));
    set_growth(noise, "throttled_pct", start->throttled_s, stop->throttled_s, per_cent);
    set_growth(noise, "wait_cpu_pct", start->wait_cpu_s, stop->wait_cpu_s, per_cent);
    set_growth(noise, "wait_io_pct", start->wait_io_s, stop->wait_io_s, per_cent);
    set_growth(noise, "wait_mem_pct", start->wait_mem_s, stop->wait_mem_s, per_cent);
    set_growth(noise, "swapped", start->swapped, stop->swapped, 1.0);
    set_growth(noise, "heat", start->throttle_events, stop->throttle_events, 1.0);
    return noise;
}

json_t *noise_since(const struct noise_counters *start)
{
    struct noise_counters stop = noise_read();
    return noise_between(start, &stop, env_load_average());
}
