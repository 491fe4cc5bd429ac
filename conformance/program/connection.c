/* Starts a program and exchanges bytes with it (see connection.h). */
#define _GNU_SOURCE
#include "connection.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
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

/* ---- Start ---- */

bool connection_is_socket(const char *command) { return strncmp(command, "fd:", 3) == 0; }

static bool open_socket(struct connection *connection, const char *command)
{
    struct stat status;
    char *end;
    const long fd = strtol(command + 3, &end, 10);
    int type = 0;
    socklen_t bytes = sizeof type;
    if (end == command + 3 || *end != '\0' || fd < 0 || fd > INT32_MAX ||
        fstat((int)fd, &status) != 0 || !S_ISSOCK(status.st_mode) ||
        getsockopt((int)fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_STREAM)
        return notation_fail(
            connection->reason,
            "expected fd:N with the number of an inherited socket of type SOCK_STREAM");
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
        return notation_fail(connection->reason, "cannot be started: %s", strerror(errno));
    fflush(NULL); /* otherwise both processes write the buffers */
    connection->pid = fork();
    if (connection->pid == 0)
        run_shell(command, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    if (connection->pid < 0)
        return notation_fail(connection->reason, "cannot be started: %s", strerror(errno));
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

/* Returns true if the shell has ended. */
static bool has_ended(struct connection *connection)
{
    if (connection->pid > 0 && !connection->ended)
        connection->ended = waitpid(connection->pid, &connection->status, WNOHANG) > 0;
    return connection->ended;
}

/* Describes how the shell ended. A shell reports the signal that ended its command as 128 plus the number. */
static void describe_end(struct connection *connection)
{
    const int status = connection->status;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
              number = WIFSIGNALED(status) ? WTERMSIG(status)
                       : code > 128        ? code - 128
                                           : 0;
    if (number > 0)
        notation_fail(connection->reason, "the program ended by signal %d (%s)", number,
                      strsignal(number));
    else if (code == 126 || code == 127)
        connection->lacks_command = !notation_fail(
            connection->reason, "the shell cannot run the command (exit status %d)", code);
    else
        notation_fail(connection->reason, "the program ended by exit(%d)", code);
}

/* Sets the reason after the end of the stream: how the program ended. The end of a process follows at once. */
static bool fail_at_end(struct connection *connection)
{
    enum { MOST_S = 2 };
    const double until = clock_now() + fmin(connection->limit_s, MOST_S);
    while (connection->pid > 0 && !has_ended(connection) && clock_now() < until)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    if (connection->ended)
        describe_end(connection);
    else
        notation_fail(connection->reason, "the program closed %s",
                      connection->pid > 0 ? "its output" : "the socket");
    return false;
}

bool connection_close(struct connection *connection)
{
    char extra;
    if (connection->pid == 0)
        return true;
    close(connection->out);
    if (connection_receive(connection, &extra, 1) == 1)
        return notation_fail(connection->reason, "the program sent more after its last answer");
    const bool good = strcmp(connection->reason, "the program ended by exit(0)") == 0;
    strcat(connection->reason, ", after its input was closed");
    return good;
}

/* ---- Bytes ---- */

/* Waits until the connection is ready. Another process may hold the output of a program that has ended. */
static bool wait_for(struct connection *connection, int fd, short events, double until)
{
    enum { POLL_MS = 50 };
    struct pollfd one = { .fd = fd, .events = events };
    for (;;) {
        const double left = until - clock_now();
        const bool ended = has_ended(connection); /* its last bytes are read all the same */
        const int n =
            poll(&one, 1, ended ? 0 : (int)fmin(fmax(ceil(left * 1e3), 0.0), POLL_MS));
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return notation_fail(connection->reason, "the connection failed: %s",
                                 strerror(errno));
        if (n == 0 && ended)
            return fail_at_end(connection);
        if (left <= 0.0)
            return notation_fail(connection->reason, "the program %s within %.3g s",
                                 events == POLLIN ? "did not answer"
                                                  : "did not read the prompt",
                                 connection->limit_s);
    }
}

bool connection_send(struct connection *connection, const void *data, size_t n)
{
    const double until = clock_now() + connection->limit_s;
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
            return notation_fail(connection->reason, "the connection failed: %s",
                                 strerror(errno));
        at += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

size_t connection_receive(void *user, void *to, size_t n)
{
    struct connection *connection = user;
    const double until = clock_now() + connection->limit_s;
    size_t at = 0;
    bool more = true;
    while (more && at < n && wait_for(connection, connection->in, POLLIN, until)) {
        const ssize_t got = read(connection->in, (char *)to + at, n - at);
        if (got == 0 || (got < 0 && errno == ECONNRESET))
            more = fail_at_end(connection);
        else if (got < 0 && errno != EINTR && errno != EAGAIN)
            more =
                notation_fail(connection->reason, "the connection failed: %s", strerror(errno));
        at += got > 0 ? (size_t)got : 0;
    }
    return at;
}
