/*
 * Runs jobs in processes of their own_note (see worker.h).
 */
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
enum { ALL_DONE = 42 };
enum { LINE = 1 << 16, POLL_MS = 200, POLL_AFTER_CLOSE_MS = 2, MOST_OPEN = 256 };

/* State of this process, if it is a worker. */
static struct worker_note *own_note;
static int own_pipe = -1;
static bool own_finished;

/* Ends of pipes that this process reads. A worker that held one would keep others from
 * noticing that the parent ended. */
static int read_ends[MOST_OPEN];
static size_t n_read_ends;

/* ---- In the worker ---- */

void worker_send(json_t *message)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    if (!text)
        abort(); /* rather than lose a result */
    size_t left = strlen(text) + 1;
    text[left - 1] = '\n';
    for (const char *at = text; left > 0;) {
        const ssize_t n = write(own_pipe, at, left);
        if (n < 0 && errno != EINTR)
            _exit(1); /* nobody reads */
        at += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    free(text);
    json_decref(message);
}

void worker_note_work(bool inside, const char *form, ...)
{
    va_list arguments;
    if (!own_note)
        return;
    va_start(arguments, form);
    vsnprintf(own_note->doing, sizeof own_note->doing, form, arguments);
    va_end(arguments);
    own_note->inside = inside;
    own_note->turn++;
}

void worker_enter_kernel(const char *kernel) { worker_note_work(true, "in %s", kernel); }

void worker_leave_kernel(void)
{
    if (!own_note)
        return;
    own_note->inside = false;
    own_note->turn++;
}

void worker_note_step(size_t step)
{
    if (own_note)
        own_note->step = step;
}

void worker_note_number(size_t which, size_t value)
{
    if (own_note)
        own_note->numbers[which] = value;
}

/* Makes the worker end with its parent. Linux does so at once; elsewhere the next message
 * does. */
static void end_with_parent(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent)
        _exit(1); /* the parent ended before */
}

/* Ends the worker if a plug-in raised SIGPIPE, but not if it printed where nobody reads. */
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

/* Ends the process before any other exit handler runs: exit() calls the handler that was
 * registered last first. A plug-in that calls exit() from several threads at once may
 * otherwise deadlock in it. */
#ifdef __GLIBC__
static void handle_early_exit(int status, void *unused)
{
    (void)unused;
    if (!own_finished)
        _exit(status);
}
#endif

/* Flushes and ends the worker. It calls exit() and not _exit(): sanitizers and coverage report
 * at the end. */
_Noreturn static void finish_worker(size_t next)
{
    fflush(NULL);
    own_note->next = next;
    own_note->finished = own_finished = true;
    exit(ALL_DONE);
}

void worker_exit(int code)
{
    if (!own_note)
        exit(code);
    worker_send(json_pack("{s:i}", "code", code));
    finish_worker(1);
}

_Noreturn static void run_worker(const struct worker_job *job, size_t first,
                                 struct worker_note *note, pid_t parent, int pipe_end)
{
    static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
    const struct rlimit none = { 0, 0 };
    const struct sigaction on_sigpipe = { .sa_sigaction = handle_sigpipe,
                                          .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER };
    setpgid(0, 0);
    end_with_parent(parent);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        signal(ending[i], SIG_DFL); /* cleaning up is the parent's */
    setrlimit(RLIMIT_CORE, &none);
    while (n_read_ends > 0)
        close(read_ends[--n_read_ends]);
    if (!job->prints) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        sigaction(SIGPIPE, &on_sigpipe, NULL);
    }
    own_note = note;
    own_note->step = first;
    own_pipe = pipe_end;
    worker_note_work(false, "before its first case");
    guard_note_set(&note->call);
#ifdef __GLIBC__
    on_exit(handle_early_exit, NULL);
#endif
    finish_worker(job->run(job->user, first));
}

/* ---- The clock of a worker ---- */

/* The time that a worker has been busy with one thing. */
struct busy_time {
    /* Counters of the note when it began: they change when the worker begins something else. */
    unsigned turn;
    unsigned long call_turn;
    double begin_cpu_s;
    double look_s, look_cpu_s; /* both clocks at the last look */
    double slept_s;            /* without a pause, until the last look */
};

/* Returns the CPU time that a process used, or the time of day if the system does not report
 * it. */
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

