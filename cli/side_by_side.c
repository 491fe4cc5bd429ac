/*
 * Processes that check a kernel each, and the one that reads their results: see side_by_side.h.
 *
 * A result goes through a pipe as it is: its pointers are to constants and to backends, which lie
 * at the same addresses in a process and its parent.
 */
#define _POSIX_C_SOURCE 200809L
#include "side_by_side.h"

#include "args.h"
#include "child.h"
#include "folder.h"
#include "journal.h"
#include "outputs.h"
#include "reports/text/text.h"
#include "progress.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* With what a process exits that has checked everything, unlike one that a backend ends by an
 * exit() of its own; how long an interruption may go unseen. */
enum { ALL_DONE = 42, ASK_AGAIN_MS = 200 };

/* What goes through the pipe: a backend that begins, or a result of it. */
struct message {
    size_t backend;
    bool begins;
    struct conf_result result;
};

struct job {
    enum posenc_kernel kernel;
    pid_t pid;
    int from; /* the end of its pipe that is read */
    bool begun, ended;
    struct message part; /* what has come of a message */
    size_t part_bytes;
    struct conf_result *kept; /* results, until the kernels before are done */
    size_t n_kept, room;
    size_t backend;         /* which is being checked */
    size_t results, before; /* of it so far; of the one before: so many are expected */
    char after[96];         /* the last case of that backend; "" where none was done */
    const char *suite;
};

struct jobs {
    const struct posenc_backend *const *backends;
    size_t n_backends;
    struct job job[POSENC_KERNEL_COUNT];
    size_t n, first; /* first: whose results are handed on as they come */
    const struct conf_options *options;
    conf_sink *sink;
    void *user;
    pid_t parent;
};

/* ---- The process of a kernel ---- */

struct sender {
    struct message message;
    int to;
};

static void send_message(const struct sender *sender)
{
    child_tell(sender->to, &sender->message, sizeof sender->message);
}

static void send_result(void *user, const struct conf_result *result)
{
    struct sender *sender = user;
    sender->message.begins = false;
    sender->message.result = *result;
    send_message(sender);
}

/* On other systems than Linux the next message ends it. */
void end_with(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent)
        _exit(1); /* it had gone before */
}

/* All of a process: checks the backends from job->backend on. */
static void run_job(const struct jobs *jobs, const struct job *job, int to)
{
    struct sender sender = { .to = to };
    folder_leave();
    journal_leave();
    end_with(jobs->parent);
    signal(SIGINT, SIG_IGN); /* the parent ends what is interrupted; then nobody reads */
    for (size_t i = job->backend; i < jobs->n_backends; i++) {
        sender.message = (struct message){ .backend = i, .begins = true };
        send_message(&sender);
        conf_run_kernel(jobs->backends[i], job->kernel, jobs->options, send_result, &sender);
    }
    exit(ALL_DONE); /* not _exit(): sanitizers and coverage report at the end */
}

/* ---- Their parent ---- */

/* Hands on all that was found before an interruption, by kernels whose turn had not come, too. */
static void hand_on_all(struct jobs *jobs)
{
    for (size_t k = jobs->first + 1; k < jobs->n; k++)
        for (size_t i = 0; i < jobs->job[k].n_kept; i++)
            jobs->sink(jobs->user, &jobs->job[k].kept[i]);
}

/* Kills what was interrupted, rather than wait for it: a kernel may never return. */
static void end_all(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        struct job *job = &jobs->job[i];
        if (job->begun && !job->ended) {
            kill(job->pid, SIGKILL);
            close(job->from);
            waitpid(job->pid, NULL, 0);
        }
        free(job->kept);
    }
}

static void give_up(struct jobs *jobs, const char *what, const char *why)
{
    end_all(jobs);
    progress_clear();
    text_print(stderr, "posenc: %s: %s\n", what, why);
    exit(EXIT_USAGE);
}

static void keep(struct jobs *jobs, struct job *job, const struct conf_result *result)
{
    if (job->n_kept == job->room) {
        job->room = job->room > 0 ? 2 * job->room : 1024;
        struct conf_result *more = realloc(job->kept, job->room * sizeof *more);
        if (!more)
            give_up(jobs, "results", "out of memory");
        job->kept = more;
    }
    job->kept[job->n_kept++] = *result;
}

static void take_result(struct jobs *jobs, struct job *job, const struct conf_result *result)
{
    if (result->status != CONF_ELSEWHERE) {
        snprintf(job->after, sizeof job->after, "%s", result->id);
        job->suite = result->suite;
    }
    job->results++;
    if (job == &jobs->job[jobs->first])
        jobs->sink(jobs->user, result);
    else
        keep(jobs, job, result);
}

static void take_message(struct jobs *jobs, struct job *job)
{
    const struct message *message = &job->part;
    job->part_bytes = 0;
    if (!message->begins) {
        take_result(jobs, job, &message->result);
        return;
    }
    if (job->results > 0)
        job->before = job->results;
    job->results = 0;
    job->backend = message->backend;
    job->after[0] = '\0';
    job->suite = "all";
}

/* How a process ended that should have gone on: a result in words. */
static void report_end(struct jobs *jobs, struct job *job, int status)
{
    struct conf_result r = { .kernel = job->kernel,
                             .suite = job->suite,
                             .profile = "given",
                             .backend = jobs->backends[job->backend],
                             .status = CONF_CRASH };
    snprintf(r.id, sizeof r.id, "%s/f32/ended", posenc_kernel_name(r.kernel));
    const char *after = job->after[0] ? job->after : "no case";
    if (WIFSIGNALED(status)) {
        snprintf(r.reason, sizeof r.reason, "the process ended by signal %d (%s) after %s",
                 WTERMSIG(status), strsignal(WTERMSIG(status)), after);
    } else {
        snprintf(r.reason, sizeof r.reason, "the process was ended by exit(%d) after %s",
                 WEXITSTATUS(status), after);
    }
    take_result(jobs, job, &r);
}

