/*
 * Machines that tests make up: folders with files of /proc and /sys, which go away at the end.
 */
#ifndef POSENC_TESTS_MACHINE_H
#define POSENC_TESTS_MACHINE_H

#include "base/machine/env.h"
#include "base/machine/sysfs.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static inline void give_up(const char *why)
{
    printf("Bail out! %s\n", why);
    exit(1);
}

static inline int remove_one(const char *path, const struct stat *status, int kind,
                             struct FTW *at)
{
    (void)status;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void end_machine(void)
{
    if (*root)
        nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    root[0] = 0;
}

static inline void begin_machine(void)
{
    end_machine();
    snprintf(root, sizeof root, "/tmp/posenc-doctor-XXXXXX");
    if (!mkdtemp(root))
        give_up("no folder in /tmp");
}

/* A file of the machine, with the folders it takes. */
static inline void put(const char *path, const char *text)
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
        give_up("a file of a machine cannot be written");
}

#define CPU "/sys/devices/system/cpu"

static inline void put_cpus(const char *online, const char *siblings_of_last, int last)
{
    char path[128], line[64];
    snprintf(line, sizeof line, "%s\n", online);
    put(CPU "/online", line);
    snprintf(line, sizeof line, "Name:\tposenc\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\n",
             online);
    put("/proc/self/status", line);
    snprintf(path, sizeof path, CPU "/cpu%d/topology/thread_siblings_list", last);
    snprintf(line, sizeof line, "%s\n", siblings_of_last);
    put(path, line);
}

/* Ticks of four kinds of two CPUs: busy, idle, stolen. */
static inline void put_ticks(unsigned busy, unsigned idle, unsigned stolen)
{
    char text[512];
    snprintf(
        text, sizeof text,
        "cpu  %u 0 0 %u 0 0 0 %u 0 0\ncpu0 %u 0 0 %u 0 0 0 %u 0 0\ncpu1 0 0 0 %u 0 0 0 0 0 "
        "0\nintr 5\n",
        busy, 2 * idle, stolen, busy, idle - busy, stolen, idle);
    put("/proc/stat", text);
}

/* The env record of the machine; the build, and what the CPU itself says, are not of its files. */
static inline json_t *env_of_machine(const char *hypervisor)
{
    static const struct env_library library = { "1.2.3", "paper", "", NULL, NULL };
    json_t *env = env_record(&library, root);
    json_object_set_new(
        env, "build",
        json_pack("{s:b,s:s,s:s}", "optimised", 1, "type", "release", "cc", "gcc"));
    json_object_set_new(env, "virtualization",
                        hypervisor ? json_string(hypervisor) : json_null());
    return env;
}

#endif
