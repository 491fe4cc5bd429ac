/*
 * Runs whole commands in workers (see worker.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "args.h"
#include "worker.h"
#include "base/text/text.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
enum { ENDING = sizeof ending / sizeof *ending };
static volatile sig_atomic_t caught;

struct command_run {
    int (*run)(void *user);
    void *user;
    const char *name;
    struct worker_job job;
    int code, passed, waited;
    bool told; /* the code is the worker's own */
};

static void on_signal(int number) { caught = number; }

static size_t run_command(void *user, size_t first)
{
    const struct command_run *command = user;
    (void)first;
    worker_exit(command->run(command->user));
}

static void take_code(void *user, json_t *message)
{
    struct command_run *command = user;
    if (json_unpack(message, "{s:i}", "code", &command->code) == 0)
        command->told = true;
}

/* Returns true if the command ended as any program does whose reader goes away. */
static bool lost_its_reader(int number)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return number == SIGPIPE && poll(&out, 1, 0) > 0 &&
           (out.revents & (POLLERR | POLLHUP)) != 0;
}

static size_t lose_command(void *user, const struct worker_end *end)
{
    struct command_run *command = user;
    command->told = false;
    command->code = EXIT_CONFORMANCE;
    if (lost_its_reader(end->signal))
        command->code = EXIT_READER_GONE;
    else if (!caught)
        text_print(stderr, "posenc %s: %s %s\n", command->name, end->how, end->note->doing);
    return command->job.n_steps;
}

/* Passes a signal on, and leaves the worker time to write what there is. */
static bool pass_signal(void *user)
{
    enum { GRACE = 8 }; /* looks */
    struct command_run *command = user;
    if (caught && !command->passed)
        kill(-command->job.pid, command->passed = caught);
    command->waited += command->passed != 0;
    return command->waited <= GRACE;
}

int worker_command(int (*run)(void *user), void *user, const char *name, double limit_s)
{
    const struct worker_limits limits = worker_limits_of(limit_s, (double)INFINITY);
    struct sigaction before[ENDING], action = { .sa_handler = on_signal };
    struct command_run command = {
        .run = run, .user = user, .name = name, .code = EXIT_CONFORMANCE
    };
    command.job = (struct worker_job){ .user = &command,
                                       .n_steps = 1,
                                       .run = run_command,
                                       .take = take_code,
                                       .lost = lose_command,
                                       .prints = true };
    for (int i = 0; i < ENDING; i++) {
        sigaction(ending[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* nohup keeps its promise */
            sigaction(ending[i], &action, NULL);
    }
    workers_run(&command.job, 1, 1, &limits, pass_signal, &command);
    for (int i = 0; i < ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
    if (caught && !command.told)
        raise(caught);
    return command.code;
}
