/*
 * Starting launches and reading what they find, see launches.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "launches.h"
#include "apart.h"
#include "progress.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ASK_AGAIN_MS = 100, LAST_FILE = 256 };
static const double SILENCE_S =
    120.0; /* of its own time: longer than any first call and its check */

/* One process. */
struct child {
    struct launch *launch;
    pid_t pid;
    int from;
    char *text; /* what came of a line */
    size_t length, room;
    size_t item; /* at which it is */
    enum pair_side who;
    bool *done; /* [n] of the launch: has a result */
    bool ended, changed;
    struct silence silence; /* since it last said something */
};

/* ---- Starting one ---- */

static json_t *orders_of(const struct launch *launch, const bool *done)
{
    json_t *items = json_array();
    for (size_t i = 0; i < launch->n; i++)
        if (!done[i])
            json_array_append_new(items, json_pack("[I,I,I]", (json_int_t)i,
                                                   (json_int_t)launch->items[i].at_case,
                                                   (json_int_t)launch->items[i].name));
    return json_pack("{s:I,s:I,s:I,s:f,s:b,s:o}", "parent", (json_int_t)getpid(), "launch",
                     (json_int_t)launch->number, "seed", (json_int_t)(launch->seed & INT64_MAX),
                     "share_s", launch->share_s, "rows_alone", launch->rows_alone, "items",
                     items);
}

/* In the new process: the program again, with the command line of this one, where operands that are
 * revisions are what was built of them. */
static void become_launch(const struct cli *cli, const int orders[2], const int results[2])
{
    char **argv = calloc((size_t)cli->argc + 2, sizeof *argv);
    static char command[] = "launch";
    if (!argv || dup2(orders[0], STDIN_FILENO) < 0 || dup2(results[1], LAUNCH_RESULTS) < 0 ||
        !freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
        _exit(EXIT_USAGE);
    signal(SIGINT, SIG_IGN); /* this process ends that one */
    for (int file = LAUNCH_RESULTS + 1; file < LAST_FILE; file++)
        close(file);
    for (int i = 0; i < cli->argc; i++)
        argv[i] = i == 1 ? command : cli->argv[i];
    for (int i = 0; i < 2 && cli->builds[i]; i++)
        argv[cli->operands - cli->argv + i] = (char *)(uintptr_t)cli->builds[i];
    execv("/proc/self/exe", argv);
    execvp(argv[0], argv);
    _exit(EXIT_USAGE);
}

static bool begin_child(struct child *child)
{
    int orders[2] = { -1, -1 }, results[2] = { -1, -1 };
    json_t *json = orders_of(child->launch, child->done);
    fflush(NULL); /* or both would write it */
    const bool piped = json && pipe(orders) == 0 && pipe(results) == 0;
    child->pid = piped ? fork() : -1;
    if (child->pid == 0)
        become_launch(child->launch->cli, orders, results);
    if (piped) {
        close(orders[0]);
        close(results[1]);
    }
    FILE *to = child->pid > 0 ? fdopen(orders[1], "w") : NULL;
    const bool told = to && json_dumpf(json, to, JSON_COMPACT) == 0;
    if (to)
        fclose(to);
    json_decref(json);
    child->from = results[0];
    child->ended = child->changed = false;
    child->length = 0;
    if (child->pid > 0)
        silence_begins(&child->silence, child->pid);
    return told;
}

/* ---- Reading from it ---- */

static enum pair_side side_of(const char *name)
{
    int side = 0;
    while (side < PAIR_SIDES && strcmp(pair_side_name[side], name) != 0)
        side++;
    return (enum pair_side)side;
}

/* The files that were opened are those of the launch before, which were checked in full. */
static void take_builds(struct child *child, const json_t *message)
{
    static const char *const names[] = { "base", "head" };
    for (size_t i = 0; i < 2; i++) {
        char *known = child->launch->sha256[i];
        const char *is = record_text(message, names[i]);
        if (*known && strcmp(known, is) != 0)
            child->changed = true;
        snprintf(known, sizeof child->launch->sha256[i], "%s", is);
    }
}

static void take_message(struct child *child, const json_t *message)
{
    struct launch *launch = child->launch;
    const char *kind = record_text(message, "t");
    const size_t item = (size_t)record_int(message, "item", -1);
    if (strcmp(kind, "builds") == 0) {
        take_builds(child, message);
    } else if (strcmp(kind, "end") == 0) {
        child->ended = true;
    } else if (item < launch->n) {
        child->item = item;
        child->who = side_of(record_text(message, "who"));
        if (strcmp(kind, "result") == 0 && !child->done[item]) {
            child->done[item] = true;
            launch->result(launch->user, item, message, child->who, NULL);
        }
    }
}

static bool add_text(struct child *child, const char *text, size_t n)
{
    if (child->length + n > child->room) {
        const size_t room = 2 * (child->length + n);
        char *more = realloc(child->text, room);
        if (!more)
            return false;
        child->text = more;
        child->room = room;
    }
    memcpy(child->text + child->length, text, n);
    child->length += n;
    return true;
}

/* Reads what there is; false at the end. */
static bool listen_to(struct child *child)
{
    char block[1 << 14];
    const ssize_t n = read(child->from, block, sizeof block);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    silence_begins(&child->silence, child->pid);
    if (!add_text(child, block, (size_t)n))
        return false;
    char *line = child->text, *end;
    size_t left = child->length;
    while ((end = memchr(line, '\n', left)) != NULL) {
        json_t *message = json_loadb(line, (size_t)(end - line), 0, NULL);
        if (message)
            take_message(child, message);
        json_decref(message);
        left -= (size_t)(end + 1 - line);
        line = end + 1;
    }
    memmove(child->text, line, left);
    child->length = left;
    return true;
}

/* ---- Its end ---- */

static bool is_fault(int number)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i] == number)
            return true;
    return false;
}

