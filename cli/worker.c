/* Starts, watches and ends worker processes (see worker.h). */
#define _GNU_SOURCE
#include "worker.h"
#include "args.h"
#include "base/text/text.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* Exit status of a worker that finished. A plug-in's own exit() is not mistaken for success. */
enum { EXIT_COMPLETE = 42 };
enum { LINE_BYTES = 1 << 16 }; /* of a message */
enum { POLL_MS = 200, POLL_AFTER_CLOSE_MS = 2 };
enum { MAX_WORKERS = 256 }; /* at the same time */

/* State of this process. Unless it is a worker, nobody reads its status, and it has no pipe. */
static struct worker_status unread_status, *own_status = &unread_status;
static int own_pipe = -1;
static bool own_finished; /* all steps were run */

/* Read ends of the pipes from all workers. A new worker closes them. While one is open, writes to that pipe succeed,
 * and its worker cannot detect the end of the parent. */
static int read_ends[MAX_WORKERS];
static size_t n_read_ends;

/* ---- In the worker ---- */

void worker_send(json_t *message)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    if (!text)
        abort(); /* rather than lose a result */
    const size_t length = strlen(text) + 1;
    text[length - 1] = '\n';
    for (size_t sent = 0; sent < length;) {
        const ssize_t n = write(own_pipe, text + sent, length - sent);
        if (n < 0 && errno != EINTR)
            _exit(1); /* nobody reads */
        sent += n > 0 ? (size_t)n : 0;
    }
    free(text);
    json_decref(message);
}

void worker_set_activity(bool inside, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(own_status->activity, sizeof own_status->activity, format, arguments);
    va_end(arguments);
    own_status->inside = inside;
    own_status->changes++;
}

void worker_enter_kernel(const char *kernel) { worker_set_activity(true, "in %s", kernel); }

void worker_leave_kernel(void)
{
    own_status->inside = false;
    own_status->changes++;
}

void worker_set_step(size_t step) { own_status->step = step; }

void worker_set_number(size_t number) { own_status->number = number; }

/* On other systems than Linux, a worker ends when it sends the next message. */
bool worker_end_with_parent(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    return getppid() == parent;
}

/* Ends the worker if a plug-in raised SIGPIPE, but not after a write to a closed pipe. */
static void handle_sigpipe(int number, siginfo_t *info, void *context)
{
    (void)context;
#ifdef SI_TKILL
    if (info->si_code != SI_TKILL)
        return; /* raised by a write, which then fails */
    signal(number, SIG_DFL);
    raise(number);
#else
    (void)number, (void)info;
#endif
}

/* Ends the process before other exit handlers run, since a plug-in that calls exit() from several threads may deadlock
 * in them. exit() calls the handler that was registered last first. */
#ifdef __GLIBC__
static void handle_early_exit(int status, void *unused)
{
    (void)unused;
    if (!own_finished)
        _exit(status);
}
#endif

/* Flushes and ends the worker, by exit() and not _exit(), since sanitizers and coverage report in exit handlers. */
_Noreturn static void finish_worker(size_t next)
{
    fflush(NULL);
    own_status->next = next;
    own_status->finished = own_finished = true;
    exit(EXIT_COMPLETE);
}

void worker_fail(const char *cause)
{
    snprintf(own_status->cause, WORKER_CAUSE, "%s", cause);
    _exit(1);
}

void worker_exit(int code)
{
    if (own_pipe < 0)
        exit(code);
    worker_send(json_pack("{s:i}", "code", code));
    finish_worker(1);
}

_Noreturn static void run_worker(const struct worker_job *job, size_t first,
                                 struct worker_status *status, pid_t parent, int pipe_end)
{
    const struct rlimit none = { 0, 0 };
    const struct sigaction on_sigpipe = { .sa_sigaction = handle_sigpipe,
                                          .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER };
    setpgid(0, 0);
    if (!worker_end_with_parent(parent))
        _exit(1);
    for (size_t i = 0; i < N_END_SIGNALS; i++)
        signal(end_signals[i], SIG_DFL); /* the parent cleans up */
    setrlimit(RLIMIT_CORE, &none);
    while (n_read_ends > 0)
        close(read_ends[--n_read_ends]);
    sigaction(SIGPIPE, &on_sigpipe, NULL);
    if (!job->prints)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    own_status = status;
    own_status->step = first;
    own_pipe = pipe_end;
    worker_set_activity(false, "before its first case");
    guard_set_status(&status->call);
#ifdef __GLIBC__
    on_exit(handle_early_exit, NULL);
#endif
    finish_worker(job->run(job->user, first));
}

/* ---- Detection of hangs ---- */

/* Time that a worker has spent on one activity. */
struct busy_time {
    /* Counters of the status when the activity began; they change with the activity. */
    unsigned changes;
    unsigned long call_changes;
    double begin_cpu_s;
    double poll_s, poll_cpu_s; /* wall clock and CPU clock at the last poll */
    double slept_s;            /* asleep at all polls for so long */
};

/* Returns the CPU time that a process used, or the wall clock if the system does not report it. */
static double cpu_s_of(pid_t pid)
{
#ifdef __linux__
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0)
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    (void)pid;
#endif
    return clock_now();
}

