/*
 * What a call may not change of its process.
 */
#define _GNU_SOURCE
#include "conduct.h"

#include <fcntl.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { FILES = sizeof((struct process *)0)->open, SIGNALS = 65 };

static uint64_t hash(uint64_t so_far, const char *text)
{
    for (; text && *text; text++)
        so_far = (so_far ^ (unsigned char)*text) * 0x100000001b3u;
    return so_far * 3;
}

static uint64_t hash_surroundings(void)
{
    char folder[4096];
    uint64_t all =
        hash(hash(0xcbf29ce484222325u, setlocale(LC_ALL, NULL)), getcwd(folder, sizeof folder));
    for (char **at = environ; at && *at; at++)
        all = hash(all, *at);
    return all;
}

/* Linux has a folder of a process's threads, which has a link for each and two of its own. */
static unsigned long count_threads(void)
{
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 ? (unsigned long)tasks.st_nlink - 2 : 0;
}

void process_look(struct process *process)
{
    memset(process, 0, sizeof *process);
    for (int i = 0; i < FILES; i++)
        process->open[i] = fcntl(i, F_GETFD) >= 0;
    for (int i = 1; i < SIGNALS; i++)
        sigaction(i, NULL, &process->handlers[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &process->blocked);
    process->threads = count_threads();
    process->surroundings = hash_surroundings();
}

int process_other_file(const struct process *a, const struct process *b)
{
    for (int i = 0; i < FILES; i++)
        if (a->open[i] != b->open[i])
            return i;
    return -1;
}

static bool same_handler(const struct process *a, const struct process *b, int i)
{
    return a->handlers[i].sa_handler == b->handlers[i].sa_handler &&
           a->handlers[i].sa_flags == b->handlers[i].sa_flags;
}

int process_other_signal(const struct process *a, const struct process *b)
{
    for (int i = 1; i < SIGNALS; i++)
        if (!same_handler(a, b, i) ||
            sigismember(&a->blocked, i) != sigismember(&b->blocked, i))
            return i;
    return -1;
}

/* One that was joined is there until the system runs it again. */
unsigned long process_more_threads(const struct process *before)
{
    static const struct timespec moment = { .tv_nsec = 10000000 };
    unsigned long now = count_threads();
    for (int i = 0; i < 100 && now > before->threads; i++) {
        nanosleep(&moment, NULL);
        now = count_threads();
    }
    return now > before->threads ? now - before->threads : 0;
}

/* A handler that is set again has another flag, of the C library's. */
void process_restore_signals(const struct process *before, const struct process *now)
{
    for (int i = 1; i < SIGNALS; i++)
        if (!same_handler(before, now, i))
            sigaction(i, &before->handlers[i], NULL);
    pthread_sigmask(SIG_SETMASK, &before->blocked, NULL);
}
