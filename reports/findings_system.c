/*
 * Findings about what else runs, what this program may take, how it was built, and memory; see
 * findings.h.
 */
#include "findings.h"
#include "noise.h"
#include "records.h"
#include "sysfs.h"

#include <string.h>

/* ---- The program ---- */

static void build(struct diagnosis *d)
{
    static const struct remedy release = {
        "Measure with a build that is optimised and not instrumented.",
        "meson setup build-release --buildtype=release && ninja -C build-release", false
    };
    const json_t *env = d->env;
    const char *sanitizer = record_text(env, "build.sanitizer");
    bool plain = json_is_false(json_object_get(json_object_get(env, "build"), "optimised")) ||
                 strcmp(record_text(env, "build.type"), "debug") == 0;
    if (*sanitizer)
        found(d, FINDING_COSTS, "build", COST_UNKNOWN, &release,
              "posenc was built with the %s sanitizer: no time of it is the kernel's",
              sanitizer);
    else if (plain)
        found(d, FINDING_COSTS, "build", COST_UNKNOWN, &release,
              "posenc was built without optimisation: no time of it is the kernel's");
    else
        found(d, FINDING_FINE, "build", 0.0, NULL, "%s, optimised",
              record_text(env, "build.cc"));
}

/* ---- Others ---- */

/* ": cc1 0.9, ninja 0.3" */
static void name_them(const struct diagnosis *d, char *text, size_t bytes)
{
    const json_t *taken = json_object_get(json_object_get(d->machine, "neighbours"), "taken");
    size_t at = 0;
    text[0] = 0;
    for (size_t i = 0; i < json_array_size(taken) && at < bytes; i++) {
        const json_t *one = json_array_get(taken, i);
        at += (size_t)snprintf(text + at, bytes - at, "%s%.24s %.2f", i ? ", " : ": ",
                               record_text(one, "name"), record_value(one, "cpus", 0.0));
    }
}

static bool others_are_felt(const struct diagnosis *d)
{
    char words[96];
    return noise_of_others(d->env, d->noise, words, sizeof words);
}

/* What they cost is what a loop missed while they ran. */
static void others(struct diagnosis *d)
{
    static const struct remedy end = {
        "End them and run this again: all else it says was measured beside them.", "top", false
    };
    char words[96], names[160], missed[80] = "";
    double took = record_value(d->noise, "others", -1.0),
           lost = measured_number(d, "gaps.lost_pct");
    bool felt = noise_of_others(d->env, d->noise, words, sizeof words);
    name_them(d, names, sizeof names);
    if (lost >= 0.0)
        snprintf(missed, sizeof missed, "; a loop that reads the clock missed %.2f %% of it",
                 lost);
    if (took < 0.0 && record_value(d->noise, "load1", -1.0) < 0.0)
        found_hidden(d, "other programs", "/proc/stat");
    else if (felt)
        found(d, FINDING_COSTS, "other programs", lost, &end, "%s%s%s", words, names, missed);
    else
        found(d, FINDING_FINE, "other programs", 0.0, NULL, "%s%s", words, names);
}

static void hypervisor(struct diagnosis *d)
{
    static const struct remedy alone = {
        "An instance whose CPUs are nobody else's (dedicated, bare metal), or another hour.",
        NULL, false
    };
    const char *virt = record_text(d->env, "virt.kind");
    double steal = record_value(d->noise, "steal_pct", -1.0);
    bool known = *virt && strcmp(virt, NOT_EXPOSED) != 0;
    if (steal > 0.1)
        found(d, FINDING_COSTS, "steal", steal, &alone,
              "a hypervisor gave %.1f %% of its CPU time to others", steal);
    else if (steal >= 0.0 && known)
        found(d, FINDING_FINE, "steal", steal, NULL, "%.2f %% of its CPU time", steal);
    if (known)
        found(d, FINDING_NOTE, "virtual machine", COST_UNKNOWN, &alone,
              "under %s: what other guests do to caches, memory and frequency is not seen here",
              virt);
    else if (*virt)
        found_hidden(d, "virtual machine", "whether this is one");
}

/* ---- Limits ---- */