/* Reads proc(5), where the state follows the name, which may hold anything. In state Z the
 * first thread has ended and others have not. */
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
    busy->look_s = clock_now();
    busy->look_cpu_s = busy->begin_cpu_s = cpu_s_of(pid);
    busy->slept_s = 0.0;
}

/* Returns true if the worker is busy for too long; then `how` says in which way. A look that comes
 * late counts as a second. */
static bool busy_too_long(struct busy_time *busy, pid_t pid, double most_s,
                          char how[WORKER_HOW])
{
    static const double asleep_share = 0.01, longest_step_s = 1.0;
    const double now = clock_now(), cpu_s = cpu_s_of(pid), step_s = now - busy->look_s,
                 ran_s = cpu_s - busy->begin_cpu_s;
    if (step_s < 0.5e-3 * POLL_MS)
        return false;
    const bool slept = cpu_s - busy->look_cpu_s < asleep_share * step_s && is_asleep(pid);
    busy->slept_s = slept ? busy->slept_s + fmin(step_s, longest_step_s) : 0.0;
    busy->look_s = now;
    busy->look_cpu_s = cpu_s;
    if (ran_s > most_s)
        snprintf(how, WORKER_HOW, "did not return within %.3g s of CPU time", ran_s);
    else if (busy->slept_s > most_s)
        snprintf(how, WORKER_HOW, "did not return within %.3g s, in which it slept",
                 busy->slept_s);
    else
        return false;
    return true;
}

struct worker_limits worker_limits_of(double limit_s, double outside_s)
{
    enum { USUAL_S = 60 };
    const double inside_s = isnan(limit_s) ? USUAL_S : limit_s;
    return (struct worker_limits){ inside_s, fmax(inside_s, outside_s) };
}

/* ---- The parent ---- */

struct worker {
    struct worker_job *job;
    struct worker_note *note;
    int from; /* the end of the pipe that is read, without waiting; -1 after its end */
    size_t filled;
    struct busy_time busy;
    char line[LINE];
};

static void worker_begin(struct worker *worker, struct worker_job *job, size_t first)
{
    int ends[2] = { -1, -1 };
    const pid_t self = getpid();
    void *note = mmap(NULL, sizeof(struct worker_note), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0); /* zeros */
    fflush(NULL);                                         /* or both would write it */
    job->pid = note != MAP_FAILED && pipe(ends) == 0 ? fork() : -1;
    if (job->pid == 0) {
        close(ends[0]);
        run_worker(job, first, note, self, ends[1]);
    }
    if (job->pid < 0) {
        text_print(stderr, "posenc: no process can be made: %s\n", strerror(errno));
        exit(EXIT_USAGE); /* which ends the other workers */
    }
    close(ends[1]);
    setpgid(job->pid, job->pid);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    if (n_read_ends < MOST_OPEN)
        read_ends[n_read_ends++] = ends[0];
    worker->job = job;
    worker->note = note;
    worker->from = ends[0];
    worker->filled = 0;
    job->step = first;
    worker->busy = (struct busy_time){ .turn = 0 };
    busy_begin(&worker->busy, job->pid);
}

static void close_pipe(struct worker *worker)
{
    for (size_t i = 0; i < n_read_ends; i++)
        if (read_ends[i] == worker->from)
            read_ends[i] = read_ends[--n_read_ends];
    if (worker->from >= 0)
        close(worker->from);
    worker->from = -1;
}

static bool is_gone(pid_t pid)
{
    siginfo_t info = { .si_pid = 0 };
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid;
}

/* Hands on whole lines. Text that is no JSON object is a plug-in's, and so is a line that does
 * not end. */
static void take_lines(struct worker *worker)
{
    char *begin = worker->line, *end;
    while ((end = memchr(begin, '\n', worker->filled))) {
        json_t *message = json_loadb(begin, (size_t)(end - begin), 0, NULL);
        if (json_is_object(message))
            worker->job->take(worker->job->user, message);
        json_decref(message);
        worker->filled -= (size_t)(end - begin) + 1;
        begin = end + 1;
    }
    memmove(worker->line, begin, worker->filled);
    if (worker->filled == LINE)
        worker->filled = 0;
}

static bool worker_hangs(struct worker *worker, const struct worker_limits *limits,
                         char how[WORKER_HOW])
{
    const struct worker_note *note = worker->note;
    struct busy_time *busy = &worker->busy;
    const double threads = 1.0 + note->call.beside; /* the clock is that of all of them */
    if (note->turn != busy->turn || note->call.turn != busy->call_turn) {
        busy->turn = note->turn;
        busy->call_turn = note->call.turn;
        busy_begin(busy, worker->job->pid);
        return false;
    }
    return busy_too_long(busy, worker->job->pid,
                         note->inside || note->call.inside ? threads * limits->inside_s
                                                           : limits->outside_s,
                         how);
}

