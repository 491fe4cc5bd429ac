/*
 * Tests the record of a machine, its measurement quality, and the noise that a run saw: on this machine, and on made-up
 * ones, which are folders with the files of a machine.
 */
#define _XOPEN_SOURCE 700
#include "base/machine/env.h"
#include "base/machine/noise.h"
#include "base/machine/sysfs.h"
#include "base/records.h"
#include "base/tap/tap.h"

#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- A made-up machine ---- */

static char root[64]; /* sysfs_root during the tests of made-up machines */

static void bail_out(const char *why)
{
    printf("Bail out! %s\n", why);
    exit(1);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status, (void)kind, (void)at;
    return remove(path);
}

static void end_machine(void)
{
    if (*root)
        nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    root[0] = 0;
}

static void begin_machine(void)
{
    end_machine();
    snprintf(root, sizeof root, "/tmp/posenc-doctor-XXXXXX");
    if (!mkdtemp(root))
        bail_out("no folder in /tmp");
    sysfs_root = root;
}

/* Writes a file of the machine, and makes its folders. */
static void put_file(const char *path, const char *text)
{
    char whole[SYSFS_PATH];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        bail_out("a file of a machine cannot be written");
}

#define CPU "/sys/devices/system/cpu"

static void put_cpus(const char *online, const char *siblings_of_last, int last)
{
    char path[128], line[64];
    snprintf(line, sizeof line, "%s\n", online);
    put_file(CPU "/online", line);
    snprintf(line, sizeof line, "Name:\tposenc\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\n",
             online);
    put_file("/proc/self/status", line);
    snprintf(path, sizeof path, CPU "/cpu%d/topology/thread_siblings_list", last);
    snprintf(line, sizeof line, "%s\n", siblings_of_last);
    put_file(path, line);
}

/* Writes ticks of two CPUs: busy, idle, stolen. */
static void put_ticks(unsigned busy, unsigned idle, unsigned stolen)
{
    char text[512];
    snprintf(
        text, sizeof text,
        "cpu  %u 0 0 %u 0 0 0 %u 0 0\ncpu0 %u 0 0 %u 0 0 0 %u 0 0\ncpu1 0 0 0 %u 0 0 0 0 0 "
        "0\nintr 5\n",
        busy, 2 * idle, stolen, busy, idle - busy, stolen, idle);
    put_file("/proc/stat", text);
}

/* Returns the env record of the machine. The build and the hypervisor are given, as the files do not have them. */
static json_t *env_of_machine(const char *hypervisor)
{
    static const struct env_library library = { "1.2.3", "paper", "", NULL, NULL };
    json_t *env = env_record(&library);
    json_object_set_new(
        env, "build",
        json_pack("{s:b,s:s,s:s}", "optimised", 1, "type", "release", "cc", "gcc"));
    json_object_set_new(env, "virtualization",
                        hypervisor ? json_string(hypervisor) : json_null());
    return env;
}

/* ---- Tests ---- */

static void test_cgroups(void)
{
    begin_machine();
    put_file("/proc/self/cgroup", "0::/a/b\n");
    put_file("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
    put_file("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    put_file("/sys/fs/cgroup/a/cpu.stat", "throttled_usec 250000\n");
    struct cgroup_limits cpu = cgroup_limits();
    require(cpu.quota == 0.5 && cpu.throttled_s == 0.25,
            "the least quota of a group and those above it counts");
    begin_machine();
    put_file("/proc/self/cgroup", "4:cpu,cpuset:/docker/123\n3:cpuacct:/wrong\n0::/x\n");
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
             "200000\n"); /* mounted is the container's own group */
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put_file("/sys/fs/cgroup/cpu/wrong/cpu.cfs_quota_us", "1000\n"); /* of another controller */
    put_file("/sys/fs/cgroup/cpu/wrong/cpu.cfs_period_us", "100000\n");
    put_file("/sys/fs/cgroup/cpu/cpu.stat", "nr_throttled 2\nthrottled_time 3000000000\n");
    cpu = cgroup_limits();
    require(cpu.quota == 2.0 && cpu.throttled_s == 3.0,
            "version 1 in a container, whose group's folder is missing");
    begin_machine();
    put_file("/proc/self/cgroup", "4:cpu:/\n");
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    cpu = cgroup_limits();
    require(cpu.quota == 0.0 && cpu.throttled_s < 0.0, "no quota is no limit");
}

/* Writes a process that used so many seconds of CPU time, a second of them in the kernel. */
static void put_process(int pid, const char *name, long seconds)
{
    const long ticks = sysconf(_SC_CLK_TCK), in_kernel = seconds > 0 ? ticks : 0;
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    snprintf(text, sizeof text, "%d (%s) R 1 1 1 0 -1 0 0 0 0 0 %ld %ld 0 0 20\n", pid, name,
             seconds * ticks - in_kernel, in_kernel);
    put_file(path, text);
}

static json_t *snapshot_at(double wall_s)
{
    json_t *usage = cpu_usage_snapshot();
    json_object_set_new(usage, "wall_s", json_real(wall_s));
    return usage;
}

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
    json_t *seen = cpu_usage_between(start, stop, 12), *taken = json_object_get(seen, "taken");
    require(json_array_size(taken) == 2 &&
                strcmp(record_text(json_array_get(taken, 0), "name"), "cc1") == 0 &&
                fabs(record_value(json_array_get(taken, 0), "cpus", 0.0) - 0.7) < 1e-9,
            "processes of a name are added up, those that began since with all they took");
    require(strcmp(record_text(json_array_get(taken, 1), "name"), "a) b (c") == 0 &&
                fabs(record_value(json_array_get(taken, 1), "cpus", 0.0) - 0.1) < 1e-9,
            "a name may have brackets; the program itself is no neighbour");
    const json_t *busy = json_object_get(seen, "busy");
    require(json_array_size(busy) == 2 &&
                fabs(json_number_value(json_array_get(busy, 0)) - 0.5) < 1e-9 &&
                json_number_value(json_array_get(busy, 1)) == 0.0,
            "each CPU has its share, and the line of all of them is no CPU");
    json_decref(seen);
    json_decref(start);
    json_decref(stop);
}

