/*
 * Compares a kernel in a process of its own: see accuracy.h.
 *
 * A change goes through a pipe as it is: its pointers are to constants and to backends, which lie at
 * the same addresses in a process and its parent.
 */
#define _POSIX_C_SOURCE 200809L
#include "accuracy.h"

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
#include <unistd.h>

/* What goes through the pipe: a change, or at the end what was found. */
struct message {
    bool last;
    struct accuracy found;
    struct change change;
};

static void send_message(int to, const struct message *message)
{
    const char *at = (const char *)message;
    size_t left = sizeof *message;
    while (left > 0) {
        const ssize_t n = write(to, at, left);
        if (n < 0 && errno != EINTR)
            _exit(1); /* nobody reads any more */
        at += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
}

static void send_change(void *user, const struct change *change)
{
    const int *to = user;
    send_message(*to, &(struct message){ .change = *change });
}

/* All of the process. */
static void run_apart(const struct changes_ask *ask, enum posenc_kernel kernel, pid_t parent,
                      int to)
{
    folder_leave();
    end_with(parent);
    signal(SIGINT, SIG_IGN); /* the parent ends what is interrupted */
    const struct accuracy found = accuracy_compare(ask, kernel, send_change, &to);
    send_message(to, &(struct message){ .last = true, .found = found });
    exit(0); /* not _exit(): sanitizers and coverage report at the end */
}

/* Reads one message; false at the end, or where the program was interrupted. */
static bool receive(int from, struct message *message)
{
    enum { ASK_AGAIN_MS = 200 };
    char *at = (char *)message;
    for (size_t left = sizeof *message; left > 0;) {
        struct pollfd waiting = { .fd = from, .events = POLLIN };
        const int ready = poll(&waiting, 1, ASK_AGAIN_MS);
        if (outputs_interrupted() != 0)
            return false;
        const ssize_t n = ready > 0 ? read(from, at, left) : 0;
        if (ready > 0 && (n == 0 || (n < 0 && errno != EINTR)))
            return false;
        at += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Starts the process and hands on what it sends; whether it came to its end, or else how it ended. */
static bool run_and_listen(const struct changes_ask *ask, enum posenc_kernel kernel,
                           change_sink *sink, void *user, struct accuracy *found, int *status)
{
    struct message message = { .last = false };
    int ends[2];
    const pid_t self = getpid();
    fflush(NULL); /* or both would write it */
    const bool piped = pipe(ends) == 0;
    const pid_t pid = piped ? fork() : -1;
    if (pid == 0) {
        close(ends[0]);
        run_apart(ask, kernel, self, ends[1]);
    }
    if (piped)
        close(ends[1]);
    while (pid > 0 && !message.last && receive(ends[0], &message)) {
        if (!message.last && sink)
            sink(user, &message.change);
        found->changes[message.change.way] += !message.last;
    }
    if (pid > 0 && !message.last && outputs_interrupted() != 0)
        kill(pid, SIGKILL);
    if (piped)
        close(ends[0]);
    *status = -1;
    while (pid > 0 && waitpid(pid, status, 0) < 0 && errno == EINTR) {
    }
    if (message.last)
        *found = message.found;
    return message.last;
}

/* The result of one side: whether its build ends a process that has no other to run. */
static struct conf_result result_alone(const struct changes_ask *ask,
                                       const struct subject *subject, enum posenc_kernel kernel)
{
    struct changes_ask alone = *ask;
    struct accuracy ignored;
    struct conf_result r = {
        .kernel = kernel, .suite = "all", .profile = "given", .backend = subject->backend
    };
    int status;
    alone.base = alone.head = subject;
    snprintf(r.id, sizeof r.id, "%s/f32/ended", posenc_kernel_name(kernel));
    if (run_and_listen(&alone, kernel, NULL, NULL, &ignored, &status))
        return r;
    r.status = CONF_CRASH;
    if (WIFSIGNALED(status))
        snprintf(r.reason, sizeof r.reason, "the process ended by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(r.reason, sizeof r.reason, "the process was ended by exit(%d)",
                 WEXITSTATUS(status));
    return r;
}

struct accuracy accuracy_apart(const struct changes_ask *ask, enum posenc_kernel kernel,
                               change_sink *sink, void *user)
{
    struct accuracy found = { .cases = 0 };
    struct change change;
    int status;
    if (run_and_listen(ask, kernel, sink, user, &found, &status) || outputs_interrupted() != 0)
        return found;
    const struct conf_result base = result_alone(ask, ask->base, kernel);
    struct conf_result head = result_alone(ask, ask->head, kernel);
    if (base.status == CONF_PASS && head.status == CONF_PASS) { /* not twice the same */
        head.status = CONF_CRASH;
        snprintf(head.reason, sizeof head.reason, "the process ended where base ran, too");
    }
    found.failed += head.status == CONF_CRASH;
    if (change_of_case(&change, &base, &head)) {
        found.changes[change.way]++;
        sink(user, &change);
    }
    return found;
}