/* Reads what there is. Returns false if the worker has ended or hangs; then `how` says how it
 * hangs. */
static bool worker_goes_on(struct worker *worker, const struct worker_limits *limits,
                           char how[WORKER_HOW])
{
    const bool gone = is_gone(worker->job->pid); /* before the last that it wrote is read */
    const ssize_t n = worker->from < 0 ? 0
                                       : read(worker->from, worker->line + worker->filled,
                                              LINE - worker->filled);
    if (worker->note->step < worker->job->n_steps)
        worker->job->step = worker->note->step;
    if (n > 0) {
        worker->filled += (size_t)n;
        take_lines(worker);
        busy_begin(&worker->busy, worker->job->pid);
        return true;
    }
    if (n == 0)
        close_pipe(worker); /* a plug-in may have closed it and go on */
    return !gone && !worker_hangs(worker, limits, how);
}

/* Waits for the worker and ends all that it started; its number is not free before waitpid(). */
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

/* Kills a worker, which may not have come to its process group. */
static void worker_kill(const struct worker *worker)
{
    kill(-worker->job->pid, SIGKILL);
    kill(worker->job->pid, SIGKILL);
}

/* Ends a worker that hangs as `how` says, or has ended. Returns the step with which another
 * one continues. */
static size_t worker_end(struct worker *worker, const char *how)
{
    struct worker_job *job = worker->job;
    struct worker_end end = { .note = worker->note };
    if (*how != '\0')
        worker_kill(worker);
    const int status = worker_wait(worker);
    end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (*how != '\0')
        snprintf(end.how, sizeof end.how, "%s", how);
    else if (end.signal != 0)
        snprintf(end.how, sizeof end.how, "the process ended by signal %d (%s)", end.signal,
                 strsignal(end.signal));
    else
        snprintf(end.how, sizeof end.how, "the process was ended by exit(%d)",
                 WEXITSTATUS(status));
    const bool fine = *how == '\0' && worker->note->finished && WIFEXITED(status) &&
                      WEXITSTATUS(status) == ALL_DONE;
    end.note = worker->note;
    worker->note->doing[WORKER_DOING - 1] = '\0';
    const size_t next = fine ? worker->note->next : job->lost(job->user, &end);
    munmap(worker->note, sizeof *worker->note);
    job->finished = next >= job->n_steps;
    return next;
}

/* Waits for a message, or until it is time to look who hangs. */
static void wait_for_message(const struct worker *workers, size_t n)
{
    struct pollfd from[MOST_OPEN];
    int most_ms = POLL_MS;
    for (size_t i = 0; i < n; i++) {
        from[i] = (struct pollfd){ .fd = workers[i].from, .events = POLLIN };
        if (workers[i].from < 0)
            most_ms = POLL_AFTER_CLOSE_MS; /* its end is near and wakes nobody */
    }
    poll(from, (nfds_t)n, most_ms);
}

bool workers_run(struct worker_job *jobs, size_t n, size_t at_once,
                 const struct worker_limits *limits, bool (*goes_on)(void *user), void *user)
{
    const size_t most = at_once < MOST_OPEN ? at_once : MOST_OPEN;
    struct worker *workers = calloc(most, sizeof *workers);
    size_t begun = 0, running = 0;
    bool wanted = true;
    if (!workers)
        abort(); /* rather than call a plug-in here */
    while (wanted && (running > 0 || begun < n)) {
        while (running < most && begun < n)
            worker_begin(&workers[running++], &jobs[begun++], 0);
        wait_for_message(workers, running);
        for (size_t i = running; i-- > 0;) {
            char how[WORKER_HOW] = "";
            if (worker_goes_on(&workers[i], limits, how))
                continue;
            const size_t next = worker_end(&workers[i], how);
            if (!workers[i].job->finished)
                worker_begin(&workers[i], workers[i].job, next);
            else if (i != --running)
                workers[i] = workers[running];
        }
        wanted = !goes_on || goes_on(user);
    }
    while (running > 0) {
        worker_kill(&workers[--running]);
        worker_wait(&workers[running]);
        munmap(workers[running].note, sizeof *workers[running].note);
    }
    free(workers);
    return wanted;
}