/* Starts a process for the kernel, from job->backend on; if there is none, the program ends. */
static void begin_job(struct jobs *jobs, struct job *job)
{
    int ends[2];
    job->begun = true;
    job->suite = "all";
    job->after[0] = '\0';
    fflush(NULL); /* or both would write it */
    bool piped = pipe(ends) == 0;
    job->pid = piped ? fork() : -1;
    if (job->pid == 0) {
        close(ends[0]);
        for (size_t i = 0; i < jobs->n; i++) /* or their processes would not see it broken */
            if (jobs->job[i].begun && !jobs->job[i].ended && &jobs->job[i] != job)
                close(jobs->job[i].from);
        run_job(jobs, job, ends[1]);
    }
    if (piped) {
        close(ends[1]);
        job->from = ends[0];
    }
    if (job->pid < 0) {
        job->begun = false;
        give_up(jobs, posenc_kernel_name(job->kernel), "no process can be made for it");
    }
}

/* Hands on what was kept of the kernels whose turn it is. */
static void hand_on(struct jobs *jobs)
{
    while (jobs->first < jobs->n && jobs->job[jobs->first].ended) {
        if (++jobs->first < jobs->n) {
            struct job *next = &jobs->job[jobs->first];
            for (size_t i = 0; i < next->n_kept; i++)
                jobs->sink(jobs->user, &next->kept[i]);
            free(next->kept);
            next->kept = NULL;
        }
    }
}

/* The other backends are not to suffer from one that ended its process: they get another. */
static void end_job(struct jobs *jobs, struct job *job)
{
    int status = 0;
    close(job->from);
    while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR) {
    }
    job->ended = WIFEXITED(status) && WEXITSTATUS(status) == ALL_DONE;
    if (!job->ended) {
        report_end(jobs, job, status);
        job->part_bytes = 0;
        job->ended = ++job->backend == jobs->n_backends;
        if (!job->ended)
            begin_job(jobs, job);
    }
    hand_on(jobs);
}

/* Reads what there is; at the end of it the process has ended. */
static void listen_to(struct jobs *jobs, struct job *job)
{
    char *to = (char *)&job->part + job->part_bytes;
    ssize_t n = read(job->from, to, sizeof job->part - job->part_bytes);
    if (n > 0) {
        job->part_bytes += (size_t)n;
        if (job->part_bytes == sizeof job->part)
            take_message(jobs, job);
    } else if (n == 0 || errno != EINTR) {
        end_job(jobs, job);
    }
}

/* The next kernel: those with sines, which take longest, come first, so that all CPUs are done at
 * about the same time.  NULL where all have begun. */
static struct job *next_job(struct jobs *jobs)
{
    for (int sines = 1; sines >= 0; sines--)
        for (struct job *job = jobs->job; job < jobs->job + jobs->n; job++)
            if (!job->begun &&
                (!sines || kernel_has_plan(job->kernel) || kernel_turns(job->kernel)))
                return job;
    return NULL;
}

static size_t list_running(const struct jobs *jobs, struct pollfd *fds, size_t *job_of)
{
    size_t n = 0;
    for (size_t i = 0; i < jobs->n; i++) {
        if (jobs->job[i].begun && !jobs->job[i].ended) {
            fds[n] = (struct pollfd){ .fd = jobs->job[i].from, .events = POLLIN };
            job_of[n++] = i;
        }
    }
    return n;
}

static double part_done(const struct jobs *jobs, const struct job *job)
{
    const double n = (double)jobs->n_backends;
    if (!job->begun || job->ended)
        return job->ended ? n : 0.0;
    double part = job->before > 0 ? (double)job->results / (double)job->before : 0.0;
    return (double)job->backend + (part < 1.0 ? part : 1.0);
}

static void tell_progress(const struct jobs *jobs, side_progress *tell)
{
    double done = 0.0;
    for (size_t i = 0; i < jobs->n; i++)
        done += part_done(jobs, &jobs->job[i]);
    tell(jobs->user, done, jobs->n * jobs->n_backends);
}

void side_by_side(const struct posenc_backend *const *backends, size_t n, int jobs_at_once,
                  const struct conf_options *options, conf_sink *sink, side_progress *tell,
                  void *user)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t most = jobs_at_once > 0 ? (size_t)jobs_at_once : cpus > 0 ? (size_t)cpus : 1;
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs) {
        conf_run(backends, n, options, sink, user);
        return;
    }
    *jobs = (struct jobs){ .backends = backends,
                           .n_backends = n,
                           .options = options,
                           .sink = sink,
                           .user = user,
                           .parent = getpid() };
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (n > 0 && conf_selects(options, (enum posenc_kernel)k))
            jobs->job[jobs->n++].kernel = (enum posenc_kernel)k;
    while (jobs->first < jobs->n) {
        struct pollfd fds[POSENC_KERNEL_COUNT];
        size_t job_of[POSENC_KERNEL_COUNT], m;
        struct job *next;
        while ((m = list_running(jobs, fds, job_of)) < most && (next = next_job(jobs)))
            begin_job(jobs, next);
        const int ready = poll(fds, (nfds_t)m, ASK_AGAIN_MS);
        if (outputs_interrupted() != 0) {
            hand_on_all(jobs);
            end_all(jobs);
            break;
        }
        tell_progress(jobs, tell);
        if (ready <= 0)
            continue;
        for (size_t i = 0; i < m; i++)
            if (fds[i].revents != 0)
                listen_to(jobs, &jobs->job[job_of[i]]);
    }
    free(jobs);
}