/* Reads the state after the name in /proc/PID/stat (proc(5)); the name may contain brackets. In state Z the first
 * thread has ended and others may run. */
static bool is_asleep(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "r");
    const size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = '\0';
    const char *name_ends = strrchr(text, ')');
    return name_ends && name_ends[1] == ' ' && strchr("STZ", name_ends[2]) != NULL;
}

static void busy_begin(struct busy_time *busy, pid_t pid)
{
    busy->poll_s = clock_now();
    busy->poll_cpu_s = busy->begin_cpu_s = cpu_s_of(pid);
    busy->slept_s = 0.0;
}

/* Returns true, and writes the cause, if the activity takes longer than most_s. A poll that comes late counts as at
 * most one second of sleep. */
static bool busy_too_long(struct busy_time *busy, pid_t pid, double most_s,
                          char cause[WORKER_CAUSE])
{
    static const double asleep_share = 0.01, longest_step_s = 1.0;
    const double now = clock_now(), cpu_s = cpu_s_of(pid), step_s = now - busy->poll_s,
                 ran_s = cpu_s - busy->begin_cpu_s;
    if (step_s < 0.5e-3 * POLL_MS)
        return false;
    const bool slept = cpu_s - busy->poll_cpu_s < asleep_share * step_s && is_asleep(pid);
    busy->slept_s = slept ? busy->slept_s + fmin(step_s, longest_step_s) : 0.0;
    busy->poll_s = now;
    busy->poll_cpu_s = cpu_s;
    if (ran_s > most_s)
        snprintf(cause, WORKER_CAUSE, "did not return within %.3g s of CPU time", ran_s);
    else if (busy->slept_s > most_s)
        snprintf(cause, WORKER_CAUSE, "did not return within %.3g s, in which it slept",
                 busy->slept_s);
    else
        return false;
    return true;
}

struct worker_limits worker_limits_of(double limit_s, double outside_s)
{
    enum { DEFAULT_S = 60 };
    const double inside_s = isnan(limit_s) ? DEFAULT_S : limit_s;
    return (struct worker_limits){ inside_s, fmax(inside_s, outside_s) };
}

/* ---- The parent ---- */

struct worker {
    struct worker_job *job;
    struct worker_status *status;
    int read_end;  /* of the pipe, non-blocking; -1 once it is closed */
    size_t filled; /* bytes of `line` */
    struct busy_time busy;
    char line[LINE_BYTES]; /* messages that are received in part */
};

