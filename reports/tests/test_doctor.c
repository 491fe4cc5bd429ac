/*
 * What is found of machines that are made up, with measurements that are made up, too, and which grade
 * they get.
 */
#define _XOPEN_SOURCE 700
#include "reports/findings.h"
#include "reports/records.h"
#include "reports/trust.h"
#include "reports/watch.h"
#include "conformance/tap/tap.h"
#include "machine.h"
#include "rendered.h"

#include <math.h>

static void put_quiet_server(void)
{
    begin_machine();
    put_cpus("0-3", "3", 3);
    put(CPU "/cpu0/cpufreq/scaling_governor", "performance\n");
    put(CPU "/cpu0/cpufreq/scaling_driver", "intel_pstate\n");
    put(CPU "/intel_pstate/no_turbo", "1\n");
    put(CPU "/smt/control", "off\n");
    put(CPU "/isolated", "2-3\n");
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    put("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put("/sys/devices/system/node/online", "0\n");
    put("/proc/meminfo",
        "MemTotal: 16 kB\nMemAvailable:   1048576 kB\nSwapTotal: 2048 kB\nSwapFree: 2048 kB\n");
    put("/proc/sys/kernel/randomize_va_space", "2\n");
    put("/sys/class/power_supply/AC/type", "Mains\n");
    put("/sys/class/power_supply/AC/online", "1\n");
    put("/proc/self/cgroup", "0::/user.slice\n");
    put("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/user.slice/cpu.stat",
        "usage_usec 5\nnr_throttled 0\nthrottled_usec 0\n");
}

/* ---- Measurements ---- */

static json_t *measured_as(int cpu, double cache_pct, double dram_pct)
{
    return json_pack(
        "{s:s,s:i,s:f,s:{s:f,s:f},s:f,s:{s:[{s:s,s:b,s:i,s:i,s:i,s:f,s:f,s:f,s:f}],s:{"
        "s:f,s:f,s:b},s:{s:f,"
        "s:f,s:f,s:f,s:f},s:{s:f,s:f,s:f,s:i},s:{s:b,s:f}},s:{s:[f,f],s:[]}}",
        "t", "machine", "cpu", cpu, "seconds", 13.0, "tells_apart", "cache_pct", cache_pct,
        "dram_pct", dram_pct, "null_pct", 0.1, "measured", "floors", "place", "cache", "pinned",
        1, "bytes", 262144, "rounds", 9300, "comparisons", 100, "call_ns", 5e3, "typical_pct",
        0.1, "largest_pct", 20.0, "apart_pct", cache_pct, "clock", "step_ns", 1.0, "reading_ns",
        24.0, "backwards", 0, "frequency", "ghz", 3.0, "low", 2.99, "high", 3.0, "after_sleep",
        0.999, "settled_ms", 0.0, "gaps", "seconds", 1.0, "lost_pct", 0.05, "longest_us", 30.0,
        "over_100us", 0, "denormals", "flushed", 0, "times", 12.0, "neighbours", "busy", 0.0,
        0.0, "taken");
}

static void measure(json_t *machine, const char *path, const char *name, json_t *value)
{
    json_t *measured = json_object_get(machine, "measured"),
           *part = json_object_get(measured, path);
    if (!part) {
        part = json_object();
        json_object_set_new(measured, path, part);
    }
    json_object_set_new(part, name, value);
}

/* The noise between two states of the machine, ten seconds apart, none of it this program's. */
static json_t *noise_since(struct noise_watch start)
{
    struct noise_watch stop = noise_watch_at(root);
    stop.wall_s = start.wall_s + 10.0;
    stop.own_s = start.own_s;
    return noise_between(&start, &stop, 0.1);
}

static const json_t *finding_of(const json_t *findings, const char *what)
{
    for (size_t i = 0; i < json_array_size(findings); i++)
        if (strcmp(record_text(json_array_get(findings, i), "what"), what) == 0)
            return json_array_get(findings, i);
    return NULL;
}

static bool is_level(const json_t *findings, const char *what, const char *level)
{
    const json_t *f = finding_of(findings, what);
    if (strcmp(record_text(f, "level"), level) == 0)
        return true;
    printf("# %s is %s: %s\n", what, f ? record_text(f, "level") : "not there",
           record_text(f, "evidence"));
    return false;
}

static bool says(const json_t *findings, const char *what, const char *member,
                 const char *words)
{
    const char *text = record_text(finding_of(findings, what), member);
    if (strstr(text, words))
        return true;
    printf("# %s of %s: %s\n", member, what, text);
    return false;
}

static char grade_of(const json_t *env, const json_t *noise, const json_t *machine)
{
    json_t *trust = machine_trust(env, noise, machine);
    char grade = *record_text(trust, "grade");
    json_decref(trust);
    return grade;
}

/* What has to hold of every list of findings. */
static void require_usable(const json_t *findings, const char *of)
{
    static const char *const order[] = { "costs", "note", "fine", "hidden" };
    bool fixed = true, rooted = true, ordered = true, told = true;
    size_t level = 0;
    double last = HUGE_VAL;
    for (size_t i = 0; i < json_array_size(findings); i++) {
        const json_t *f = json_array_get(findings, i);
        const char *name = record_text(f, "level"), *command = record_text(f, "command");
        double cost = record_value(f, "cost_pct", -1.0);
        for (; level < 3 && strcmp(order[level], name) != 0; level++)
            last = HUGE_VAL;
        ordered = ordered && strcmp(order[level], name) == 0 && cost <= last;
        last = cost;
        fixed = fixed && (strcmp(name, "costs") != 0 || *record_text(f, "fix"));
        rooted = rooted &&
                 json_is_true(json_object_get(f, "root")) == (strstr(command, "sudo ") != NULL);
        told = told && *record_text(f, "what") && *record_text(f, "evidence") &&
               json_object_get(f, "cost_pct");
    }
    char name[128];
    snprintf(name, sizeof name,
             "%s: what costs has a fix, who needs root is told, the dearest is first", of);
    require(json_array_size(findings) > 5 && fixed && rooted && ordered && told, name);
}

/* ---- The five machines ---- */

static void test_quiet_server(void)
{
    put_quiet_server();
    put_ticks(0, 1000, 0);
    struct noise_watch start = noise_watch_at(root);
    put_ticks(10, 2000, 0);
    json_t *env = env_of_machine(NULL), *noise = noise_since(start),
           *machine = measured_as(3, 1.1, 3.0), *findings = findings_of(env, noise, machine);
    require_usable(findings, "quiet server");
    require(grade_of(env, noise, machine) == 'A', "a quiet server has the grade A");
    require(record_value(env, "cpus.best", -1.0) == 3.0 &&
                record_value(env, "cpus.online", 0.0) == 4.0 &&
                record_value(env, "cpus.allowed", 0.0) == 4.0,
            "measured is on a CPU that the kernel keeps free");
    static const char *const fine[] = { "governor",       "frequency",  "SMT",
                                        "clock",          "huge pages", "NUMA",
                                        "swap",           "addresses",  "power",
                                        "other programs", "isolation",  "interruptions",
                                        "denormals",      "build" };
    bool all = true;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        all = is_level(findings, fine[i], "fine") && all;
    require(all && !finding_of(findings, "quota") && !finding_of(findings, "virtual machine"),
            "and nothing that costs");
    json_decref(findings);
    json_decref(machine);
    machine = measured_as(3, 3.1, 3.0);
    require(grade_of(env, noise, machine) == 'C',
            "which falls to C where 3 % cannot be told apart in cache");
    json_decref(machine);
    machine = measured_as(3, 1.1, 25.0);
    require(grade_of(env, noise, machine) == 'D', "and to D with 25 % in DRAM");
    json_decref(machine);
    machine = measured_as(3, 1.1, 3.0);
    json_object_set_new(machine, "null_pct", json_real(2.0));
    require(grade_of(env, noise, machine) == 'C',
            "and to C where a copy is 2 % from itself, as in a report");
    json_decref(machine);
    json_decref(noise);
    json_decref(env);
}

static void test_laptop(void)
{
    begin_machine();
    put_cpus("0-7", "3,7", 7);
    put(CPU "/cpu0/cpufreq/scaling_governor", "powersave\n");
    put(CPU "/cpu0/cpufreq/scaling_driver", "intel_pstate\n");
    put(CPU "/cpu0/cpufreq/energy_performance_preference", "balance_power\n");
    put(CPU "/intel_pstate/no_turbo", "0\n");
    put(CPU "/smt/control", "on\n");
    put(CPU "/cpu0/thermal_throttle/package_throttle_count", "5\n");
    put("/sys/class/power_supply/BAT0/type", "Battery\n");
    put("/sys/class/power_supply/BAT0/online", "1\n");
    put("/sys/class/power_supply/ADP1/type", "Mains\n");
    put("/sys/class/power_supply/ADP1/online", "0\n");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    put("/proc/meminfo", "SwapTotal: 2048 kB\nSwapFree: 1024 kB\n");
    put("/proc/vmstat", "pswpin 10\npswpout 10\n");
    struct noise_watch start = noise_watch_at(root);
    put(CPU "/cpu0/thermal_throttle/package_throttle_count", "9\n");
    put("/proc/vmstat", "pswpin 10\npswpout 25\n");
    json_t *env = env_of_machine(NULL), *noise = noise_since(start),
           *machine = measured_as(7, 2.0, 8.0);
    measure(machine, "frequency", "after_sleep", json_real(0.6));
    measure(machine, "frequency", "low", json_real(2.4));
    measure(machine, "pages", "small_over_huge", json_real(1.25));
    json_object_set_new(
        json_object_get(machine, "measured"), "beside",
        json_pack("[{s:i,s:b,s:f,s:f}]", "cpu", 3, "sibling", 1, "cache", 1.9, "dram", 1.2));
    json_t *findings = findings_of(env, noise, machine);
    require_usable(findings, "laptop");
    require(grade_of(env, noise, machine) == 'B', "a laptop on its battery has the grade B");
    require(
        is_level(findings, "governor", "costs") &&
            says(findings, "governor", "evidence",
                 "powersave (intel_pstate, preference balance_power)") &&
            says(findings, "governor", "command", "cpupower frequency-set -g performance") &&
            fabs(record_value(finding_of(findings, "governor"), "cost_pct", 0.0) - 40.0) < 1e-9,
        "its governor costs what a core lacks after a sleep");
    require(is_level(findings, "frequency", "costs") &&
                says(findings, "frequency", "command", "no_turbo") &&
                fabs(record_value(finding_of(findings, "frequency"), "cost_pct", 0.0) - 20.0) <
                    1e-9,
            "turbo costs how far the frequency varied, and is switched off where Intel's "
            "driver has it");
    require(is_level(findings, "SMT", "note") &&
                says(findings, "SMT", "command", "smt/control") &&
                says(findings, "SMT", "evidence", "CPU 3 is a thread of the same core") &&
                fabs(record_value(finding_of(findings, "SMT"), "cost_pct", 0.0) - 90.0) < 1e-9,
            "the other thread of the core, idle now, would cost what was measured");
    require(is_level(findings, "power", "costs") && is_level(findings, "heat", "costs") &&
                says(findings, "heat", "evidence", "4 times"),
            "battery and heat");
    require(is_level(findings, "huge pages", "costs") &&
                fabs(record_value(finding_of(findings, "huge pages"), "cost_pct", 0.0) - 25.0) <
                    1e-9,
            "huge pages by chance cost what small ones take longer");
    require(is_level(findings, "swap", "costs") &&
                says(findings, "swap", "evidence", "15 pages"),
            "pages that moved to disk");
    require(is_level(findings, "SMT", "note") && is_level(findings, "clock", "fine"),
            "and a clock that is fine");
    json_t *busy = json_pack("[f,f,f,f,f,f,f,f]", 0.0, 0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 1.0);
    json_object_set_new(json_object_get(machine, "neighbours"), "busy", busy);
    json_decref(findings);
    findings = findings_of(env, noise, machine);
    require(is_level(findings, "SMT", "costs") &&
                says(findings, "SMT", "evidence", "busy for 40 %"),
            "a thread of the same core that is busy disturbs");
    json_decref(findings);
    json_decref(machine);
    json_decref(noise);
    json_decref(env);
}

static void test_cloud(void)
{
    begin_machine();
    put_cpus("0-1", "0-1", 1);
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    put("/sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet acpi_pm\n");
    put("/proc/pressure/io",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\nfull avg10=0.00\n");
    put_ticks(0, 1000, 100);
    struct noise_watch start = noise_watch_at(root);
    put_ticks(100, 1850, 300);
    put("/proc/pressure/io",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\nfull avg10=0.00\n");
    json_t *env = env_of_machine("KVM"), *noise = noise_since(start),
           *machine = measured_as(1, 2.5, 15.0), *findings = findings_of(env, noise, machine);
    require_usable(findings, "cloud");
    /* 1700 idle ticks, 100 busy and 200 stolen ones of 2000. */
    require(fabs(record_value(noise, "steal_pct", 0.0) - 10.0) < 1e-9 &&
                is_level(findings, "steal", "costs") &&
                record_value(finding_of(findings, "steal"), "cost_pct", 0.0) == 10.0,
            "time that a hypervisor took costs what it was");
    require(grade_of(env, noise, machine) == 'D',
            "a guest of which a tenth is stolen has the grade D");
    require(is_level(findings, "virtual machine", "note") &&
                is_level(findings, "governor", "hidden"),
            "its neighbours are not seen, its clock is not exposed");
    require(is_level(findings, "clock", "costs") &&
                says(findings, "clock", "fix", "tsc=reliable"),
            "a clock source that is slow, and no other to choose");
    require(is_level(findings, "disks", "costs") &&
                says(findings, "disks", "evidence", "for 10 % of the time"),
            "waiting for disks");
    json_decref(findings);
    json_decref(machine);
    json_decref(noise);
    json_decref(env);
}

static void test_container(void)
{
    put_quiet_server();
    put("/.dockerenv", "");
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/cpu.stat", "nr_throttled 7\nthrottled_usec 1000000\n");
    struct noise_watch start = noise_watch_at(root);
    put("/sys/fs/cgroup/cpu.stat", "nr_throttled 9\nthrottled_usec 1400000\n");
    json_t *env = env_of_machine(NULL), *noise = noise_since(start),
           *machine = measured_as(3, 1.1, 3.0), *findings = findings_of(env, noise, machine);
    require_usable(findings, "container");
    require(is_level(findings, "quota", "costs") &&
                says(findings, "quota", "evidence", "allows 1.5 CPUs") &&
                fabs(record_value(finding_of(findings, "quota"), "cost_pct", 0.0) - 4.0) <
                    1e-9 &&
                says(findings, "quota", "command", "docker run --cpuset-cpus"),
            "a quota costs the time for which it made wait, and Docker has a better way");
    require(grade_of(env, noise, machine) == 'D',
            "a container that is throttled has the grade D");
    json_decref(findings);
    json_decref(noise);
    noise = noise_since(noise_watch_at(root));
    findings = findings_of(env, noise, machine);
    require(is_level(findings, "quota", "note") && grade_of(env, noise, machine) == 'C',
            "one that was not is warned, with C");
    json_decref(findings);
    json_decref(machine);
    json_decref(noise);
    json_decref(env);
}

static void test_nothing(void)
{
    begin_machine();
    json_t *env = env_of_machine(NULL), *noise = noise_since(noise_watch_at(root)),
           *machine = measured_as(-1, 1.2, 4.0), *findings = findings_of(env, noise, machine);
    static const char *const hidden[] = { "governor", "SMT", "huge pages", "pinning" };
    bool all = true;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        all = is_level(findings, hidden[i], "hidden") && all;
    require_usable(findings, "nothing to read");
    require(all && !finding_of(findings, "steal") && !finding_of(findings, "swap") &&
                !finding_of(findings, "heat") && !finding_of(findings, "quota"),
            "what cannot be read is said to be so, or left out, and never fine");
    require(!json_object_get(noise, "throttled_pct") && !json_object_get(noise, "others"),
            "and no noise is told that was not seen");
    require(grade_of(env, noise, machine) == 'B', "it has the grade B at best");
    json_decref(findings);
    json_decref(machine);
    json_decref(noise);
    json_decref(env);
}

/* ---- What is measured decides ---- */

static json_t *found_with(const char *path, const char *name, json_t *value)
{
    put_quiet_server();
    json_t *env = env_of_machine(NULL), *noise = noise_since(noise_watch_at(root)),
           *machine = measured_as(3, 1.1, 3.0);
    measure(machine, path, name, value);
    json_t *findings = findings_of(env, noise, machine);
    json_decref(env);
    json_decref(noise);
    json_decref(machine);
    return findings;
}

static void require_found(const char *name, json_t *findings, const char *what,
                          const char *level, double cost)
{
    require(is_level(findings, what, level) &&
                fabs(record_value(finding_of(findings, what), "cost_pct", -1.0) - cost) < 1e-9,
            name);
    json_decref(findings);
}

static void test_measured(void)
{
    require_found("a frequency that 512-bit arithmetic lowers by a fifth costs a fifth",
                  found_with("frequency", "after_vectors", json_real(0.8)), "AVX-512", "costs",
                  20.0);
    require_found("a loop that loses 2 % of its time costs 2 %",
                  found_with("gaps", "lost_pct", json_real(2.0)), "interruptions", "costs",
                  2.0);
    require_found("denormals that are replaced by zero are told",
                  found_with("denormals", "flushed", json_true()), "denormals", "costs", -1.0);
    require_found("a clock that runs backwards is told",
                  found_with("clock", "backwards", json_true()), "clock", "costs", 0.024);
    require_found("a reading that takes a system call costs its share of a sample",
                  found_with("clock", "reading_ns", json_real(1000.0)), "clock", "costs", 1.0);
}

static void test_pinning(void)
{
    put_quiet_server();
    json_t *env = env_of_machine(NULL), *noise = noise_since(noise_watch_at(root)),
           *machine = measured_as(3, 1.1, 3.0),
           *floors = json_object_get(json_object_get(machine, "measured"), "floors"),
           *free = json_deep_copy(json_array_get(floors, 0));
    json_object_set_new(free, "pinned", json_false());
    json_object_set_new(free, "apart_pct", json_real(2.6));
    json_array_append_new(floors, free);
    json_t *findings = findings_of(env, noise, machine);
    require(fabs(record_value(finding_of(findings, "pinning"), "cost_pct", 0.0) - 1.5) < 1e-9 &&
                says(findings, "pinning", "command", "taskset -c 3 "),
            "what the system's choice of a CPU costs is what more cannot be told apart");
    json_decref(findings);
    json_object_set_new(free, "comparisons", json_integer(0));
    findings = findings_of(env, noise, machine);
    require(!finding_of(findings, "pinning"),
            "and nothing is said of it where there was no time for a comparison");
    json_decref(findings);
    json_object_set_new(free, "comparisons", json_integer(100));
    put("/proc/self/status", "Cpus_allowed_list:\t3\n");
    json_decref(env);
    env = env_of_machine(NULL);
    findings = findings_of(env, noise, machine);
    require(is_level(findings, "pinning", "fine") &&
                record_value(env, "cpus.pinned", -1.0) == 3.0,
            "a program that was kept to a CPU already is not told to be");
    json_decref(findings);
    json_decref(machine);
    json_decref(noise);
    json_decref(env);
}

/* ---- Shown ---- */

static void test_shown(void)
{
    put_quiet_server();
    put(CPU "/cpu0/cpufreq/scaling_governor", "powersave\n");
    json_t *env = env_of_machine("KVM"), *noise = noise_since(noise_watch_at(root)),
           *machine = measured_as(3, 1.23, 6.0);
    json_t *trust = machine_trust(env, noise, machine);
    json_object_update_missing(machine, trust);
    json_decref(trust);
    json_object_set_new(machine, "findings", findings_of(env, noise, machine));
    json_t *records = json_pack("[{s:s,s:s},o,o,{s:s,s:b,s:o}]", "t", "header", "mode", "full",
                                env, machine, "t", "footer", "complete", 1, "noise", noise);
    char *console = rendered("console", records, 80), *md = rendered("md", records, 0),
         *html = rendered("html", records, 0);
    const char *grade =
                   console ? strstr(console, "Grade C: timings tell apart what differs by more "
                                             "than 1.2 % in cache, 6.0 % in")
                           : NULL,
               *chapter = grade ? strstr(grade, "\nWhat disturbs it\n") : NULL;
    require(chapter && strstr(chapter, "\nFine\n"),
            "the grade and what it means, then what disturbs, then what is fine");
    bool fits = true;
    for (const char *line = console; line && *line; line += strcspn(line, "\n") + 1)
        fits = fits && (strncmp(line, "    ", 4) == 0 || strcspn(line, "\n") <= 80);
    require(fits && contains(console, "    sudo cpupower frequency-set -g performance"),
            "80 columns hold all but commands, which stay in one piece");
    require(contains(md, "1.2 %") && contains(md, "6.0 %") && contains(md, "sudo cpupower") &&
                contains(html, "sudo cpupower") && !contains(md, "Timing: none") &&
                !contains(md, "Time is the median over rounds"),
            "pages have it, and nothing of timings that were not taken");
    if (!fits)
        printf("# %s\n", console);
    free(console);
    free(md);
    free(html);
    json_decref(records);
}

int main(void)
{
    test_quiet_server();
    test_laptop();
    test_cloud();
    test_container();
    test_nothing();
    test_measured();
    test_pinning();
    test_shown();
    end_machine();
    return tap_end();
}
