/*
 * Checks kernels in workers (see checks.h). The steps of a job are the subjects: the oracle answers
 * once for all of them.
 */
#define _POSIX_C_SOURCE 200809L
#include "checks.h"
#include "emit.h"
#include "outputs.h"
#include "plugins.h"
#include "worker.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The longest CPU time between two cases: those of --exhaustive take longest. */
static const double QUICK_S = 600.0, FULL_S = 7200.0;

struct check_queue;

/* The checks of a kernel on all subjects. */
struct kernel_checks {
    struct check_queue *queue;
    enum posenc_kernel kernel;
    const struct worker_job *job;
    json_t *kept;   /* records, until the kernels before are done */
    char suite[16]; /* suite of the last record */
    /* In the worker: the subject at hand; the first case since the last result, and the last
     * result, or "". */
    size_t subject;
    char begun[96], last[96];
};

struct check_queue {
    const struct checks *checks;
    size_t n;
    size_t first; /* the kernel whose records are handed on as they come */
    struct kernel_checks kernels[POSENC_KERNEL_COUNT]; /* in the order of the library */
    struct worker_job jobs[POSENC_KERNEL_COUNT];       /* in the order in which they begin */
};

/* ---- In the worker ---- */

json_t *checks_record(const struct checks *checks, size_t subject,
                      const struct conf_result *result)
{
    const char *build = checks->subjects[subject].build;
    json_t *record = emit_conf(result, checks->rerun);
    if (record && build)
        json_object_set_new(record, "build", json_string(build));
    return record;
}

static void send_check(void *user, const struct conf_result *result)
{
    struct kernel_checks *kernel = user;
    json_t *record = checks_record(kernel->queue->checks, kernel->subject, result);
    if (result->range)
        json_object_set_new(record, "range", json_string(result->range));
    kernel->begun[0] = '\0';
    if (result->status != CONF_ELSEWHERE)
        snprintf(kernel->last, sizeof kernel->last, "%s", result->id);
    worker_send(record);
}

/* Notes the case at hand before any work is done for it; of several that begin at once, the
 * first and the last. */
static bool note_case(const void *asked, const struct posenc_backend *backend, const char *id)
{
    struct kernel_checks *kernel = (struct kernel_checks *)(uintptr_t)asked;
    const struct conf_options *options = kernel->queue->checks->options;
    const char *slash = strrchr(id, '/');
    if (kernel->begun[0] == '\0')
        snprintf(kernel->begun, sizeof kernel->begun, "%s", id);
    if (strcmp(kernel->begun, id) == 0 || !slash)
        worker_note_work(false, "in %s", kernel->begun);
    else
        worker_note_work(false, "in %s to %s", kernel->begun, slash + 1);
    return !options->wants || options->wants(options->wants_user, backend, id);
}

/* Makes a result that is no case of a suite. */
static struct conf_result result_of(const struct kernel_checks *kernel, size_t subject,
                                    const char *suite, const char *name,
                                    enum conf_status status)
{
    struct conf_result r = {
        .kernel = kernel->kernel,
        .suite = suite,
        .profile = "given",
        .backend = kernel->queue->checks->subjects[subject].implementation.backend,
        .status = status
    };
    snprintf(r.id, sizeof r.id, "%s/f32/%s", posenc_kernel_name(r.kernel), name);
    return r;
}

/* Reports a plug-in that could not be loaded or misreports its vector width. */
static void check_loading(struct kernel_checks *kernel, const struct posenc_backend *backend)
{
    const struct conf_options *options = kernel->queue->checks->options;
    const char *broken = plugins_load_error(backend), *lie = plugins_lanes_error(backend);
    if ((!broken && !lie) || !posenc_provides(backend, kernel->kernel))
        return;
    struct conf_result r =
        result_of(kernel, kernel->subject, "all", broken ? "loaded" : "lanes",
                  broken ? CONF_CRASH : CONF_FAIL);
    snprintf(r.reason, sizeof r.reason, "%s", broken ? broken : lie);
    if (options->wants && !options->wants(options->wants_user, backend, r.id))
        r.status = CONF_ELSEWHERE;
    send_check(kernel, &r);
}

/* Checks a subject. Returns true for a plug-in, which may leave traces in the process. */
static bool check_subject(struct kernel_checks *kernel)
{
    const struct checks *checks = kernel->queue->checks;
    const struct implementation *implementation =
        &checks->subjects[kernel->subject].implementation;
    const struct posenc_backend *backend = implementation->backend;
    struct conf_options options = *checks->options;
    check_loading(kernel, backend);
    if (plugins_load_error(backend))
        return false;
    const bool foreign =
        plugins_is_stand_in(backend) && posenc_provides(backend, kernel->kernel);
    if (foreign)
        plugins_load_family(backend);
    memset(options.kernels, 0, sizeof options.kernels);
    options.kernels[kernel->kernel] = true;
    options.wants = note_case;
    options.wants_user = kernel;
    conf_run_implementation(implementation, &options, send_check, kernel);
    worker_note_work(false, "after %s", *kernel->last != '\0' ? kernel->last : "no case");
    if (checks->after_suites)
        checks->after_suites(checks->user, kernel->subject, kernel->kernel);
    return foreign;
}

