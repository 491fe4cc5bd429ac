/*
 * Processes that check a kernel each, and the one that reads their results: see side_by_side.h.
 *
 * A result goes through a pipe as it is: its pointers are to constants and to backends, which lie
 * at the same addresses in a process and its parent.
 */
#define _POSIX_C_SOURCE 200809L
#include "side_by_side.h"

#include "apart.h"
#include "base/clock.h"
#include "args.h"
#include "outputs.h"
#include "base/text/text.h"
#include "plugins.h"
#include "progress.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long an interruption may go unseen, or an end. */
enum { ASK_AGAIN_MS = 200 };
/* So long may pass between two cases of a kernel: those of --exhaustive take longest. */
static const double QUICK_S = 600.0, FULL_S = 7200.0;

/* What goes through the pipe: a backend that begins, a result of it, or, last, which one another process
 * is to begin with. */
struct message {
    size_t backend;
    enum message_kind { BEGINS, HAS_RESULT, HAS_ENDED } what;
    struct conf_result result;
};

struct job {
    enum posenc_kernel kernel;
    struct apart apart;
    bool begun, ended, running;
    bool done;                /* has said that it ends */
    struct message part;      /* what has come of a message */
    struct conf_result *kept; /* results, until the kernels before are done */
    size_t n_kept, room;
    size_t backend, next;   /* which is being checked; whose turn comes after its end */
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
    struct patience patience;
    struct job *starting; /* for the process that begins */
    double looked_s;      /* for hung processes */
};

/* ---- The process of a kernel ---- */

struct sender {
    const struct conf_options *options;
    struct message message;
    int to;
    char begun[96]; /* the first case since the last result; "" */
};

static void send_message(const struct sender *sender)
{
    apart_tell(sender->to, &sender->message, sizeof sender->message);
}

static void send_what(struct sender *sender, size_t backend, enum message_kind what)
{
    sender->message = (struct message){ .backend = backend, .what = what };
    send_message(sender);
}

static void send_result(void *user, const struct conf_result *result)
{
    struct sender *sender = user;
    sender->message.what = HAS_RESULT;
    sender->message.result = *result;
    sender->begun[0] = '\0';
    send_message(sender);
}

/* The case at hand is noted before any work is done for it; where several are begun at once, the first and
 * the last of them. */
static void note_begun(struct sender *sender, const char *id)
{
    char doing[APART_DOING];
    const char *slash = strrchr(id, '/');
    if (sender->begun[0] == '\0')
        snprintf(sender->begun, sizeof sender->begun, "%s", id);
    if (strcmp(sender->begun, id) == 0 || !slash)
        snprintf(doing, sizeof doing, "%s", sender->begun);
    else
        snprintf(doing, sizeof doing, "%s to %s", sender->begun, slash + 1);
    apart_doing(doing);
}

static bool note_case(const void *asked, const struct posenc_backend *backend, const char *id)
{
    struct sender *sender = (struct sender *)(uintptr_t)asked;
    const struct conf_options *options = sender->options;
    note_begun(sender, id);
    return !options->wants || options->wants(options->asked, backend, id);
}

static bool has_case(const struct posenc_backend *backend, enum posenc_kernel kernel)
{
    return posenc_provides(backend, kernel) && !plugins_broken(backend);
}

