/*
 * Work in processes of its own, so that a plug-in that crashes, exits or hangs costs a result and
 * not the run.
 *
 * A job is a list of steps, such as the backends of a kernel. A worker process runs them one
 * after the other and sends messages, one JSON object a line, through a pipe. If the worker ends
 * early or hangs, the job names the culprit and the step with which another worker continues.
 *
 * A worker hangs if it is busy with one thing for too long by its own clock: the CPU time that it
 * used, or time in which it slept and nothing woke it. A worker that waits for a CPU does not
 * hang.
 */
#ifndef POSENC_CLI_WORKER_H
#define POSENC_CLI_WORKER_H

#include "conformance/problem/guard.h"

#include <jansson.h>
#include <sys/types.h>

#if defined(__GNUC__)
#define WORKER_PRINTF(form, first) __attribute__((__format__(__printf__, form, first)))
#else
#define WORKER_PRINTF(form, first)
#endif

enum { WORKER_HOW = 160, WORKER_DOING = 160, WORKER_PATH = 4096 };

/* Memory that a worker writes and its parent reads. A plug-in may have overwritten it. */
struct worker_note {
    struct guard_note call;
    volatile unsigned turn;     /* changes whenever the worker begins something else */
    volatile bool inside;       /* code of a plug-in runs */
    volatile bool finished;     /* all steps before `next` are done */
    volatile size_t step;       /* the step at hand */
    volatile size_t next;       /* the first step that the worker leaves to another one */
    volatile size_t numbers[2]; /* set by worker_note_number() */
    char doing[WORKER_DOING];   /* "in alibi/f32/given/l2" */
};

/* An end that no worker should come to. */
struct worker_end {
    char how[WORKER_HOW]; /* "the process ended by signal 6 (Aborted)" */
    int signal;           /* signal that ended the process, or 0 */
    const struct worker_note *note;
};

struct worker_job {
    void *user;
    size_t n_steps;
    /* In the worker: runs steps from `first` on. Returns the first step that needs another
     * worker; n_steps for none. */
    size_t (*run)(void *user, size_t first);
    /* In the parent: takes a message of the worker, which the caller frees. */
    void (*take)(void *user, json_t *message);
    /* In the parent: takes the early end of a worker. Returns the step with which another one
     * continues, or n_steps. */
    size_t (*lost)(void *user, const struct worker_end *end);
    bool prints; /* its standard output is that of the program, else stderr */
    /* Set by workers_run(): the process, the step at hand, and that all steps are done. */
    pid_t pid;
    size_t step;
    bool finished;
};

/* Seconds that a call of a plug-in may take, and anything of this program. */
struct worker_limits {
    double inside_s, outside_s;
};
/* Limits by --limit (NaN: the default), and at least `outside_s` for this program. */
struct worker_limits worker_limits_of(double limit_s, double outside_s);

/* Runs n jobs in their order, at most `at_once` at the same time. Asks `goes_on` a few times a
 * second; if it returns false, kills all workers and returns false. Ends the program if the
 * system has no process for a worker. */
bool workers_run(struct worker_job *jobs, size_t n, size_t at_once,
                 const struct worker_limits *limits, bool (*goes_on)(void *user), void *user);

/* ---- For the code that a worker runs ---- */

/* Sends a message and frees it. */
void worker_send(json_t *message);

/* The functions below write the worker's note. Outside a worker they do nothing. */

/* Notes the step that begins. */
void worker_note_step(size_t step);
/* Notes a number for the parent; its meaning is the job's. */
void worker_note_number(size_t which, size_t value);
/* Notes work of this program, such as "after alibi/f32/given/l2", or of a plug-in (`inside`). */
void worker_note_work(bool inside, const char *form, ...) WORKER_PRINTF(2, 3);
/* Notes that a call of a kernel begins, and that it has ended. */
void worker_enter_kernel(const char *kernel);
void worker_leave_kernel(void);

/* ---- Commands ---- */

/* Runs a whole command in a worker that prints, and returns its exit code. Where the worker
 * ends early, a line on stderr says how, and the code is that of a conformance failure. A
 * signal that ends this process ends the worker first. */
int worker_command(int (*run)(void *user), void *user, const char *name, double limit_s);
/* exit(), or, in the worker of a command, the end of that worker with this exit code. */
_Noreturn void worker_exit(int code);

#endif