static const struct remedy *quota_remedy(const char *container)
{
    static const struct remedy docker = {
        "Give the container whole CPUs in place of a share of their time.",
        "docker run --cpuset-cpus=2,3 IMAGE     # not --cpus", false
    };
    static const struct remedy podman = {
        "Give the container whole CPUs in place of a share of their time.",
        "podman run --cpuset-cpus=2,3 IMAGE     # not --cpus", false
    };
    static const struct remedy pod = { "Make the pod Guaranteed: requests equal to limits, in "
                                       "whole CPUs, on a node whose kubelet "
                                       "has --cpu-manager-policy=static.",
                                       "kubectl set resources deployment/NAME "
                                       "--requests=cpu=2,memory=4Gi --limits=cpu=2,memory=4Gi",
                                       false };
    static const struct remedy group = {
        "Run it outside of that control group, or lift the quota.",
        "sudo systemd-run --scope posenc doctor", true
    };
    return strcmp(container, "docker") == 0       ? &docker
           : strcmp(container, "podman") == 0     ? &podman
           : strcmp(container, "kubernetes") == 0 ? &pod
                                                  : &group;
}

static void quota(struct diagnosis *d)
{
    double cpus = record_value(d->env, "limits.quota", 0.0),
           throttled = record_value(d->noise, "throttled_pct", -1.0);
    const char *container = record_text(d->env, "limits.container");
    char limit[64] = "a control group above";
    if (cpus > 0.0)
        snprintf(limit, sizeof limit, "a control group allows %.3g CPUs", cpus);
    if (throttled > 0.1)
        found(d, FINDING_COSTS, "quota", throttled, quota_remedy(container),
              "%s and made this program wait for %.1f %% of the time", limit, throttled);
    else if (cpus > 0.0)
        found(d, FINDING_NOTE, "quota", COST_UNKNOWN, quota_remedy(container),
              "%s; a program of several threads that uses them up is made to wait", limit);
    else if (*container)
        found(d, FINDING_FINE, "quota", 0.0, NULL, "in a container (%s) without one",
              container);
}

static void interrupts(struct diagnosis *d)
{
    char fix[200];
    int cpu = record_int(d->machine, "cpu", 1);
    snprintf(
        fix, sizeof fix,
        "Measure on a CPU that the kernel leaves alone: boot with isolcpus=%d nohz_full=%d "
        "rcu_nocbs=%d, and keep interrupts on CPU 0.",
        cpu, cpu, cpu);
    const struct remedy alone = {
        fix, "sudo systemctl stop irqbalance; echo 0 | sudo tee /proc/irq/*/smp_affinity_list",
        true
    };
    double lost = measured_number(d, "gaps.lost_pct"),
           longest = measured_number(d, "gaps.longest_us");
    bool costs = lost > 0.5 || longest > 1000.0;
    if (lost < 0.0 || others_are_felt(d)) /* then most of it is theirs */
        return;
    found(
        d, costs ? FINDING_COSTS : FINDING_FINE, "interruptions", lost, costs ? &alone : NULL,
        "a loop that reads the clock missed %.2f %% of its time, %.0f us at most, over 100 us "
        "%.0f times",
        lost, longest, measured_number(d, "gaps.over_100us"));
}

static void waiting(struct diagnosis *d)
{
    static const struct remedy disks = { "Let copies and indexing end.", "sudo iotop -o",
                                         true };
    double io = record_value(d->noise, "wait_io_pct", -1.0);
    if (io > 5.0)
        found(d, FINDING_COSTS, "disks", COST_UNKNOWN, &disks,
              "for %.0f %% of the time some program waited for a disk", io);
    else if (io >= 0.0)
        found(d, FINDING_FINE, "disks", 0.0, NULL,
              "programs waited for them for %.1f %% of the time", io);
}

void find_system(struct diagnosis *d)
{
    build(d);
    others(d);
    hypervisor(d);
    quota(d);
    interrupts(d);
    waiting(d);
}

/* ---- Memory ---- */

