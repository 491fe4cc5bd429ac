/*
 * What of the process changed: see process.h.
 */
#define _GNU_SOURCE
#include "process.h"

#include <dirent.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- What is ---- */

static void look_at_files(bool open[WATCHED_FILES])
{
    struct pollfd polled[WATCHED_FILES];
    struct rlimit most;
    nfds_t n = WATCHED_FILES;
    if (getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur < n)
        n = (nfds_t)most.rlim_cur;
    for (nfds_t i = 0; i < n; i++)
        polled[i] = (struct pollfd){ .fd = (int)i };
    const bool looked = poll(polled, n, 0) >= 0;
    for (nfds_t i = 0; i < WATCHED_FILES; i++)
        open[i] = looked && i < n && !(polled[i].revents & POLLNVAL);
}

/* Linux has a folder of a process's threads; returns how many. */
static int look_at_threads(long threads[WATCHED_THREADS])
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    for (struct dirent *entry; tasks && (entry = readdir(tasks)) && n < WATCHED_THREADS;)
        if (entry->d_name[0] != '.')
            threads[n++] = strtol(entry->d_name, NULL, 10);
    if (tasks)
        closedir(tasks);
    return n;
}

const char *process_threads_unseen(void)
{
    return access("/proc/self/task", R_OK) == 0
               ? NULL
               : "this system does not say how many threads there are";
}

static uint64_t hash(uint64_t so_far, const char *text)
{
    for (; *text; text++)
        so_far = (so_far ^ (unsigned char)*text) * 0x100000001b3u;
    return so_far;
}

static uint64_t hash_environment(void)
{
    uint64_t all = 0xcbf29ce484222325u;
    for (char **at = environ; at && *at; at++)
        all = hash(all, *at) * 3;
    return all;
}

static uint64_t hash_locale(void)
{
    const char *name = setlocale(LC_ALL, NULL);
    return hash(0xcbf29ce484222325u, name ? name : "");
}

void process_look(struct process_state *state)
{
    struct stat here;
    memset(state, 0, sizeof *state);
    look_at_files(state->open);
    state->n_threads = look_at_threads(state->threads);
    for (int i = 1; i < WATCHED_SIGNALS; i++)
        sigaction(i, NULL, &state->handlers[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &state->blocked);
    sigaltstack(NULL, &state->stack);
    state->environment = hash_environment();
    state->locale = hash_locale();
    if (stat(".", &here) == 0) {
        state->device = here.st_dev;
        state->directory = here.st_ino;
    }
}

/* ---- What changed ---- */

static void compare_files(const struct process_state *before, const struct process_state *now,
                          char *text)
{
    for (int i = 0; i < WATCHED_FILES && !*text; i++)
        if (before->open[i] != now->open[i])
            snprintf(text, PROCESS_TEXT, "descriptor %d %s", i,
                     now->open[i] ? "was opened and left" : "was closed");
}

/* Returns true for a thread on its way out, as one that was joined may be until the system runs it again. */
static bool is_ending(long thread)
{
    const unsigned exiting = 0x4; /* PF_EXITING of Linux, the seventh field after the name */
    char path[64], line[512];
    unsigned flags = exiting;
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", thread);
    FILE *file = fopen(path, "r");
    if (file && fgets(line, sizeof line, file) && strrchr(line, ')'))
        sscanf(strrchr(line, ')'), ") %*c %*d %*d %*d %*d %*d %u", &flags);
    if (file)
        fclose(file);
    return flags & exiting;
}

static int new_threads(const struct process_state *before)
{
    long now[WATCHED_THREADS];
    int new = 0;
    for (int i = 0, n = before->n_threads ? look_at_threads(now) : 0; i < n; i++) {
        bool known = false;
        for (int k = 0; k < before->n_threads; k++)
            known = known || before->threads[k] == now[i];
        new += !known && !is_ending(now[i]);
    }
    return new;
}

/* In an emulator a thread that was joined may not have begun to end. */
static void compare_threads(const struct process_state *before, char *text)
{
    static const struct timespec moment = { .tv_nsec = 10000000 };
    int new = new_threads(before);
    for (int i = 0; i < 100 && new > 0; i++) {
        nanosleep(&moment, NULL);
        new = new_threads(before);
    }
    if (new > 0)
        snprintf(text, PROCESS_TEXT, "%d thread%s still running", new,
                 new == 1 ? " is" : "s are");
}

static bool same_handler(const struct sigaction *a, const struct sigaction *b)
{
    const bool informed = a->sa_flags & SA_SIGINFO;
    return a->sa_flags == b->sa_flags &&
           (informed ? a->sa_sigaction == b->sa_sigaction : a->sa_handler == b->sa_handler);
}

static void compare_signals(const struct process_state *before, const struct process_state *now,
                            char *text)
{
    for (int i = 1; i < WATCHED_SIGNALS; i++) {
        const bool blocked = sigismember(&now->blocked, i) == 1;
        if (!*text && blocked != (sigismember(&before->blocked, i) == 1))
            snprintf(text, PROCESS_TEXT, "signal %d is %s", i,
                     blocked ? "blocked" : "no longer blocked");
        if (same_handler(&before->handlers[i], &now->handlers[i]))
            continue;
        if (!*text)
            snprintf(text, PROCESS_TEXT, "another handler of signal %d", i);
        sigaction(i, &before->handlers[i], NULL);
    }
    if (!*text && now->stack.ss_sp != before->stack.ss_sp)
        snprintf(text, PROCESS_TEXT, "another stack of signals");
    pthread_sigmask(SIG_SETMASK, &before->blocked, NULL);
    if (now->stack.ss_sp != before->stack.ss_sp)
        sigaltstack(&before->stack, NULL);
}

void process_compare(const struct process_state *before, struct process_changes *changes)
{
    struct process_state now;
    process_look(&now);
    memset(changes, 0, sizeof *changes);
    compare_files(before, &now, changes->files);
    compare_threads(before, changes->threads);
    compare_signals(before, &now, changes->signals);
    const char *changed = now.environment != before->environment ? "environment"
                          : now.locale != before->locale         ? "locale"
                          : now.device != before->device || now.directory != before->directory
                              ? "working directory"
                              : NULL;
    if (changed)
        snprintf(changes->surroundings, PROCESS_TEXT, "another %s", changed);
}