/* All of a process: checks the backends from job->backend on, up to a plug-in. */
static void run_job(void *user, int to)
{
    const struct jobs *jobs = user;
    const struct job *job = jobs->starting;
    struct sender sender = { .options = jobs->options, .to = to };
    struct conf_options noting = *jobs->options;
    noting.wants = note_case;
    noting.asked = &sender;
    bool foreign = false;
    size_t i = job->backend;
    for (; i < jobs->n_backends && !foreign; i++) {
        const struct posenc_backend *backend = jobs->backends[i];
        if (plugins_broken(backend))
            break;
        send_what(&sender, i, BEGINS);
        sender.begun[0] = '\0';
        foreign = plugins_has(backend) && has_case(backend, job->kernel);
        if (foreign)
            plugins_use_family(backend);
        conf_run_kernel(backend, job->kernel, &noting, send_result, &sender);
        apart_doing("");
    }
    send_what(&sender, i, HAS_ENDED);
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
        char words[APART_WORDS];
        if (job->running)
            apart_end(&job->apart, true, words);
        apart_forget(&job->apart);
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
    apart_heard(&job->apart);
    if (message->what == HAS_RESULT &&
        message->result.backend == jobs->backends[job->backend]) {
        take_result(jobs, job, &message->result);
    } else if (message->what == HAS_ENDED && message->backend <= jobs->n_backends) {
        job->done = true;
        job->next = message->backend;
    } else if (message->what == BEGINS && message->backend < jobs->n_backends) {
        if (job->results > 0)
            job->before = job->results;
        job->results = 0;
        job->backend = message->backend;
        job->after[0] = '\0';
        job->suite = "all";
    }
}

/* A result of the backend at hand that is not a case of the suites. */
static struct conf_result result_of(const struct jobs *jobs, const struct job *job,
                                    const char *name)
{
    struct conf_result r = { .kernel = job->kernel,
                             .suite = job->suite ? job->suite : "all",
                             .profile = "given",
                             .backend = jobs->backends[job->backend],
                             .status = CONF_CRASH };
    snprintf(r.id, sizeof r.id, "%s/f32/%s", posenc_kernel_name(r.kernel), name);
    return r;
}

/* The suite at hand, where the case says it: alibi/f32/memory/..., else that of the last result. */
static const char *suite_at_hand(const struct job *job)
{
    static const char *const suites[] = { "memory", "properties", "random" };
    const char *doing = job->apart.note->doing, *dtype = strchr(doing, '/'),
               *at = dtype ? strchr(dtype + 1, '/') : NULL;
    for (size_t i = 0; at && i < sizeof suites / sizeof *suites; i++) {
        const size_t n = strlen(suites[i]);
        if (strncmp(at + 1, suites[i], n) == 0 && at[1 + n] == '/')
            return suites[i];
    }
    return job->suite;
}

/* How a process ended that should have gone on: a result in words, and the problem that ran. */
static void report_end(struct jobs *jobs, struct job *job, const char *words)
{
    job->suite = suite_at_hand(job);
    struct conf_result r = result_of(jobs, job, "ended");
    const struct guard_note *call = &job->apart.note->call;
    char where[APART_DOING + 16];
    apart_where(&job->apart, job->after, where, sizeof where);
    snprintf(r.reason, sizeof r.reason, "%.90s%.100s", words, where);
    if (call->inside && call->known)
        conf_note_problem(r.problem, &call->problem);
    take_result(jobs, job, &r);
}

/* Of plug-ins: what is known since they were met. */
static void report_met(struct jobs *jobs, struct job *job)
{
    const struct posenc_backend *backend = jobs->backends[job->backend];
    const char *broken = plugins_broken(backend), *lie = plugins_lie(backend);
    if ((!broken && !lie) || !posenc_provides(backend, job->kernel))
        return;
    struct conf_result r = result_of(jobs, job, broken ? "loaded" : "lanes");
    r.status = broken ? CONF_CRASH : CONF_FAIL;
    snprintf(r.reason, sizeof r.reason, "%s", broken ? broken : lie);
    const struct conf_options *options = jobs->options;
    if (options->wants && !options->wants(options->asked, backend, r.id))
        r.status = CONF_ELSEWHERE;
    take_result(jobs, job, &r);
}

