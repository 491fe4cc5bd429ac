/*
 * Tests the record of a machine, its measurement quality (env.h), and the noise of a run (noise.h): on this machine, and on
 * imitated ones. An imitated machine is a folder with files of /proc and /sys, for example root/proc/uptime.
 */
#define _XOPEN_SOURCE 700
#include "base/machine/env.h"
#include "base/machine/noise.h"
#include "base/machine/sysfs.h"
#include "base/records.h"
#include "base/tap/tap.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct env_library library = { "1.2.3", "key", "one two", NULL, NULL };

static bool is_about(const json_t *record, const char *path, double value)
{
    return fabs(record_value(record, path, -1.0) - value) < 1e-9;
}

/* ---- An imitated machine ---- */

static char root[64]; /* sysfs_root of the imitated machine; "": none yet */

static void end_machine(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (*root && system(command) != 0)
        abort();
    root[0] = 0;
}

/* Replaces the imitated machine by one without files. */
static void begin_machine(void)
{
    end_machine();
    snprintf(root, sizeof root, "/tmp/posenc-machine-XXXXXX");
    if (!mkdtemp(root))
        abort();
    sysfs_root = root;
}

/* Writes a file of the machine, and makes its folders. */
PRINTF_LIKE(2, 3)
static void put_file(const char *path, const char *format, ...)
{
    char whole[SYSFS_PATH];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(whole, 0700);
        *slash = '/';
    }
    va_list list;
    va_start(list, format);
    FILE *file = fopen(whole, "w");
    if (!file || vfprintf(file, format, list) < 0 || fclose(file) != 0)
        abort();
    va_end(list);
}

#define CPU "/sys/devices/system/cpu"

/* Writes the CPUs that are online, all of which this process may use: "0-3". */
static void put_cpus(const char *online)
{
    put_file(CPU "/online", "%s\n", online);
    put_file("/proc/self/status", "Name:\tposenc\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\n",
             online);
}

/* Writes clock ticks of two CPUs. The first one was busy and stolen, the second one idle all the time. */
static void put_ticks(unsigned busy, unsigned idle, unsigned stolen)
{
    put_file("/proc/stat",
             "cpu  %u 0 0 %u 0 0 0 %u 0 0\ncpu0 %u 0 0 %u 0 0 0 %u 0 0\n"
             "cpu1 0 0 0 %u 0 0 0 0 0 0\nintr 5\n",
             busy, 2 * idle, stolen, busy, idle - busy, stolen, idle);
}

/* ---- Files of a machine ---- */

