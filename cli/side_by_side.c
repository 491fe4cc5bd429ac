/*
 * Processes that check backends, and the one that reads their results: see side_by_side.h.
 *
 * A result goes through a pipe as it is: its pointers are to constants and to backends, which lie
 * at the same addresses in a process and its parent.
 */
#define _POSIX_C_SOURCE 200809L
#include "side_by_side.h"

#include "args.h"
#include "outputs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The status of a process that came to its end, where exit() has others; how long a signal may
 * go unseen. */
enum { ALL_DONE = 42, ASK_AGAIN_MS = 200 };

struct job {
    const struct posenc_backend *backend;
    int kernels; /* that it has: how long it takes */
    pid_t pid;
    int from; /* the pipe's end; -1: not begun, or at its end */
    bool begun, ended;
    struct conf_result part; /* of a result that arrives in pieces */
    size_t part_bytes;
    struct conf_result *kept; /* until the backends before are done */
    size_t n_kept, room;
    struct conf_result last; /* what the process said last */
};

struct jobs {
    struct job job[BACKENDS_MAX];
    size_t n, first; /* first: whose results are handed on as they come */
    const struct conf_options *options;
    conf_sink *sink;
    void *user;
};

/* ---- The process of a backend ---- */

static void send_result(void *to, const struct conf_result *result)
{
    const char *at = (const char *)result;
    size_t left = sizeof *result;
    while (left > 0) {
        ssize_t n = write(*(int *)to, at, left);
        if (n < 0 && errno != EINTR)
            _exit(1); /* nobody reads any more */
        at += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
}

static void be_job(const struct job *job, const struct conf_options *options, int to)
{
    signal(SIGINT, SIG_IGN); /* the parent ends what is interrupted; then nobody reads */
    conf_run(&job->backend, 1, options, send_result, &to);
    _exit(ALL_DONE);
}

/* ---- Their parent ---- */

static void keep(struct job *job, const struct conf_result *result)
{
    if (job->n_kept == job->room) {
        job->room = job->room > 0 ? 2 * job->room : 1024;
        struct conf_result *more = realloc(job->kept, job->room * sizeof *more);
        if (!more) {
            fputs("posenc: out of memory\n", stderr);
            exit(EXIT_USAGE);
        }
        job->kept = more;
    }
    job->kept[job->n_kept++] = *result;
}

static void take_result(struct jobs *jobs, struct job *job, const struct conf_result *result)
{
    job->last = *result;
    if (job == &jobs->job[jobs->first])
        jobs->sink(jobs->user, result);
    else
        keep(job, result);
}

/* How a process ended that should have gone on: a result in words. */
static void report_end(struct jobs *jobs, struct job *job, int status)
{
    const bool silent = job->last.id[0] == '\0';
    for (int k = 0; silent && k < POSENC_KERNEL_COUNT; k++) {
        if (posenc_provides(job->backend, (enum posenc_kernel)k)) {
            job->last.kernel = (enum posenc_kernel)k;
            break;
        }
    }
    struct conf_result r = { .kernel = job->last.kernel,
                             .suite = job->last.suite ? job->last.suite : "all",
                             .profile = "given",
                             .backend = job->backend,
                             .status = CONF_CRASH };
    snprintf(r.id, sizeof r.id, "%s/f32/ended", posenc_kernel_name(r.kernel));
    const char *after = silent ? "no case" : job->last.id;
    if (WIFSIGNALED(status)) {
        snprintf(r.reason, sizeof r.reason, "the process ended by signal %d (%s) after %s",
                 WTERMSIG(status), strsignal(WTERMSIG(status)), after);
    } else {
        snprintf(r.reason, sizeof r.reason, "the process was ended by exit(%d) after %s",
                 WEXITSTATUS(status), after);
    }
    take_result(jobs, job, &r);
}

static void end_job(struct jobs *jobs, struct job *job)
{
    int status = 0;
    close(job->from);
    job->from = -1;
    job->ended = true;
    while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != ALL_DONE)
        report_end(jobs, job, status);
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

/* Reads what there is; at the end of it the process has ended. */
static void listen_to(struct jobs *jobs, struct job *job)
{
    char *to = (char *)&job->part + job->part_bytes;
    ssize_t n = read(job->from, to, sizeof job->part - job->part_bytes);
    if (n > 0) {
        job->part_bytes += (size_t)n;
        if (job->part_bytes == sizeof job->part) {
            job->part_bytes = 0;
            take_result(jobs, job, &job->part);
        }
    } else if (n == 0 || errno != EINTR) {
        end_job(jobs, job);
    }
}

/* Of the backends that have not begun the one with the most kernels, so that the short ones come
 * last and all CPUs are done at about the same time; NULL where all have. */
static struct job *next_job(struct jobs *jobs)
{
    struct job *next = NULL;
    for (struct job *job = jobs->job; job < jobs->job + jobs->n; job++)
        if (!job->begun && (!next || job->kernels > next->kernels))
            next = job;
    return next;
}

/* A process of its own; without one nothing can be said of the backend. */
static void begin_job(struct jobs *jobs, struct job *job)
{
    int ends[2];
    job->begun = true;
    fflush(NULL); /* or both would write it */
    bool piped = pipe(ends) == 0;
    job->pid = piped ? fork() : -1;
    if (job->pid == 0) {
        close(ends[0]);
        be_job(job, jobs->options, ends[1]);
    }
    if (piped) {
        close(ends[1]);
        job->from = ends[0];
    }
    if (job->pid < 0) {
        fprintf(stderr, "posenc: no process for %s: %s\n", job->backend->name, strerror(errno));
        exit(EXIT_USAGE);
    }
}

/* Of what was interrupted: a kernel may never return. */
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

static size_t running(const struct jobs *jobs, struct pollfd *fds, size_t *job_of)
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

void side_by_side(const struct posenc_backend *const *backends, size_t n, int jobs_at_once,
                  const struct conf_options *options, conf_sink *sink, void *user)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t most = jobs_at_once > 0 ? (size_t)jobs_at_once : cpus > 0 ? (size_t)cpus : 1;
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs) {
        conf_run(backends, n, options, sink, user);
        return;
    }
    jobs->n = n;
    jobs->options = options;
    jobs->sink = sink;
    jobs->user = user;
    for (size_t i = 0; i < n; i++) {
        jobs->job[i] = (struct job){ .backend = backends[i], .from = -1 };
        for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
            jobs->job[i].kernels += posenc_provides(backends[i], (enum posenc_kernel)k);
    }
    while (jobs->first < n) {
        struct pollfd fds[BACKENDS_MAX];
        size_t job_of[BACKENDS_MAX], m;
        struct job *next;
        while ((m = running(jobs, fds, job_of)) < most && (next = next_job(jobs)))
            begin_job(jobs, next);
        const int ready = poll(fds, (nfds_t)m, ASK_AGAIN_MS);
        if (outputs_interrupted() != 0) {
            end_all(jobs);
            break;
        }
        if (ready <= 0)
            continue;
        for (size_t i = 0; i < m; i++)
            if (fds[i].revents != 0)
                listen_to(jobs, &jobs->job[job_of[i]]);
    }
    free(jobs);
}
