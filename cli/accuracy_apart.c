/*
 * Compares a kernel in a process of its own: see accuracy.h.
 *
 * A change goes through a pipe as it is: its pointers are to constants and to backends, which lie at
 * the same addresses in a process and its parent.
 */
#define _POSIX_C_SOURCE 200809L
#include "accuracy.h"

#include "child.h"
#include "folder.h"
#include "outputs.h"
#include "side_by_side.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* So long a process may say nothing: all of a kernel's cases, on a machine that is slow and busy. */
static const double QUICK_S = 300.0, FULL_S = 3600.0;

/* What goes through the pipe: a change, or at the end what was found. */
struct message {
    bool last;
    struct accuracy found;
    struct change change;
};

static void send_change(void *user, const struct change *change)
{
    const int *to = user;
    child_tell(*to, &(struct message){ .change = *change }, sizeof(struct message));
}

/* All of the process. */
static void run_apart(const struct changes_ask *ask, enum posenc_kernel kernel, pid_t parent,
                      int to)
{
    folder_leave();
    end_with(parent);
    signal(SIGINT, SIG_IGN); /* the parent ends what is interrupted */
    const struct accuracy found = accuracy_compare(ask, kernel, send_change, &to);
    child_tell(to, &(struct message){ .last = true, .found = found }, sizeof(struct message));
    exit(0); /* not _exit(): sanitizers and coverage report at the end */
}

/* A process of a kernel, and how it ended where it did not come to its end. */
struct process {
    pid_t pid;
    int from;
    char how[200];
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reads one message; false at the end, where the program was interrupted, or where none comes. */
static bool receive(struct process *process, double silence_s, struct message *message)
{
    enum { ASK_AGAIN_MS = 200 };
    char *at = (char *)message;
    const double until = seconds() + silence_s;
    for (size_t left = sizeof *message; left > 0;) {
        struct pollfd waiting = { .fd = process->from, .events = POLLIN };
        const int ready = poll(&waiting, 1, ASK_AGAIN_MS);
        if (outputs_interrupted() != 0)
            return false;
        if (ready <= 0 && seconds() > until) {
            snprintf(process->how, sizeof process->how, "it said nothing for %.0f s",
                     silence_s);
            return false;
        }
        const ssize_t n = ready > 0 ? read(process->from, at, left) : 0;
        if (ready > 0 && (n == 0 || (n < 0 && errno != EINTR)))
            return false;
        at += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool start(struct process *process, const struct changes_ask *ask,
                  enum posenc_kernel kernel)
{
    int ends[2];
    const pid_t self = getpid();
    fflush(NULL); /* or both would write it */
    const bool piped = pipe(ends) == 0;
    *process = (struct process){ .pid = piped ? fork() : -1, .from = ends[0] };
    if (process->pid == 0) {
        close(ends[0]);
        run_apart(ask, kernel, self, ends[1]);
    }
    if (piped)
        close(ends[1]);
    if (piped && process->pid < 0)
        close(ends[0]);
    return process->pid > 0;
}

/* Waits for it; what it sends no more does not count. */
static void finish(struct process *process, bool complete)
{
    int status = 0;
    if (!complete && (process->how[0] || outputs_interrupted() != 0))
        kill(process->pid, SIGKILL);
    close(process->from);
    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (complete || process->how[0])
        return;
    if (WIFSIGNALED(status))
        snprintf(process->how, sizeof process->how, "the process ended by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(process->how, sizeof process->how, "the process was ended by exit(%d)",
                 WEXITSTATUS(status));
}

/* Starts a process and hands on what it sends.  Whether it came to its end; `process` tells how not. */
static bool run_and_listen(struct process *process, const struct changes_ask *ask,
                           enum posenc_kernel kernel, change_sink *sink, void *user,
                           struct accuracy *found)
{
    struct message message = { .last = false };
    *found = (struct accuracy){ .cases = 0 };
    if (!start(process, ask, kernel)) {
        snprintf(process->how, sizeof process->how, "no process can be made: %s",
                 strerror(errno));
        return false;
    }
    while (!message.last && receive(process, ask->options->full ? FULL_S : QUICK_S, &message)) {
        if (!message.last)
            sink(user, &message.change);
        found->changes[message.change.way] += !message.last;
    }
    if (message.last)
        *found = message.found;
    finish(process, message.last);
    return message.last;
}

static void ignore(void *user, const struct change *change) { (void)user, (void)change; }

/* Whether a build ends the process that has it on both sides. */
static bool ends_alone(struct process *process, const struct changes_ask *ask,
                       const struct subject *subject, enum posenc_kernel kernel)
{
    struct changes_ask alone = *ask;
    struct accuracy found;
    alone.base = alone.head = subject;
    return !run_and_listen(process, &alone, kernel, ignore, NULL, &found);
}

static struct conf_result result_of(const struct subject *subject, enum posenc_kernel kernel,
                                    bool ended, const struct process *process)
{
    struct conf_result r = { .kernel = kernel, .suite = "all", .profile = "given" };
    r.backend = subject->backend;
    r.status = ended ? CONF_CRASH : CONF_PASS;
    snprintf(r.id, sizeof r.id, "%s/f32/ended", posenc_kernel_name(kernel));
    snprintf(r.reason, sizeof r.reason, "%s", ended ? process->how : "");
    return r;
}

/* What base does not do alone is head's. */
struct accuracy accuracy_apart(const struct changes_ask *ask, enum posenc_kernel kernel,
                               change_sink *sink, void *user)
{
    struct accuracy found;
    struct change change;
    struct process both, base, head;
    if (run_and_listen(&both, ask, kernel, sink, user, &found) || outputs_interrupted() != 0)
        return found;
    const bool by_base = ends_alone(&base, ask, ask->base, kernel),
               by_head = !by_base || ends_alone(&head, ask, ask->head, kernel);
    const struct conf_result was = result_of(ask->base, kernel, by_base, &base),
                             is =
                                 result_of(ask->head, kernel, by_head, by_base ? &head : &both);
    found.failed += by_head;
    if (outputs_interrupted() == 0 && change_of_case(&change, &was, &is)) {
        found.changes[change.way]++;
        sink(user, &change);
    }
    return found;
}
