/*
 * Reads counters of noise (see noise.h). proc(5) describes /proc/stat, /proc/PID/stat and /proc/vmstat, the kernel's
 * documentation accounting/psi and cgroup-v2.
 */
#define _DEFAULT_SOURCE
#include "noise.h"
#include "base/clock.h"
#include "base/records.h"
#include "env.h"
#include "sysfs.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Clock ticks of one CPU or of all. */
struct cpu_ticks {
    unsigned long long total, steal;
    double busy_s; /* without the time that the hypervisor took */
};

/* Reads a line "cpu ..." of all CPUs, or "cpu3 ..." of one. Returns false for another line. */
static bool read_ticks(const char *line, struct cpu_ticks *ticks)
{
    unsigned long long user, nice, system, idle, iowait = 0, irq = 0, softirq = 0, steal = 0;
    *ticks = (struct cpu_ticks){ .total = 0 };
    if (strncmp(line, "cpu", strlen("cpu")) != 0 ||
        sscanf(line + strcspn(line, " "), "%llu %llu %llu %llu %llu %llu %llu %llu", &user,
               &nice, &system, &idle, &iowait, &irq, &softirq, &steal) < 4)
        return false;
    const unsigned long long busy = user + nice + system + irq + softirq;
    ticks->total = busy + idle + iowait + steal;
    ticks->steal = steal;
    ticks->busy_s = (double)busy / (double)sysconf(_SC_CLK_TCK);
    return true;
}

/* ---- Counters ---- */

/* Returns the seconds for which tasks waited for a resource, or -1 if the kernel does not report them. Its line is "some
 * avg10=0.00 avg60=0.00 avg300=0.00 total=1234", in microseconds. */
static double read_pressure(const char *resource)
{
    char line[128];
    sysfs_line(line, sizeof line, "/proc/pressure/%s", resource);
    const char *total = strncmp(line, "some ", 5) == 0 ? strstr(line, "total=") : NULL;
    return total ? 1e-6 * strtod(total + strlen("total="), NULL) : -1.0;
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

struct noise_counters noise_read(void)
{
    struct noise_counters now = { .wall_s = clock_now() };
    struct rusage own, children;
    struct cpu_ticks ticks;
    char line[256];
    if (getrusage(RUSAGE_SELF, &own) == 0 && getrusage(RUSAGE_CHILDREN, &children) == 0) {
        now.involuntary_switches = own.ru_nivcsw + children.ru_nivcsw;
        now.own_s = seconds_of(own.ru_utime) + seconds_of(own.ru_stime) +
                    seconds_of(children.ru_utime) + seconds_of(children.ru_stime);
    }
    sysfs_line(line, sizeof line, "/proc/stat");
    read_ticks(line, &ticks);
    now.busy_s = ticks.busy_s;
    now.ticks = ticks.total;
    now.steal = ticks.steal;
    const double in = sysfs_value_number("/proc/vmstat", "pswpin"),
                 out = sysfs_value_number("/proc/vmstat", "pswpout");
    now.other[NOISE_THROTTLED] = cgroup_limits().throttled_s;
    now.other[NOISE_WAIT_CPU] = read_pressure("cpu");
    now.other[NOISE_WAIT_IO] = read_pressure("io");
    now.other[NOISE_WAIT_MEM] = read_pressure("memory");
    now.other[NOISE_SWAPPED] = in < 0.0 || out < 0.0 ? -1.0 : in + out;
    /* All CPUs of a package are throttled together: the count of the first one is enough. */
    now.other[NOISE_HEAT] =
        sysfs_number("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count");
    return now;
}

json_t *noise_between(const struct noise_counters *start, const struct noise_counters *stop,
                      double load1)
{
    static const struct {
        const char *name;
        bool is_time;
    } counters[NOISE_COUNTERS] = {
        [NOISE_THROTTLED] = { "throttled_pct", true },
        [NOISE_WAIT_CPU] = { "wait_cpu_pct", true },
        [NOISE_WAIT_IO] = { "wait_io_pct", true },
        [NOISE_WAIT_MEM] = { "wait_mem_pct", true },
        [NOISE_SWAPPED] = { "swapped", false },
        [NOISE_HEAT] = { "heat", false },
    };
    /* Counters may go backwards when a machine migrates. */
    const double ticks = (double)stop->ticks - (double)start->ticks,
                 steal = (double)stop->steal - (double)start->steal;
    double wall = stop->wall_s - start->wall_s, per_cent = wall > 0.0 ? 100.0 / wall : 0.0;
    double others_s = (stop->busy_s - start->busy_s) - (stop->own_s - start->own_s);
    json_t *noise = json_pack(
        "{s:f,s:f,s:I,s:f}", "wall_s", wall, "steal_pct",
        ticks > 0.0 ? 100.0 * fmax(steal, 0.0) / ticks : 0.0, "involuntary_switches",
        (json_int_t)(stop->involuntary_switches - start->involuntary_switches), "load1", load1);
    if (!noise)
        return NULL;
    if (ticks > 0.0 && wall > 0.0)
        json_object_set_new(noise, "others", json_real(others_s > 0.0 ? others_s / wall : 0.0));
    for (int i = 0; i < NOISE_COUNTERS; i++) {
        const double growth = fmax(stop->other[i] - start->other[i], 0.0);
        if (start->other[i] >= 0.0 && stop->other[i] >= 0.0)
            json_object_set_new(noise, counters[i].name,
                                json_real(counters[i].is_time ? per_cent * growth : growth));
    }
    return noise;
}

json_t *noise_since(const struct noise_counters *start)
{
    const struct noise_counters stop = noise_read();
    return noise_between(start, &stop, env_load_average());
}

/* ---- CPU usage ---- */

/* Returns the busy seconds of each CPU since boot, by its number; 0 for CPUs that are offline. */
static json_t *read_busy_cpus(void)
{
    FILE *file = sysfs_open("/proc/stat");
    json_t *busy = json_array();
    struct cpu_ticks ticks;
    char line[1024];
    while (file && fgets(line, sizeof line, file)) {
        if (!read_ticks(line, &ticks) || line[strlen("cpu")] == ' ')
            continue; /* another line, or that of all CPUs */
        const size_t cpu = strtoul(line + strlen("cpu"), NULL, 10);
        while (json_array_size(busy) <= cpu)
            json_array_append_new(busy, json_real(0.0));
        const double steal_s = (double)ticks.steal / (double)sysconf(_SC_CLK_TCK);
        json_array_set_new(busy, cpu, json_real(ticks.busy_s + steal_s));
    }
    if (file)
        fclose(file);
    return busy;
}

/* Parses "123 (name) S ppid ...". The name may have blanks and brackets. The 12th and 13th fields after it are ticks of
 * CPU time. Returns NULL for another text. */
static json_t *parse_process(char *line)
{
    char *open = strchr(line, '('), *close = strrchr(line, ')');
    unsigned long long user, system;
    if (!open || !close || close < open ||
        sscanf(close + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu", &user,
               &system) != 2)
        return NULL;
    *close = 0;
    return json_pack("{s:o,s:f}", "name", record_string(open + 1), "cpu_s",
                     (double)(user + system) / (double)sysconf(_SC_CLK_TCK));
}

json_t *cpu_usage_snapshot(void)
{
    char folder[SYSFS_PATH], line[1024];
    json_t *processes = json_object();
    snprintf(folder, sizeof folder, "%.200s/proc", sysfs_root);
    DIR *all = opendir(folder);
    for (struct dirent *entry; all && (entry = readdir(all));)
        if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name) &&
            sysfs_line(line, sizeof line, "/proc/%.16s/stat", entry->d_name))
            json_object_set_new(processes, entry->d_name, parse_process(line));
    if (all)
        closedir(all);
    return json_pack("{s:f,s:o,s:o}", "wall_s", clock_now(), "busy", read_busy_cpus(),
                     "processes", processes);
}