static void pages(struct diagnosis *d)
{
    static const struct remedy madvise = {
        "Let programs ask for huge pages: then it is no chance which they get.",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled", true
    };
    const char *thp = record_text(d->env, "mem.thp");
    double times = measured_number(d, "pages.small_over_huge"),
           cost = times > 0.0 ? 100.0 * (times > 1.0 ? times - 1.0 : 0.0) : COST_UNKNOWN;
    char words[80] = "";
    if (times == 1.0)
        snprintf(words, sizeof words, "; in DRAM no difference between small and huge is told");
    else if (times > 0.0)
        snprintf(words, sizeof words, "; in DRAM a call takes %.2f times as long in small ones",
                 times);
    if (!*thp || strcmp(thp, NOT_EXPOSED) == 0)
        found_hidden(d, "huge pages", "/sys/kernel/mm/transparent_hugepage/enabled");
    else if (strcmp(thp, "always") == 0)
        found(d, FINDING_COSTS, "huge pages", cost, &madvise,
              "always: whether a buffer gets them is chance%s", words);
    else
        found(d, FINDING_FINE, "huge pages", cost, NULL,
              "%s, the same for all that is measured%s", thp, words);
}

static void nodes(struct diagnosis *d)
{
    double n = record_value(d->env, "mem.nodes", -1.0),
           balancing = record_value(d->env, "mem.balancing", 0.0);
    static const struct remedy one = { "Keep the program and its memory on one node.",
                                       "numactl --cpunodebind=0 --membind=0 posenc bench",
                                       false };
    static const struct remedy moved = {
        "Keep the program and its memory on one node, and pages where they are.",
        "sudo sysctl kernel.numa_balancing=0 && numactl --cpunodebind=0 --membind=0 posenc "
        "bench",
        true
    };
    if (n > 1.0)
        found(d, FINDING_COSTS, "NUMA", COST_UNKNOWN, balancing > 0.0 ? &moved : &one,
              "memory has %.0f nodes%s", n,
              balancing > 0.0 ? ", and the kernel moves pages between them" : "");
    else if (n > 0.0)
        found(d, FINDING_FINE, "NUMA", 0.0, NULL, "one node");
}

static void swap(struct diagnosis *d)
{
    static const struct remedy off = { "Keep everything in memory.", "sudo swapoff -a", true };
    double swapped = record_value(d->noise, "swapped", -1.0),
           used = record_value(d->env, "mem.swap_used", -1.0);
    if (swapped > 0.0)
        found(d, FINDING_COSTS, "swap", COST_UNKNOWN, &off,
              "%.0f pages were moved to or from disk while it measured", swapped);
    else if (used > 0.0)
        found(d, FINDING_NOTE, "swap", COST_UNKNOWN, &off,
              "%.0f MiB lie on disk; none moved while it measured", used / 1048576.0);
    else if (used >= 0.0)
        found(d, FINDING_FINE, "swap", 0.0, NULL, "not used");
}

static void denormals(struct diagnosis *d)
{
    static const struct remedy whole = {
        "Find who switches them off: a library that was linked with -ffast-math does, where it "
        "is loaded.",
        "ldd $(command -v posenc); echo $LD_PRELOAD", false
    };
    const json_t *flushed = json_object_get(
        json_object_get(json_object_get(d->machine, "measured"), "denormals"), "flushed");
    double times = measured_number(d, "denormals.times");
    if (json_is_true(flushed))
        found(d, FINDING_COSTS, "denormals", COST_UNKNOWN, &whole,
              "they are replaced by zero (FTZ or DAZ is set), which is not what is checked");
    else if (json_is_false(flushed))
        found(d, FINDING_FINE, "denormals", 0.0, NULL,
              "kept; a product that is one takes %.1f times as long", times);
}

static void addresses(struct diagnosis *d)
{
    static const struct remedy random = {
        "Let each process have addresses of its own: one layout may be lucky.",
        "sudo sysctl kernel.randomize_va_space=2", true
    };
    double aslr = record_value(d->env, "limits.aslr", -1.0);
    if (aslr == 0.0)
        found(d, FINDING_NOTE, "addresses", COST_UNKNOWN, &random,
              "all processes get the same: what a layout costs is in every time alike");
    else if (aslr > 0.0)
        found(d, FINDING_FINE, "addresses", 0.0, NULL,
              "random in each process: compare runs several, and layout becomes noise");
}

void find_memory(struct diagnosis *d)
{
    pages(d);
    nodes(d);
    swap(d);
    denormals(d);
    addresses(d);
}