/* Waits for it, and says how it ended before its time. */
static void wait_for(struct child *child, const char *silent, char words[PAIR_REASON])
{
    int status = 0;
    close(child->from);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (*silent)
        snprintf(words, PAIR_REASON, "%s", silent);
    else if (WIFSIGNALED(status))
        snprintf(words, PAIR_REASON, "the process ended by signal %d (%s)%s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)),
                 is_fault(WTERMSIG(status)) ? "" : ", which came from outside");
    else
        snprintf(words, PAIR_REASON, "the process was ended by exit(%d)", WEXITSTATUS(status));
}

/* The item that is running or comes next. */
static size_t next_item(const struct child *child)
{
    size_t i = child->item;
    if (i < child->launch->n && !child->done[i])
        return i;
    for (i = 0; i < child->launch->n && child->done[i]; i++) {
    }
    return i;
}

/* One process, from its start to its end; false where the caller wants no more. */
static bool run_child(struct child *child, char words[PAIR_REASON])
{
    struct launch *launch = child->launch;
    bool stop = false, hung = false;
    char silent[APART_WORDS] = "";
    for (bool open = true; open && !stop && !hung;) {
        struct pollfd one = { .fd = child->from, .events = POLLIN };
        if (poll(&one, 1, ASK_AGAIN_MS) > 0)
            open = listen_to(child);
        stop = launch->stop(launch->user, next_item(child));
        hung = !stop && silence_lasts(&child->silence, child->pid, SILENCE_S, silent);
    }
    if (stop || hung)
        kill(child->pid, SIGKILL);
    wait_for(child, silent, words);
    return !stop;
}

static int refuse_launch(const struct launch *launch, const char *what, const char *why)
{
    progress_clear();
    return cli_refuse(launch->cli, what, NULL, "%s", why);
}

/* Starts processes until every item has a result. */
static int run_all(struct child *child)
{
    struct launch *launch = child->launch;
    char words[PAIR_REASON];
    for (size_t left = launch->n; left > 0;) {
        const size_t before = left;
        child->item = launch->n;
        child->who = PAIR_SIDES;
        if (!begin_child(child))
            return refuse_launch(launch, "launch", "no process can be made for it");
        if (!run_child(child, words))
            return EXIT_FINE;
        if (child->changed)
            return refuse_launch(launch, "builds",
                                 "one of the files changed while they were compared: expected "
                                 "files that stay as they are");
        if (!child->ended && child->item < launch->n && !child->done[child->item]) {
            child->done[child->item] = true;
            launch->result(launch->user, child->item, NULL, child->who, words);
        }
        left = 0;
        for (size_t i = 0; i < launch->n; i++)
            left += !child->done[i];
        if (left == before)
            return refuse_launch(launch, "launch", words);
    }
    return EXIT_FINE;
}

int launch_run(struct launch *launch)
{
    struct child child = { .launch = launch, .done = calloc(launch->n + 1, sizeof(bool)) };
    const int status =
        child.done ? run_all(&child) : cli_refuse(launch->cli, "memory", NULL, "none left");
    free(child.done);
    free(child.text);
    return status;
}
