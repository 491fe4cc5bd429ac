/*
 * Worker processes. A plug-in that crashes, exits or hangs ends its worker, and the run continues in another one.
 *
 * A job is a sequence of steps, such as the backends of a kernel. A worker runs the steps and sends messages, one JSON
 * object a line, through a pipe. If it ends early or hangs, the job decides with which step the next worker continues.
 * If step 2 of 5 crashes, on_early_end() usually reports that and returns 3: a second worker runs the steps 3 and 4.
 *
 * A worker hangs if one activity takes longer than a limit. Only the CPU time of the process counts, and time in which
 * it sleeps; time in which it waits for a CPU does not count.
 */
#ifndef POSENC_CLI_WORKER_H
#define POSENC_CLI_WORKER_H

#include "base/text/text.h"
#include "conformance/problem/guard.h"

#include <jansson.h>
#include <sys/types.h>

enum { WORKER_CAUSE = 384, WORKER_ACTIVITY = 160, WORKER_PATH = 4096 };

/* Memory shared by a worker, which writes it, and its parent. A plug-in may overwrite it. */
struct worker_status {
    struct guard_status call;
    volatile unsigned changes;      /* incremented when an activity begins or ends */
    volatile bool inside;           /* the activity is a call of a plug-in */
    volatile bool finished;         /* all steps before `next` are done */
    volatile size_t step;           /* current step */
    volatile size_t next;           /* first step of the next worker */
    volatile size_t number;         /* set by worker_set_number() */
    char activity[WORKER_ACTIVITY]; /* "in alibi/f32/given/l2" */
    char cause[WORKER_CAUSE];       /* of the end, from worker_fail(); or "" */
};

/* Early end of a worker: a crash, an exit or a hang. */
struct worker_end {
    char cause[WORKER_CAUSE]; /* "the process ended by signal 6 (Aborted)" */
    const struct worker_status *status;
};

struct worker_job {
    void *user;
    size_t n_steps;
    /* Runs in the worker: the steps from `first` on. Returns the first step for another worker, or n_steps. */
    size_t (*run)(void *user, size_t first);
    /* NULL, or runs in the parent for each message of the worker, which workers_run() frees. */
    void (*on_message)(void *user, json_t *message);
    /* Runs in the parent after an early end. Returns the step with which another worker continues, or n_steps. */
    size_t (*on_early_end)(void *user, const struct worker_end *end);
    bool prints; /* the worker keeps standard output; otherwise it is redirected to stderr */
    /* Set by workers_run(): the process, the current step, and true when all steps are done. */
    pid_t pid;
    size_t step;
    bool finished;
};

/* Seconds that one activity may take: a call of a plug-in, or other work of the worker. */
struct worker_limits {
    double inside_s, outside_s;
};
/* Returns the limits for --limit (NaN: the default); `outside_s` is at least that argument. */
struct worker_limits worker_limits_of(double limit_s, double outside_s);

/* Runs n jobs in their order, at most `max_workers` at the same time. Calls `keep_going` a few times a second; if it
 * returns false, kills all workers and returns false. Exits the program if no process can be started. */
bool workers_run(struct worker_job *jobs, size_t n, size_t max_workers,
                 const struct worker_limits *limits, bool (*keep_going)(void *user),
                 void *user);

/* ---- Functions for code that runs in a worker ---- */

/* Sends a message and frees it. */
void worker_send(json_t *message);

/* The functions below write the status that the parent reads. Outside a worker they do nothing. */

/* Sets the current step. */
void worker_set_step(size_t step);
/* Sets a number whose meaning the job defines. */
void worker_set_number(size_t number);
/* Sets the current activity, such as "after alibi/f32/given/l2"; `inside` a plug-in or not. */
void worker_set_activity(bool inside, const char *format, ...) PRINTF_LIKE(2, 3);
/* Set the activity at the begin and the end of a call of a kernel. */
void worker_enter_kernel(const char *kernel);
void worker_leave_kernel(void);

/* Ends the worker early, with this cause. */
_Noreturn void worker_fail(const char *cause);

/* Exits the program; in the worker of a command, ends the worker and sends {"code": the exit code} to its parent. */
_Noreturn void worker_exit(int code);

/* Makes this process end together with the process `parent`, which started it. Returns false if that has ended. */
bool worker_end_with_parent(pid_t parent);

#endif