/* Checks the subjects from one on, up to a plug-in. */
static size_t check_subjects(void *user, size_t first)
{
    struct kernel_checks *kernel = user;
    const struct checks *checks = kernel->queue->checks;
    bool foreign = false;
    for (kernel->subject = first; kernel->subject < checks->n_subjects && !foreign;
         kernel->subject++) {
        kernel->begun[0] = kernel->last[0] = '\0';
        worker_note_step(kernel->subject);
        worker_note_work(false, "before its first case");
        if (checks->subjects[kernel->subject].implementation.backend)
            foreign = check_subject(kernel);
    }
    return kernel->subject;
}

/* ---- In the parent ---- */

static void hand_on_kept(const struct kernel_checks *kernel)
{
    size_t i;
    json_t *record;
    json_array_foreach(kernel->kept, i, record)
        kernel->queue->checks->take(kernel->queue->checks->user, record);
    json_array_clear(kernel->kept);
}

/* Hands on the records of the first kernel, and those of the next ones whose turn has come. */
static void hand_on(struct check_queue *queue)
{
    while (queue->first < queue->n) {
        hand_on_kept(&queue->kernels[queue->first]);
        if (!queue->kernels[queue->first].job->finished)
            return;
        queue->first++;
    }
}

static void take_record(void *user, json_t *record)
{
    struct kernel_checks *kernel = user;
    if (strcmp(record_text(record, "kernel"), posenc_kernel_name(kernel->kernel)) != 0)
        return; /* a plug-in wrote it */
    if (strcmp(record_text(record, "status"), conf_status_name[CONF_ELSEWHERE]) != 0)
        snprintf(kernel->suite, sizeof kernel->suite, "%s", record_text(record, "suite"));
    if (json_array_append(kernel->kept, record) != 0)
        abort(); /* rather than lose a failure */
    hand_on(kernel->queue);
}

/* Finds the suite at hand in a case such as alibi/f32/memory/guard-end; else it is that of the
 * last record. */
static const char *suite_at_hand(const struct kernel_checks *kernel, const char *doing)
{
    static const char *const suites[] = { "memory", "properties", "random", "side-effects" };
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        char part[16];
        snprintf(part, sizeof part, "/%s/", suites[i]);
        if (strncmp(doing, "in ", 3) == 0 && strstr(doing, part))
            return suites[i];
    }
    return kernel->suite[0] != '\0' ? kernel->suite : "all";
}

/* Reports an early end, with the problem that ran. The other subjects continue in another
 * worker. */
static size_t lose_subject(void *user, const struct worker_end *end)
{
    struct kernel_checks *kernel = user;
    const struct guard_note *call = &end->note->call;
    struct conf_result r =
        result_of(kernel, kernel->job->step, suite_at_hand(kernel, end->note->doing), "ended",
                  CONF_CRASH);
    snprintf(r.reason, sizeof r.reason, "%.90s %.100s", end->how, end->note->doing);
    if (call->inside && call->known)
        conf_print_problem(r.problem, &call->problem);
    json_t *record = checks_record(kernel->queue->checks, kernel->job->step, &r);
    take_record(kernel, record);
    json_decref(record);
    return kernel->job->step + 1;
}

static bool hand_on_and_show(void *user)
{
    struct check_queue *queue = user;
    const struct checks *checks = queue->checks;
    size_t done = 0;
    hand_on(queue);
    for (size_t i = 0; i < queue->n; i++)
        done += queue->jobs[i].finished ? checks->n_subjects : queue->jobs[i].step;
    checks->progress(checks->user, done, queue->n * checks->n_subjects);
    return outputs_interrupted() == 0;
}

/* Lists kernels in their order, and jobs as they begin. Kernels with sines take longest, and later kernels
 * take longer than earlier ones: these come first, so that all CPUs are done at about the same time. */
static void list_kernels(struct check_queue *queue)
{
    size_t n_jobs = 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (conf_selects(queue->checks->options, (enum posenc_kernel)k))
            queue->kernels[queue->n++] = (struct kernel_checks){
                .queue = queue, .kernel = (enum posenc_kernel)k, .kept = json_array()
            };
    for (int sines = 1; sines >= 0; sines--)
        for (size_t i = queue->n; i-- > 0;) {
            struct kernel_checks *kernel = &queue->kernels[i];
            if ((kernel_has_freqs(kernel->kernel) || kernel_rotates(kernel->kernel)) !=
                (sines == 1))
                continue;
            kernel->job = &queue->jobs[n_jobs];
            queue->jobs[n_jobs++] = (struct worker_job){ .user = kernel,
                                                         .n_steps = queue->checks->n_subjects,
                                                         .run = check_subjects,
                                                         .take = take_record,
                                                         .lost = lose_subject };
        }
}

void checks_run(const struct checks *checks)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const struct worker_limits limits =
        worker_limits_of(checks->limit_s, checks->options->full ? FULL_S : QUICK_S);
    struct check_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        abort(); /* rather than say that all is well */
    queue->checks = checks;
    if (checks->n_subjects > 0)
        list_kernels(queue);
    const size_t one_for_each_cpu = cpus > 0 ? (size_t)cpus : 1;
    workers_run(queue->jobs, queue->n, checks->at_once > 0 ? checks->at_once : one_for_each_cpu,
                &limits, hand_on_and_show, queue);
    for (size_t i = 0; i < queue->n; i++) {
        hand_on_kept(&queue->kernels[i]); /* what an interrupted run has kept back */
        json_decref(queue->kernels[i].kept);
    }
    free(queue);
}
