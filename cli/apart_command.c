/*
 * Commands in processes of their own: see apart.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "apart.h"

#include "args.h"
#include "base/text/text.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct command_apart {
    int (*run)(void *user);
    void *user;
};

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
enum { ENDING = sizeof ending / sizeof *ending };
static volatile sig_atomic_t caught;
static int own_to = -1; /* in the process: where its exit code goes */

static void on_signal(int number) { caught = number; }

static void tell_and_exit(int code)
{
    fflush(NULL);
    apart_tell(own_to, &code, sizeof code);
    exit(ALL_DONE);
}

void apart_exit(int code)
{
    if (own_to >= 0)
        tell_and_exit(code);
    exit(code);
}

static void run_command(void *user, int to)
{
    const struct command_apart *command = user;
    own_to = to;
    tell_and_exit(command->run(command->user));
}

/* Waits for the exit code; false where none comes.  A signal is passed on, with time to write what there
 * is. */
static bool wait_for_code(struct apart *apart, const struct patience *patience, int *code,
                          char hung[APART_WORDS])
{
    enum { GRACE = 8 }; /* moments */
    int passed = 0, waited = 0;
    enum apart_said said;
    while ((said = apart_listen(apart, patience, code, sizeof *code, hung)) == APART_QUIET &&
           waited <= GRACE) {
        if (caught && !passed)
            kill(-apart->pid, passed = caught);
        waited += passed != 0;
    }
    return said == APART_SAID;
}

/* Whether it ended as any program does whose reader goes away: that is no conduct of a plug-in's. */
static bool lost_its_reader(const struct apart *apart)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return apart->signal == SIGPIPE && poll(&out, 1, 0) > 0 &&
           (out.revents & (POLLERR | POLLHUP)) != 0;
}

int apart_command(int (*run)(void *user), void *user, const char *name, double limit_s)
{
    const struct patience patience = patience_of(limit_s, (double)INFINITY);
    struct command_apart command = { run, user };
    struct sigaction before[ENDING], action = { .sa_handler = on_signal };
    struct apart apart;
    char hung[APART_WORDS] = "", words[APART_WORDS], where[APART_DOING + 16];
    int code = EXIT_CONFORMANCE;
    for (int i = 0; i < ENDING; i++) {
        sigaction(ending[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* nohup keeps its promise */
            sigaction(ending[i], &action, NULL);
    }
    if (!apart_begin(&apart, run_command, &command, true))
        return run(user);
    const bool told = wait_for_code(&apart, &patience, &code, hung);
    const bool done = apart_end(&apart, !told && (hung[0] != '\0' || caught), words);
    apart_where(&apart, "", where, sizeof where);
    apart_forget(&apart);
    for (int i = 0; i < ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
    if (caught && !told)
        raise(caught);
    if (told && done)
        return code;
    if (lost_its_reader(&apart))
        return EXIT_READER_GONE;
    text_print(stderr, "posenc %s: %s%s\n", name, hung[0] != '\0' ? hung : words, where);
    return EXIT_CONFORMANCE;
}