static void test_reading(void)
{
    begin_machine();
    char line[64];
    put_file("/proc/meminfo", "MemAvailableNot: 5 kB\nMemAvailable:  7 kB\n");
    require(sysfs_value_number("/proc/meminfo", "MemAvailable") == 7.0,
            "a key is not one that is longer");
    require(!sysfs_line(line, sizeof line, "/no/such/%s", "file") && !*line &&
                sysfs_number("/none") == -1.0,
            "a file that is not there is no line and no number");
    require(cpu_list_has("0-2,7", 2) && !cpu_list_has("0-2,7", 3) && cpu_list_has("0-2,7", 7) &&
                !cpu_list_has("", 0) && !cpu_list_has("17", 7) &&
                cpu_list_count("0-2,7") == 4 && cpu_list_count("") == 0,
            "lists of CPUs");
    put_cpus("0-3", "3", 3);
    put_file(CPU "/isolated", "1-2\n");
    json_t *free = env_of_machine(NULL);
    require(record_value(free, "cpus.best", -1.0) == 2.0,
            "a CPU that the kernel keeps free is measured on");
    json_decref(free);
    put_file(CPU "/isolated", "\n");
    put_file("/sys/devices/cpu_core/cpus", "0-1\n");
    put_file("/sys/devices/cpu_atom/cpus", "2-3\n");
    json_t *env = env_of_machine(NULL);
    require(record_value(env, "cpus.best", -1.0) == 1.0 &&
                record_value(env, "cpus.kinds", 0.0) == 2.0,
            "of cores of two kinds a fast one is measured on");
    json_decref(env);
}

/* ---- Noise of a run ---- */

/* Returns the noise since `start`, ten seconds later; none of it is this program's. */
static json_t *noise_after_10_s(struct noise_counters start)
{
    struct noise_counters stop = noise_read();
    stop.wall_s = start.wall_s + 10.0;
    stop.own_s = start.own_s;
    return noise_between(&start, &stop, 0.1);
}

static bool is_about(const json_t *record, const char *path, double value)
{
    return fabs(record_value(record, path, -1.0) - value) < 1e-9;
}

static void test_noise(void)
{
    begin_machine();
    put_cpus("0-1", "0-1", 1);
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
    json_t *noise = noise_after_10_s(start), *env = env_of_machine("KVM");
    /* 1700 idle ticks, 100 busy and 200 stolen ones of 2000. */
    require(is_about(noise, "steal_pct", 10.0) && is_about(noise, "wait_io_pct", 10.0) &&
                is_about(noise, "heat", 4.0) && is_about(noise, "swapped", 15.0) &&
                is_about(noise, "throttled_pct", 4.0),
            "stolen time, waits, heat, swapping and throttling are those between two states");
    require(is_about(env, "cpus.pinned", 1.0) && is_about(env, "cpus.best", 1.0) &&
                is_about(env, "cpus.online", 2.0) && is_about(env, "cpus.allowed", 1.0),
            "a program that may use one CPU is pinned to it");
    json_decref(env);
    json_decref(noise);
    begin_machine();
    noise = noise_after_10_s(noise_read());
    require(!json_object_get(noise, "throttled_pct") && !json_object_get(noise, "others") &&
                !json_object_get(noise, "heat"),
            "no noise is reported that was not seen");
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
    require(grade_of(env) == 'D', "D for more work than it has CPUs");
    json_decref(env);
}

static void test_between(void)
{
    struct noise_counters
        start = { .wall_s = 5.0, .busy_s = 100.0, .own_s = 3.0, .ticks = 1000 },
        stop = { .wall_s = 15.0, .busy_s = 125.0, .own_s = 12.0, .ticks = 3000, .steal = 20 };
    json_t *noise = noise_between(&start, &stop, 2.5);
    require(record_value(noise, "others", -1.0) == 1.6 &&
                record_value(noise, "steal_pct", -1.0) == 1.0 &&
                record_value(noise, "wall_s", -1.0) == 10.0 &&
                record_value(noise, "load1", -1.0) == 2.5,
            "others took what ran less what this program ran, over the time");
    json_decref(noise);
    stop.ticks = start.ticks = 0;
    noise = noise_between(&start, &stop, 2.5);
    require(record_value(noise, "others", -1.0) == -1.0,
            "it is not recorded if the system does not report it");
    json_decref(noise);
}

static void test_env(void)
{
    struct env_library library = { "1.2.3", "key", "one two", NULL, NULL };
    json_t *env = env_record(&library);
    require(env && strcmp(record_text(env, "build.library"), "1.2.3") == 0 &&
                json_array_size(json_object_get(json_object_get(env, "cpu"), "features")) ==
                    2 &&
                strchr("ABCD", record_text(env, "quality.grade")[0]),
            "the record of this machine has library, features and quality");
    json_decref(env);
    library = (struct env_library){ "1.2.3", "key", "", "a machine of paper", NULL };
    env = env_record(&library);
    require(strcmp(record_text(env, "emulator"), library.emulator) == 0 &&
                strcmp(record_text(env, "quality.grade"), "D") == 0 &&
                strcmp(record_text(env, "env_id"), "key/emulated") == 0,
            "an emulator is recorded, of quality D, and a machine of its own");
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
    end_machine();
    return tap_end();
}