static void test_cgroups(void)
{
    begin_machine();
    put_file("/proc/self/cgroup", "0::/a/b\n");
    put_file("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
    put_file("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    put_file("/sys/fs/cgroup/a/cpu.stat", "throttled_usec 250000\n");
    struct cgroup_limits cpu = cgroup_limits();
    require(cpu.quota == 0.5 && cpu.throttled_s == 0.25,
            "the smallest quota of a group and the groups above it counts");
    begin_machine();
    put_file("/proc/self/cgroup", "4:cpu,cpuset:/docker/123\n3:cpuacct:/wrong\n0::/x\n");
    /* The container's own group is mounted at the top; "wrong" is a group of another controller. */
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put_file("/sys/fs/cgroup/cpu/wrong/cpu.cfs_quota_us", "1000\n");
    put_file("/sys/fs/cgroup/cpu/wrong/cpu.cfs_period_us", "100000\n");
    put_file("/sys/fs/cgroup/cpu/cpu.stat", "nr_throttled 2\nthrottled_time 3000000000\n");
    cpu = cgroup_limits();
    require(cpu.quota == 2.0 && cpu.throttled_s == 3.0,
            "version 1 in a container: its group is at the top");
    begin_machine();
    put_file("/proc/self/cgroup", "4:cpu:/\n");
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    cpu = cgroup_limits();
    require(cpu.quota == 0.0 && cpu.throttled_s < 0.0, "a quota of -1 is no limit");
}

/* Writes a process that used so many seconds of CPU time, one of them in the kernel. */
static void put_process(int pid, const char *name, long seconds)
{
    const long ticks = sysconf(_SC_CLK_TCK), in_kernel = seconds > 0 ? ticks : 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    put_file(path, "%d (%s) R 1 1 1 0 -1 0 0 0 0 0 %ld %ld 0 0 20\n", pid, name,
             seconds * ticks - in_kernel, in_kernel);
}

static json_t *snapshot_at(double wall_s)
{
    json_t *usage = cpu_usage_snapshot();
    json_object_set_new(usage, "wall_s", json_real(wall_s));
    return usage;
}

/* Other programs use a CPU in the ten seconds between two snapshots. */
static void test_neighbours(void)
{
    const unsigned ticks = (unsigned)sysconf(_SC_CLK_TCK);
    begin_machine();
    put_ticks(0, 100 * ticks, 0);
    put_process(10, "cc1", 6);
    put_process(11, "a) b (c", 0);
    put_process(12, "posenc", 0);
    put_file("/proc/uptime", "5 5\n");
    json_t *start = snapshot_at(100.0);
    put_ticks(5 * ticks, 110 * ticks, 0);
    put_process(10, "cc1", 11);
    put_process(13, "cc1", 2);
    put_process(11, "a) b (c", 1);
    put_process(12, "posenc", 10);
    json_t *stop = snapshot_at(110.0);
    json_t *usage = cpu_usage_between(start, stop, 12);
    const json_t *taken = json_object_get(usage, "taken"),
                 *busy = json_object_get(usage, "busy"), *first = json_array_get(taken, 0),
                 *second = json_array_get(taken, 1);
    require(json_array_size(taken) == 2 && record_is(first, "name", "cc1") &&
                is_about(first, "cpus", 0.7),
            "processes of a name are added up, those that began since with all their time");
    require(record_is(second, "name", "a) b (c") && is_about(second, "cpus", 0.1),
            "a name may have brackets; the program itself is no neighbour");
    require(json_array_size(busy) == 2 &&
                fabs(json_number_value(json_array_get(busy, 0)) - 0.5) < 1e-9 &&
                json_number_value(json_array_get(busy, 1)) == 0.0,
            "each CPU has its share, and the line of all of them is no CPU");
    json_decref(usage);
    json_decref(start);
    json_decref(stop);
}

static void test_reading(void)
{
    begin_machine();
    char line[64];
    put_file("/proc/meminfo", "MemAvailableNot: 5 kB\nMemAvailable:  7 kB\n");
    require(sysfs_value_number("/proc/meminfo", "MemAvailable") == 7.0,
            "a longer key is another key");
    require(!sysfs_line(line, sizeof line, "/no/such/%s", "file") && !*line &&
                sysfs_number("/none") == -1.0,
            "a missing file has no line and no number");
    require(cpu_list_has("0-2,7", 2) && !cpu_list_has("0-2,7", 3) && cpu_list_has("0-2,7", 7) &&
                !cpu_list_has("", 0) && !cpu_list_has("17", 7) &&
                cpu_list_count("0-2,7") == 4 && cpu_list_count("") == 0,
            "lists of CPUs have ranges and single CPUs");
}

static void test_best_cpu(void)
{
    begin_machine();
    put_cpus("0-3");
    put_file(CPU "/isolated", "1-2\n");
    json_t *env = env_record(&library);
    require(is_about(env, "cpus.best", 2.0), "an isolated CPU is the best to measure on");
    json_decref(env);
    put_file(CPU "/isolated", "\n");
    put_file("/sys/devices/cpu_core/cpus", "0-1\n");
    put_file("/sys/devices/cpu_atom/cpus", "2-3\n");
    env = env_record(&library);
    require(is_about(env, "cpus.best", 1.0) && is_about(env, "cpus.kinds", 2.0),
            "of two kinds of cores a fast one is the best");
    json_decref(env);
}

/* ---- Noise of a run ---- */

/* Returns the noise in the ten seconds since `start`, in which this program took no time. */
static json_t *noise_after_10_s(struct noise_counters start)
{
    struct noise_counters stop = noise_read();
    stop.wall_s = start.wall_s + 10.0;
    stop.own_s = start.own_s;
    return noise_between(&start, &stop, 0.1);
}

static void test_noise(void)
{
    begin_machine();
    put_cpus("0-1");
    put_file("/proc/self/status", "Cpus_allowed_list:\t1\n");
    put_file("/proc/pressure/io", "some avg10=0.00 total=1000000\nfull avg10=0.00\n");
    put_file(CPU "/cpu0/thermal_throttle/package_throttle_count", "5\n");
    put_file("/proc/vmstat", "pswpin 10\npswpout 10\n");
    put_file("/sys/fs/cgroup/cpu.stat", "nr_throttled 7\nthrottled_usec 1000000\n");
    put_ticks(0, 1000, 100);
    struct noise_counters start = noise_read();
    put_ticks(100, 1850, 300);
    put_file("/proc/pressure/io", "some avg10=0.00 total=2000000\nfull avg10=0.00\n");
    put_file(CPU "/cpu0/thermal_throttle/package_throttle_count", "9\n");
    put_file("/proc/vmstat", "pswpin 10\npswpout 25\n");
    put_file("/sys/fs/cgroup/cpu.stat", "nr_throttled 9\nthrottled_usec 1400000\n");
    json_t *noise = noise_after_10_s(start), *env = env_record(&library);
    /* 1700 of 2000 ticks are idle, 100 busy, and 200 stolen. */
    require(is_about(noise, "steal_pct", 10.0) && is_about(noise, "wait_io_pct", 10.0) &&
                is_about(noise, "heat", 4.0) && is_about(noise, "swapped", 15.0) &&
                is_about(noise, "throttled_pct", 4.0),
            "stolen time, waits, heat, swapping and throttling are those between two readings");
    require(is_about(env, "cpus.pinned", 1.0) && is_about(env, "cpus.best", 1.0) &&
                is_about(env, "cpus.online", 2.0) && is_about(env, "cpus.allowed", 1.0),
            "a program that may use one CPU is pinned to it");
    json_decref(env);
    json_decref(noise);
    begin_machine();
    noise = noise_after_10_s(noise_read());
    require(!json_object_get(noise, "throttled_pct") && !json_object_get(noise, "others") &&
                !json_object_get(noise, "heat"),
            "counters that the system lacks are omitted");
    json_decref(noise);
}

/* ---- This machine ---- */

static char grade_of(json_t *env)
{
    json_t *quality = env_quality(env);
    const char grade = record_text(quality, "grade")[0];
    json_decref(quality);
    return grade;
}

static void test_quality(void)
{
    json_t *env =
        json_pack("{s:{s:s},s:{s:s},s:{s:b,s:s},s:{s:i},s:{s:f}}", "frequency", "governor",
                  "performance", "timer", "source", "tsc", "build", "optimised", 1, "type",
                  "release", "cpus", "online", 2, "noise", "load1", 1.5);
    require(grade_of(env) == 'A', "A for a quiet machine");
    json_object_set_new(json_object_get(env, "frequency"), "governor",
                        json_string("powersave"));
    require(grade_of(env) == 'B', "B for a governor that saves power");
    json_object_set_new(json_object_get(env, "noise"), "load1", json_real(2.5));
    require(grade_of(env) == 'D', "D for more work than the machine has CPUs");
    json_decref(env);
}

static void test_between(void)
{
    struct noise_counters
        start = { .wall_s = 5.0, .busy_s = 100.0, .own_s = 3.0, .ticks = 1000 },
        stop = { .wall_s = 15.0, .busy_s = 125.0, .own_s = 12.0, .ticks = 3000, .steal = 20 };
    json_t *noise = noise_between(&start, &stop, 2.5);
    require(is_about(noise, "others", 1.6) && is_about(noise, "steal_pct", 1.0) &&
                is_about(noise, "wall_s", 10.0) && is_about(noise, "load1", 2.5),
            "others used the busy time less that of this program");
    json_decref(noise);
    stop.ticks = start.ticks = 0;
    noise = noise_between(&start, &stop, 2.5);
    require(record_value(noise, "others", -1.0) == -1.0,
            "the use of others is omitted if the system does not report it");
    json_decref(noise);
}

static void test_env(void)
{
    json_t *env = env_record(&library);
    require(env && record_is(env, "build.library", "1.2.3") &&
                json_array_size(json_object_get(json_object_get(env, "cpu"), "features")) ==
                    2 &&
                strchr("ABCD", record_text(env, "quality.grade")[0]),
            "the record of this machine has library, features and quality");
    json_decref(env);
    struct env_library emulated = library;
    emulated.emulator = "an emulator";
    env = env_record(&emulated);
    require(record_is(env, "emulator", emulated.emulator) &&
                record_is(env, "quality.grade", "D") &&
                record_is(env, "env_id", "key/emulated"),
            "an emulator is recorded, has quality D, and is a machine of its own");
    json_decref(env);
}

int main(void)
{
    test_quality();
    test_between();
    test_env();
    test_noise();
    test_cgroups();
    test_neighbours();
    test_reading();
    test_best_cpu();
    end_machine();
    return tap_end();
}
