/* Starts a program and exchanges bytes with it (see connection.h). */
#define _GNU_SOURCE
#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL /* macOS; workers handle SIGPIPE */
#define MSG_NOSIGNAL 0
#endif

/* Sets the reason; returns false. */
__attribute__((format(printf, 2, 3))) static bool fail(struct connection *connection,
                                                       const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(connection->reason, CONNECTION_REASON, format, arguments);
    va_end(arguments);
    return false;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Start ---- */

bool connection_is_socket(const char *command) { return strncmp(command, "fd:", 3) == 0; }

static bool open_socket(struct connection *connection, const char *command)
{
    struct stat status;
    char *end;
    const long fd = strtol(command + 3, &end, 10);
    if (end == command + 3 || *end != '\0' || fd < 0 || fd > INT32_MAX ||
        fstat((int)fd, &status) != 0 || !S_ISSOCK(status.st_mode))
        return fail(connection, "expected fd:N with the number of an inherited socket");
    connection->in = connection->out = (int)fd;
    return true;
}

/* Runs in the child. Signals that this process ignores are reset, as a program would inherit that. */
_Noreturn static void run_shell(const char *command, int in, int out)
{
    signal(SIGPIPE, SIG_DFL);
    if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/* Makes a pipe that programs do not inherit; pipe2() is missing on macOS. */
static bool make_pipe(int ends[2])
{
    return pipe(ends) == 0 && fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0;
}

static bool start_program(struct connection *connection, const char *command)
{
    int to[2] = { -1, -1 }, from[2] = { -1, -1 };
    if (!make_pipe(to) || !make_pipe(from))
        return fail(connection, "cannot be started: %s", strerror(errno));
    fflush(NULL); /* otherwise both processes write the buffers */
    connection->pid = fork();
    if (connection->pid == 0)
        run_shell(command, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    if (connection->pid < 0)
        return fail(connection, "cannot be started: %s", strerror(errno));
    connection->out = to[1];
    connection->in = from[0];
    fcntl(connection->out, F_SETFL, O_NONBLOCK);
    return true;
}

bool connection_open(struct connection *connection, const char *command, double limit_s)
{
    *connection = (struct connection){ .in = -1, .out = -1, .limit_s = limit_s };
    return connection_is_socket(command) ? open_socket(connection, command)
                                         : start_program(connection, command);
}

/* ---- End ---- */

/* Describes how the shell ended. A shell reports the signal that ended its command as 128 plus the number. */
static void describe_end(struct connection *connection, int status)
{
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
              number = WIFSIGNALED(status) ? WTERMSIG(status)
                       : code > 128        ? code - 128
                                           : 0;
    if (number > 0)
        fail(connection, "the program ended by signal %d (%s)", number, strsignal(number));
    else if (code == 126 || code == 127)
        connection->lacks_command =
            !fail(connection, "the shell cannot run the command (exit status %d)", code);
    else
        fail(connection, "the program ended by exit(%d)", code);
}

/* Sets the reason after the end of the stream: how the program ended, if it does so within the limit. */
static bool fail_at_end(struct connection *connection)
{
    int status = 0;
    const double until = now_s() + connection->limit_s;
    pid_t ended = 0;
    while (connection->pid > 0 && ended == 0 && now_s() < until) {
        ended = waitpid(connection->pid, &status, WNOHANG);
        if (ended == 0)
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    if (ended > 0)
        describe_end(connection, status);
    else
        fail(connection, "the program closed the connection");
    return false;
}

bool connection_close(struct connection *connection)
{
    char extra;
    if (connection->pid == 0)
        return true;
    close(connection->out);
    if (connection_receive(connection, &extra, 1))
        return fail(connection, "the program sent more after its last answer");
    const bool good = strcmp(connection->reason, "the program ended by exit(0)") == 0;
    strcat(connection->reason, ", after its input was closed");
    return good;
}

/* ---- Bytes ---- */

/* Waits until the connection is ready. */
static bool wait_for(struct connection *connection, int fd, short events, double until)
{
    struct pollfd one = { .fd = fd, .events = events };
    for (;;) {
        const double left = until - now_s();
        const int n = poll(&one, 1, (int)fmin(fmax(ceil(left * 1e3), 0.0), 1e6));
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return fail(connection, "the connection failed: %s", strerror(errno));
        if (left <= 0.0)
            return fail(connection, "the program %s within %.3g s",
                        events == POLLIN ? "did not answer" : "did not read the prompt",
                        connection->limit_s);
    }
}

bool connection_send(struct connection *connection, const void *data, size_t n)
{
    const double until = now_s() + connection->limit_s;
    const char *at = data;
    while (n > 0) {
        if (!wait_for(connection, connection->out, POLLOUT, until))
            return false;
        const ssize_t sent = connection->pid > 0
                                 ? write(connection->out, at, n)
                                 : send(connection->out, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
            return fail_at_end(connection);
        if (sent < 0 && errno != EINTR && errno != EAGAIN)
            return fail(connection, "the connection failed: %s", strerror(errno));
        at += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

bool connection_receive(void *user, void *to, size_t n)
{
    struct connection *connection = user;
    const double until = now_s() + connection->limit_s;
    for (char *at = to; n > 0;) {
        if (!wait_for(connection, connection->in, POLLIN, until))
            return false;
        const ssize_t got = read(connection->in, at, n);
        if (got == 0 || (got < 0 && errno == ECONNRESET))
            return fail_at_end(connection);
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return fail(connection, "the connection failed: %s", strerror(errno));
        at += got > 0 ? got : 0;
        n -= got > 0 ? (size_t)got : 0;
    }
    return true;
}