/* Starts a process that runs the steps of a job from `first` on. */
static void worker_begin(struct worker *worker, struct worker_job *job, size_t first)
{
    int ends[2] = { -1, -1 };
    const pid_t self = getpid();
    void *status = mmap(NULL, sizeof(struct worker_status), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(NULL); /* otherwise both processes write the buffers */
    job->pid = status != MAP_FAILED && pipe(ends) == 0 ? fork() : -1;
    if (job->pid == 0) {
        close(ends[0]);
        run_worker(job, first, status, self, ends[1]);
    }
    if (job->pid < 0) {
        text_print(stderr, "posenc: cannot start a process: %s\n", strerror(errno));
        exit(EXIT_USAGE); /* ends the other workers, too */
    }
    close(ends[1]);
    setpgid(job->pid, job->pid);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    if (n_read_ends < MAX_WORKERS)
        read_ends[n_read_ends++] = ends[0];
    worker->job = job;
    worker->status = status;
    worker->read_end = ends[0];
    worker->filled = 0;
    job->step = first;
    worker->busy = (struct busy_time){ .changes = 0 };
    busy_begin(&worker->busy, job->pid);
}

static void close_pipe(struct worker *worker)
{
    for (size_t i = 0; i < n_read_ends; i++)
        if (read_ends[i] == worker->read_end)
            read_ends[i] = read_ends[--n_read_ends];
    if (worker->read_end >= 0)
        close(worker->read_end);
    worker->read_end = -1;
}

/* Returns true if a process has ended and was not waited for. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = { .si_pid = 0 };
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid;
}

/* Forwards messages, one on each line. Drops other lines, which come from a plug-in, and a line without an end. */
static void receive_lines(struct worker *worker)
{
    char *begin = worker->line, *end;
    while ((end = memchr(begin, '\n', worker->filled))) {
        json_t *message = json_loadb(begin, (size_t)(end - begin), 0, NULL);
        if (json_is_object(message) && worker->job->on_message)
            worker->job->on_message(worker->job->user, message);
        json_decref(message);
        worker->filled -= (size_t)(end - begin) + 1;
        begin = end + 1;
    }
    memmove(worker->line, begin, worker->filled);
    if (worker->filled == LINE_BYTES)
        worker->filled = 0;
}

/* Returns true, and writes the cause, if the current activity of a worker takes too long. */
static bool worker_hangs(struct worker *worker, const struct worker_limits *limits,
                         char cause[WORKER_CAUSE])
{
    const struct worker_status *status = worker->status;
    struct busy_time *busy = &worker->busy;
    const double threads = 1.0 + status->call.other_threads; /* CPU time is their sum */
    if (status->changes != busy->changes || status->call.changes != busy->call_changes) {
        busy->changes = status->changes;
        busy->call_changes = status->call.changes;
        busy_begin(busy, worker->job->pid);
        return false;
    }
    return busy_too_long(busy, worker->job->pid,
                         status->inside || status->call.inside ? threads * limits->inside_s
                                                               : limits->outside_s,
                         cause);
}

/* Reads all available messages. Returns false if the worker has ended, or hangs; `cause` then describes the hang. */
static bool worker_poll(struct worker *worker, const struct worker_limits *limits,
                        char cause[WORKER_CAUSE])
{
    const bool is_over =
        has_ended(worker->job->pid); /* checked first, so that its last message is read */
    const ssize_t n = worker->read_end < 0
                          ? 0
                          : read(worker->read_end, worker->line + worker->filled,
                                 LINE_BYTES - worker->filled);
    if (worker->status->step < worker->job->n_steps)
        worker->job->step = worker->status->step;
    if (n > 0) {
        worker->filled += (size_t)n;
        receive_lines(worker);
        busy_begin(&worker->busy, worker->job->pid);
        return true;
    }
    if (n == 0)
        close_pipe(worker); /* a plug-in may have closed it while the worker runs */
    return !is_over && !worker_hangs(worker, limits, cause);
}

/* Waits for the worker and kills the processes that it started. Its pid is not reused before waitpid(). */
static int worker_wait(struct worker *worker)
{
    const pid_t pid = worker->job->pid;
    siginfo_t info;
    int status = 0;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    close_pipe(worker);
    return status;
}

/* Kills a worker, even if it has not joined its process group yet. */
static void worker_kill(const struct worker *worker)
{
    kill(-worker->job->pid, SIGKILL);
    kill(worker->job->pid, SIGKILL);
}

/* Ends a worker that hangs (`cause`) or has ended (""). Returns the step with which another worker continues. */
static size_t worker_end(struct worker *worker, const char *cause)
{
    struct worker_job *job = worker->job;
    struct worker_end end = { .status = worker->status };
    if (*cause != '\0')
        worker_kill(worker);
    const int status = worker_wait(worker);
    if (*cause != '\0')
        snprintf(end.cause, sizeof end.cause, "%s", cause);
    else if (worker->status->cause[0] != '\0')
        snprintf(end.cause, sizeof end.cause, "%.*s", WORKER_CAUSE - 1, worker->status->cause);
    else if (WIFSIGNALED(status))
        snprintf(end.cause, sizeof end.cause, "the process ended by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(end.cause, sizeof end.cause, "the process was ended by exit(%d)",
                 WEXITSTATUS(status));
    const bool completed = *cause == '\0' && worker->status->finished && WIFEXITED(status) &&
                           WEXITSTATUS(status) == EXIT_COMPLETE;
    worker->status->activity[WORKER_ACTIVITY - 1] = '\0';
    const size_t next = completed ? worker->status->next : job->on_early_end(job->user, &end);
    munmap(worker->status, sizeof *worker->status);
    job->finished = next >= job->n_steps;
    return next;
}

/* Waits for a message, or until the next check for hangs. */
static void wait_for_message(const struct worker *workers, size_t n)
{
    struct pollfd polled[MAX_WORKERS];
    int most_ms = POLL_MS;
    for (size_t i = 0; i < n; i++) {
        polled[i] = (struct pollfd){ .fd = workers[i].read_end, .events = POLLIN };
        if (workers[i].read_end < 0)
            most_ms = POLL_AFTER_CLOSE_MS; /* the end of the process does not wake poll() */
    }
    poll(polled, (nfds_t)n, most_ms);
}

bool workers_run(struct worker_job *jobs, size_t n, size_t at_once,
                 const struct worker_limits *limits, bool (*keep_going)(void *user), void *user)
{
    const size_t max_workers = at_once < MAX_WORKERS ? at_once : MAX_WORKERS;
    struct worker *workers = cli_allocate(max_workers, sizeof *workers);
    size_t n_begun = 0, n_running = 0; /* jobs */
    bool goes_on = true;
    while (goes_on && (n_running > 0 || n_begun < n)) {
        while (n_running < max_workers && n_begun < n)
            worker_begin(&workers[n_running++], &jobs[n_begun++], 0);
        wait_for_message(workers, n_running);
        for (size_t i = n_running; i-- > 0;) {
            char cause[WORKER_CAUSE] = "";
            if (worker_poll(&workers[i], limits, cause))
                continue;
            const size_t next = worker_end(&workers[i], cause);
            if (!workers[i].job->finished)
                worker_begin(&workers[i], workers[i].job, next);
            else if (i != --n_running)
                workers[i] = workers[n_running];
        }
        goes_on = !keep_going || keep_going(user);
    }
    while (n_running > 0) {
        worker_kill(&workers[--n_running]);
        worker_wait(&workers[n_running]);
        munmap(workers[n_running].status, sizeof *workers[n_running].status);
    }
    free(workers);
    return goes_on;
}
