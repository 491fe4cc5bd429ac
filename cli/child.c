/*
 * Processes of other programs: see child.h.
 */
#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Signals ---- */

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
enum { ENDING = sizeof ending / sizeof *ending };
static struct sigaction before[ENDING];
static volatile sig_atomic_t running, caught;

static void on_signal(int number)
{
    const int saved = errno;
    if (running > 0)
        kill(-(pid_t)running, caught ? SIGKILL : SIGTERM);
    caught = number;
    errno = saved;
}

void child_begin(void)
{
    caught = 0;
    for (int i = 0; i < ENDING; i++) {
        struct sigaction action = { .sa_handler = on_signal };
        sigaction(ending[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* nohup keeps its promise */
            sigaction(ending[i], &action, NULL);
    }
}

int child_interrupted(void) { return caught; }

void child_end(void)
{
    const int number = caught;
    for (int i = 0; i < ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
    caught = 0;
    if (number)
        raise(number);
}

/* ---- Processes ---- */

static void become(const char *const *argv, const char *folder, int out, int error)
{
    static const char *const git[] = { "GIT_DIR",    "GIT_WORK_TREE",  "GIT_INDEX_FILE",
                                       "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY" };
    const int in = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    for (size_t i = 0; folder && i < sizeof git / sizeof *git; i++)
        unsetenv(git[i]);
    if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out < 0 ? in : out, STDOUT_FILENO) < 0 ||
        dup2(error < 0 ? in : error, STDERR_FILENO) < 0 || (folder && chdir(folder) != 0))
        _exit(CHILD_MISSING);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(CHILD_MISSING);
}

/* In a group of its own, so that what it starts ends with it. */
static pid_t start(const char *const *argv, const char *folder, int out, int error)
{
    const sig_atomic_t caught_before = caught;
    fflush(NULL); /* or both would write it */
    const pid_t pid = fork();
    if (pid == 0)
        become(argv, folder, out, error);
    if (pid > 0)
        setpgid(pid, pid);
    running = pid > 0 ? (sig_atomic_t)pid : 0;
    if (pid > 0 && caught != caught_before) /* a signal that came in between */
        kill(-pid, SIGTERM);
    return pid;
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    running = 0;
    return pid < 0               ? CHILD_MISSING
           : WIFSIGNALED(status) ? CHILD_SIGNAL + WTERMSIG(status)
                                 : WEXITSTATUS(status);
}

int child_run(const char *const *argv, const char *folder, int to)
{
    return wait_for(start(argv, folder, to, to));
}

char *child_says(const char *const *argv)
{
    int ends[2];
    if (pipe(ends) != 0)
        return NULL;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC); /* dup2() leaves the copy open */
    const pid_t pid = start(argv, NULL, ends[1], -1);
    close(ends[1]);
    char *text = NULL;
    size_t n = 0, room = 0;
    bool fits = true;
    for (ssize_t more = 1; fits && more != 0;) {
        if (room - n < 2) {
            char *wider = realloc(text, room = room ? 2 * room : 4096);
            fits = wider != NULL;
            text = fits ? wider : text;
        }
        more = fits ? read(ends[0], text + n, room - n - 1) : 0;
        if (more < 0 && errno != EINTR)
            break;
        n += more > 0 ? (size_t)more : 0;
    }
    close(ends[0]);
    if (wait_for(pid) != 0 || !fits) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    if (n > 0 && text[n - 1] == '\n')
        text[n - 1] = '\0';
    return text;
}
