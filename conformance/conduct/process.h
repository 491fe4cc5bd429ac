/*
 * What of the process a call may not change: which descriptors are open, how many threads there
 * are, handlers of signals, environment, locale and working directory.
 */
#ifndef POSENC_PROCESS_H
#define POSENC_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { WATCHED_FILES = 1024, WATCHED_THREADS = 256, WATCHED_SIGNALS = 65, PROCESS_TEXT = 96 };

struct process_state {
    bool open[WATCHED_FILES];
    int n_threads; /* 0: not known here */
    long threads[WATCHED_THREADS];
    struct sigaction handlers[WATCHED_SIGNALS];
    sigset_t blocked;
    stack_t stack;
    uint64_t environment, locale;
    dev_t device;
    ino_t directory;
};

/* Texts say what changed; empty where nothing did. */
struct process_changes {
    char files[PROCESS_TEXT], threads[PROCESS_TEXT], signals[PROCESS_TEXT],
        surroundings[PROCESS_TEXT];
};

void process_look(struct process_state *state);
/* What changed since; signals are then handled as before. */
void process_compare(const struct process_state *before, struct process_changes *changes);

/* Why threads are not counted here; NULL: they are. */
const char *process_threads_unseen(void);

#endif
