/*
 * Compares a kernel in a process of its own: see accuracy.h.
 *
 * A change goes through a pipe as it is: its pointers are to constants and to backends, which lie at
 * the same addresses in a process and its parent.
 */
#define _POSIX_C_SOURCE 200809L
#include "accuracy.h"

#include "apart.h"
#include "outputs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* So much CPU time a process may use without a word: all of a kernel's cases, on a slow machine. */
static const double QUICK_S = 600.0, FULL_S = 7200.0;

/* What goes through the pipe: a change, or at the end what was found. */
struct message {
    bool last;
    struct accuracy found;
    struct change change;
};

static void send_change(void *user, const struct change *change)
{
    const int *to = user;
    apart_tell(*to, &(struct message){ .change = *change }, sizeof(struct message));
}

/* All of the process. */
struct comparing {
    const struct changes_ask *ask;
    enum posenc_kernel kernel;
};

static void run_apart(void *user, int to)
{
    const struct comparing *this = user;
    const struct accuracy found = accuracy_compare(this->ask, this->kernel, send_change, &to);
    apart_tell(to, &(struct message){ .last = true, .found = found }, sizeof(struct message));
}

/* How a process ended that did not come to its end. */
struct process {
    struct apart apart;
    char how[APART_WORDS];
};

/* Reads one message; false at the end, where the program was interrupted, or where it hangs. */
static bool receive(struct process *process, const struct patience *patience,
                    struct message *message)
{
    enum apart_said said;
    do
        said = apart_listen(&process->apart, patience, message, sizeof *message, process->how);
    while (said == APART_QUIET && outputs_interrupted() == 0);
    apart_heard(&process->apart);
    return said == APART_SAID;
}

/* Starts a process and hands on what it sends.  Whether it came to its end; `process` tells how not. */
static bool run_and_listen(struct process *process, const struct changes_ask *ask,
                           enum posenc_kernel kernel, change_sink *sink, void *user,
                           struct accuracy *found)
{
    const struct patience patience =
        patience_of((double)NAN, ask->options->full ? FULL_S : QUICK_S);
    struct comparing this = { ask, kernel };
    struct message message = { .last = false };
    char words[APART_WORDS];
    *found = (struct accuracy){ .cases = 0 };
    process->how[0] = '\0';
    if (!apart_begin(&process->apart, run_apart, &this, false)) {
        snprintf(process->how, sizeof process->how, "no process can be made: %s",
                 strerror(errno));
        return false;
    }
    while (!message.last && receive(process, &patience, &message)) {
        if (!message.last)
            sink(user, &message.change);
        found->changes[message.change.way] += !message.last;
    }
    if (message.last)
        *found = message.found;
    const bool hung = process->how[0] != '\0';
    const bool fine = apart_end(&process->apart, hung || outputs_interrupted() != 0, words);
    if (!hung)
        snprintf(process->how, sizeof process->how, "%s", words);
    apart_forget(&process->apart);
    return message.last && fine;
}

static void ignore(void *user, const struct change *change) { (void)user, (void)change; }

/* Whether a build ends the process that has it on both sides. */
static bool ends_alone(struct process *process, const struct changes_ask *ask,
                       const struct implementation *implementation, enum posenc_kernel kernel)
{
    struct changes_ask alone = *ask;
    struct accuracy found;
    alone.base = alone.head = implementation;
    return !run_and_listen(process, &alone, kernel, ignore, NULL, &found);
}

static struct conf_result result_of(const struct implementation *implementation,
                                    enum posenc_kernel kernel, bool ended,
                                    const struct process *process)
{
    struct conf_result r = { .kernel = kernel, .suite = "all", .profile = "given" };
    r.backend = implementation->backend;
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
