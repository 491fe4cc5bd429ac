/* Reads /proc/stat and /proc/PID/stat (proc(5); see cpu_usage.h). */
#define _POSIX_C_SOURCE 200809L
#include "cpu_usage.h"
#include "sysfs.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NAMES = 4 };
static const double least_cpus = 0.02; /* that a name takes to be reported */

static double tick_s(void) { return 1.0 / (double)sysconf(_SC_CLK_TCK); }

static void read_cpus(const char *root, struct cpu_usage *usage)
{
    FILE *file = sysfs_open(root, "/proc/stat");
    char line[1024];
    while (file && fgets(line, sizeof line, file)) {
        int cpu;
        unsigned long long t[8] = { 0 };
        if (strncmp(line, "cpu ", 4) == 0 || /* the sum of all CPUs */
            sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0], &t[1],
                   &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) < 5 ||
            cpu < 0 || cpu >= CPU_USAGE_CPUS)
            continue;
        usage->busy_s[cpu] = tick_s() * (double)(t[0] + t[1] + t[2] + t[5] + t[6] + t[7]);
        usage->n_cpus = cpu >= usage->n_cpus ? cpu + 1 : usage->n_cpus;
    }
    if (file)
        fclose(file);
}

/* Parses "123 (name) S ppid ...". The name may have blanks and brackets. The 12th and 13th fields after it are ticks of
 * CPU time. */
static bool parse_process(char *line, struct process_usage *process)
{
    char *open = strchr(line, '('), *close = strrchr(line, ')');
    unsigned long long user, system;
    if (!open || !close || close < open ||
        sscanf(close + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu", &user,
               &system) != 2)
        return false;
    *close = 0;
    process->pid = strtol(line, NULL, 10);
    process->cpu_s = tick_s() * (double)(user + system);
    snprintf(process->name, sizeof process->name, "%.20s", open + 1);
    return true;
}

static void read_processes(const char *root, struct cpu_usage *usage)
{
    char folder[SYSFS_PATH], line[1024];
    size_t capacity = 0;
    snprintf(folder, sizeof folder, "%.200s/proc", root);
    DIR *all = opendir(folder);
    for (struct dirent *entry; all && (entry = readdir(all));) {
        if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name) ||
            !sysfs_line(root, line, sizeof line, "/proc/%.16s/stat", entry->d_name))
            continue;
        if (usage->n == capacity) {
            capacity = 2 * capacity + 64;
            struct process_usage *more = realloc(usage->process, capacity * sizeof *more);
            if (!more)
                break;
            usage->process = more;
        }
        usage->n += parse_process(line, &usage->process[usage->n]);
    }
    if (all)
        closedir(all);
}

void cpu_usage_snapshot(const char *root, double wall_s, struct cpu_usage *usage)
{
    *usage = (struct cpu_usage){ .wall_s = wall_s };
    read_cpus(root, usage);
    read_processes(root, usage);
}

void cpu_usage_free(struct cpu_usage *usage)
{
    free(usage->process);
    *usage = (struct cpu_usage){ 0 };
}

static double earlier_cpu_s(const struct cpu_usage *start, long pid)
{
    for (size_t i = 0; i < start->n; i++)
        if (start->process[i].pid == pid)
            return start->process[i].cpu_s;
    return 0.0;
}

static int compare_time(const void *a, const void *b)
{
    double x = ((const struct process_usage *)a)->cpu_s,
           y = ((const struct process_usage *)b)->cpu_s;
    return (x < y) - (x > y);
}

/* Adds up the time that the processes of each name took; returns the number of names. */
static size_t sum_by_name(const struct cpu_usage *start, const struct cpu_usage *stop,
                          long self, struct process_usage *names)
{
    size_t n = 0;
    for (size_t i = 0; i < stop->n; i++) {
        const struct process_usage *process = &stop->process[i];
        double took = process->cpu_s - earlier_cpu_s(start, process->pid);
        size_t at = 0;
        if (process->pid == self || took <= 0.0)
            continue;
        while (at < n && strcmp(names[at].name, process->name) != 0)
            at++;
        if (at == n) {
            names[n] = *process;
            names[n++].cpu_s = 0.0;
        }
        names[at].cpu_s += took;
    }
    qsort(names, n, sizeof *names, compare_time);
    return n;
}

json_t *cpu_usage_record(const struct cpu_usage *start, const struct cpu_usage *stop, long self)
{
    double wall = stop->wall_s - start->wall_s;
    json_t *busy = json_array(), *taken = json_array();
    struct process_usage *names = calloc(stop->n + 1, sizeof *names);
    size_t n = names && wall > 0.0 ? sum_by_name(start, stop, self, names) : 0;
    for (int cpu = 0; cpu < stop->n_cpus && wall > 0.0; cpu++) {
        const double share = (stop->busy_s[cpu] - start->busy_s[cpu]) / wall;
        json_array_append_new(busy, json_real(fmin(fmax(share, 0.0), 1.0)));
    }
    for (size_t i = 0; i < n && i < MOST_NAMES && names[i].cpu_s >= least_cpus * wall; i++) {
        /* NULL if the name is not UTF-8 */
        json_t *name = json_string(names[i].name);
        json_array_append_new(taken,
                              json_pack("{s:o,s:f}", "name", name ? name : json_string("?"),
                                        "cpus", names[i].cpu_s / wall));
    }
    free(names);
    return json_pack("{s:o,s:o}", "busy", busy, "taken", taken);
}