/* Returns {name: seconds}: the CPU time between two snapshots of all processes of a name. */
static json_t *sum_by_name(const json_t *start, json_t *stop, long self)
{
    json_t *sums = json_object(), *process;
    const char *pid;
    json_object_foreach(stop, pid, process)
    {
        const char *name = record_text(process, "name");
        const double used_s = record_value(process, "cpu_s", 0.0) -
                              record_value(json_object_get(start, pid), "cpu_s", 0.0),
                     sum_s = json_number_value(json_object_get(sums, name));
        if (strtol(pid, NULL, 10) != self && used_s > 0.0)
            json_object_set_new(sums, name, json_real(sum_s + used_s));
    }
    return sums;
}

/* Returns the share of each CPU's time that it was busy, from the busy seconds at start and stop. */
static json_t *busy_shares(const json_t *start, const json_t *stop, double wall_s)
{
    json_t *shares = json_array();
    for (size_t cpu = 0; cpu < json_array_size(stop) && wall_s > 0.0; cpu++) {
        const double busy_s = json_number_value(json_array_get(stop, cpu)) -
                              json_number_value(json_array_get(start, cpu));
        json_array_append_new(shares, json_real(fmin(fmax(busy_s / wall_s, 0.0), 1.0)));
    }
    return shares;
}

/* Moves the name with most seconds, if these are at least `least_s`, from `sums` to the end of `taken`. */
static void take_largest(json_t *sums, double least_s, double wall_s, json_t *taken)
{
    const char *name, *top = NULL;
    json_t *sum;
    json_object_foreach(sums, name, sum) if (json_number_value(sum) >= least_s)
    {
        least_s = json_number_value(sum);
        top = name;
    }
    if (!top)
        return;
    json_array_append_new(taken, json_pack("{s:s,s:f}", "name", top, "cpus", least_s / wall_s));
    json_object_del(sums, top);
}

json_t *cpu_usage_between(const json_t *start, const json_t *stop, long self)
{
    enum { MOST_NAMES = 4 };
    static const double least_cpus = 0.02; /* that a name uses to be reported */
    const double wall_s =
        record_value(stop, "wall_s", 0.0) - record_value(start, "wall_s", 0.0);
    json_t *taken = json_array(), *sums = sum_by_name(json_object_get(start, "processes"),
                                                      json_object_get(stop, "processes"), self);
    for (int i = 0; i < MOST_NAMES && wall_s > 0.0; i++)
        take_largest(sums, least_cpus * wall_s, wall_s, taken);
    json_decref(sums);
    return json_pack(
        "{s:o,s:o}", "busy",
        busy_shares(json_object_get(start, "busy"), json_object_get(stop, "busy"), wall_s),
        "taken", taken);
}