/* Starts a process for the kernel, from job->backend on; if there is none, the program ends. */
static void begin_job(struct jobs *jobs, struct job *job)
{
    job->begun = true;
    job->done = false;
    job->suite = "all";
    job->after[0] = '\0';
    for (; job->backend < jobs->n_backends && plugins_broken(jobs->backends[job->backend]);
         job->backend++)
        report_met(jobs, job);
    if (job->backend == jobs->n_backends) {
        job->ended = true;
        return;
    }
    jobs->starting = job;
    job->running = apart_begin(&job->apart, run_job, jobs, false);
    if (!job->running) {
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
static void end_job(struct jobs *jobs, struct job *job, const char *hung)
{
    char words[APART_WORDS];
    const bool fine = apart_end(&job->apart, hung != NULL, words) && job->done;
    job->running = false;
    if (!fine)
        report_end(jobs, job, hung ? hung : words);
    report_met(jobs, job);
    apart_forget(&job->apart);
    job->backend = fine ? job->next : job->backend + 1;
    begin_job(jobs, job);
    hand_on(jobs);
}

/* Reads what there is; at the end of it the process has ended. */
static void listen_to(struct jobs *jobs, struct job *job)
{
    char hung[APART_WORDS] = "";
    const enum apart_said said =
        apart_listen(&job->apart, &jobs->patience, &job->part, sizeof job->part, hung);
    if (said == APART_SAID)
        take_message(jobs, job);
    else if (said == APART_OVER)
        end_job(jobs, job, *hung ? hung : NULL);
}

/* A few times a second: who has hung, and who has ended though somebody else holds its pipe. */
static void look_after(struct jobs *jobs)
{
    char hung[APART_WORDS];
    const double now_s = clock_now();
    if (now_s - jobs->looked_s < 1e-3 * ASK_AGAIN_MS)
        return;
    jobs->looked_s = now_s;
    for (size_t i = 0; i < jobs->n; i++) {
        struct job *job = &jobs->job[i];
        struct pollfd more = { .fd = job->apart.from, .events = POLLIN };
        if (job->running && poll(&more, 1, 0) == 0) {
            if (apart_is_gone(&job->apart))
                end_job(jobs, job, NULL);
            else if (apart_hangs(&job->apart, &jobs->patience, hung))
                end_job(jobs, job, hung);
        }
    }
}

/* The next kernel: those with sines, which take longest, come first, so that all CPUs are done at
 * about the same time.  NULL where all have begun. */
static struct job *next_job(struct jobs *jobs)
{
    for (int sines = 1; sines >= 0; sines--)
        for (struct job *job = jobs->job; job < jobs->job + jobs->n; job++)
            if (!job->begun &&
                (!sines || kernel_has_freqs(job->kernel) || kernel_rotates(job->kernel)))
                return job;
    return NULL;
}

static size_t list_running(const struct jobs *jobs, struct pollfd *fds, size_t *job_of)
{
    size_t n = 0;
    for (size_t i = 0; i < jobs->n; i++) {
        if (jobs->job[i].running) {
            fds[n] = (struct pollfd){ .fd = jobs->job[i].apart.from, .events = POLLIN };
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
                  double limit_s, const struct conf_options *options, conf_sink *sink,
                  side_progress *tell, void *user)
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
                           .patience = patience_of(limit_s, options->full ? FULL_S : QUICK_S) };
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (n > 0 && conf_selects(options, (enum posenc_kernel)k))
            jobs->job[jobs->n++].kernel = (enum posenc_kernel)k;
    while (jobs->first < jobs->n) {
        struct pollfd fds[POSENC_KERNEL_COUNT];
        size_t job_of[POSENC_KERNEL_COUNT], m;
        struct job *next;
        while ((m = list_running(jobs, fds, job_of)) < most && (next = next_job(jobs)))
            begin_job(jobs, next);
        hand_on(jobs); /* of kernels that needed no process */
        if (jobs->first == jobs->n)
            break;
        const int ready = poll(fds, (nfds_t)m, ASK_AGAIN_MS);
        if (outputs_interrupted() != 0) {
            hand_on_all(jobs);
            end_all(jobs);
            break;
        }
        tell_progress(jobs, tell);
        for (size_t i = 0; ready > 0 && i < m; i++)
            if (fds[i].revents != 0)
                listen_to(jobs, &jobs->job[job_of[i]]);
        look_after(jobs);
    }
    free(jobs);
}
