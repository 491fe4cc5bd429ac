/* Runs a command in a worker (see worker.h) and passes signals on to it. */
#define _POSIX_C_SOURCE 200809L
#include "args.h"
#include "worker.h"
#include "base/text/text.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t caught_signal; /* 0: none */

struct command_run {
    int (*run)(void *user);
    void *user;
    const char *name;
    struct worker_job job;
    int code;
    bool has_code;     /* the worker sent it */
    int passed_signal; /* passed on to the worker; 0: none */
    int n_polls;       /* polls since then */
};

static void catch_signal(int number) { caught_signal = number; }

static size_t run_command(void *user, size_t first)
{
    const struct command_run *command = user;
    (void)first;
    worker_exit(command->run(command->user));
}

static void receive_exit_code(void *user, json_t *message)
{
    struct command_run *command = user;
    if (json_unpack(message, "{s:i}", "code", &command->code) == 0)
        command->has_code = true;
}

/* Returns true if the command ended by SIGPIPE since the reader of its output went away. */
static bool has_broken_pipe(int number)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return number == SIGPIPE && poll(&out, 1, 0) > 0 &&
           (out.revents & (POLLERR | POLLHUP)) != 0;
}

static size_t report_early_end(void *user, const struct worker_end *end)
{
    struct command_run *command = user;
    command->has_code = false;
    command->code = EXIT_CONFORMANCE;
    if (has_broken_pipe(end->signal))
        command->code = EXIT_BROKEN_PIPE;
    else if (!caught_signal)
        text_print(stderr, "posenc %s: %s %s\n", command->name, end->cause,
                   end->status->activity);
    return command->job.n_steps;
}

/* Passes a signal on. Returns false after the time that the worker has to write its results. */
static bool pass_signal(void *user)
{
    enum { GRACE_POLLS = 8 };
    struct command_run *command = user;
    if (caught_signal && !command->passed_signal)
        kill(-command->job.pid, command->passed_signal = caught_signal);
    command->n_polls += command->passed_signal != 0;
    return command->n_polls <= GRACE_POLLS;
}

int worker_run_command(int (*run)(void *user), void *user, const char *name, double limit_s)
{
    const struct worker_limits limits = worker_limits_of(limit_s, (double)INFINITY);
    struct sigaction before[N_END_SIGNALS], action = { .sa_handler = catch_signal };
    struct command_run command = {
        .run = run, .user = user, .name = name, .code = EXIT_CONFORMANCE
    };
    command.job = (struct worker_job){ .user = &command,
                                       .n_steps = 1,
                                       .run = run_command,
                                       .on_message = receive_exit_code,
                                       .on_early_end = report_early_end,
                                       .prints = true };
    for (int i = 0; i < N_END_SIGNALS; i++) {
        sigaction(end_signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* nohup ignores SIGHUP */
            sigaction(end_signals[i], &action, NULL);
    }
    workers_run(&command.job, 1, 1, &limits, pass_signal, &command);
    for (int i = 0; i < N_END_SIGNALS; i++)
        sigaction(end_signals[i], &before[i], NULL);
    if (caught_signal && !command.has_code)
        raise(caught_signal);
    return command.code;
}
