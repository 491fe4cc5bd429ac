/*
 * Checks kernels in workers (see checks.h). A job is a kernel and its steps are the implementations, so that expected
 * outputs are computed once for all of them.
 */
#define _POSIX_C_SOURCE 200809L
#include "checks.h"
#include "session.h"
#include "conformance/program/program.h"
#include "plugins.h"
#include "worker.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Limits of the CPU time of one case, the second with --full and --exhaustive. */
static const double QUICK_CASE_S = 600.0, FULL_CASE_S = 7200.0;

struct check_queue;

/* Checks of one kernel on all implementations. */
struct kernel_checks {
    struct check_queue *queue;
    enum posenc_kernel kernel;
    const struct worker_job *job;
    /* In the parent: */
    json_t *pending; /* records that wait for those of earlier kernels */
    json_t *failed;  /* record of a failure whose problem is run again; or NULL */
    char suite[16];  /* suite of the last record */
    /* In the worker: */
    size_t current;      /* index of the implementation that is checked */
    char first_case[96]; /* that began since the last result; or "" */
    char last_case[96];  /* of the last result; or "" */
};

struct check_queue {
    const struct checks *checks;
    size_t n;     /* kernels, and jobs */
    size_t first; /* index of the kernel whose records are forwarded at once */
    struct kernel_checks kernels[POSENC_KERNEL_COUNT]; /* in the order of the library */
    struct worker_job jobs[POSENC_KERNEL_COUNT];       /* in the order in which they begin */
};

/* ---- In the worker ---- */

json_t *checks_record(const struct checks *checks, size_t index,
                      const struct conf_result *result)
{
    const char *build = checks->implementations[index].build;
    json_t *record = emit_check(result, checks->rerun);
    if (record && build)
        json_object_set_new(record, "build", json_string(build));
    return record;
}

static void send_check(void *user, const struct conf_result *result)
{
    struct kernel_checks *kernel = user;
    json_t *record = checks_record(kernel->queue->checks, kernel->current, result);
    if (result->range)
        json_object_set_new(record, "range", json_string(result->range));
    kernel->first_case[0] = '\0';
    if (result->status != CONF_ELSEWHERE)
        snprintf(kernel->last_case, sizeof kernel->last_case, "%s", result->id);
    worker_send(record);
}

/* Sends a failure before the program or plug-in is asked again, and may end this process. */
static void send_failure(const void *user, const struct conf_result *result)
{
    const struct kernel_checks *kernel = user;
    json_t *record = checks_record(kernel->queue->checks, kernel->current, result);
    json_object_set_new(record, "early", json_true());
    worker_send(record);
}

/* Returns true if a case is wanted. Names it in the activity, or the first and the last of several that begin together:
 * "in alibi/f32/memory/guard-end to guard-begin". */
static bool begin_case(const void *user, const struct posenc_backend *backend, const char *id)
{
    struct kernel_checks *kernel = (struct kernel_checks *)(uintptr_t)user;
    const struct conf_options *options = kernel->queue->checks->options;
    const char *slash = strrchr(id, '/');
    if (kernel->first_case[0] == '\0')
        snprintf(kernel->first_case, sizeof kernel->first_case, "%s", id);
    program_set_case(id);
    if (strcmp(kernel->first_case, id) == 0 || !slash)
        worker_set_activity(false, "in %s", kernel->first_case);
    else
        worker_set_activity(false, "in %s to %s", kernel->first_case, slash + 1);
    return !options->wants || options->wants(options->wants_user, backend, id);
}

/* Makes a result outside the suites. */
static struct conf_result make_result(const struct kernel_checks *kernel, size_t index,
                                      const char *suite, const char *name,
                                      enum conf_status status)
{
    struct conf_result r = {
        .kernel = kernel->kernel,
        .suite = suite,
        .numerics = "given",
        .backend = kernel->queue->checks->implementations[index].implementation.backend,
        .status = status
    };
    snprintf(r.id, sizeof r.id, "%s/f32/%s", posenc_kernel_name(r.kernel), name);
    return r;
}

/* Reports a plug-in that could not be loaded. */
static void report_load_error(struct kernel_checks *kernel,
                              const struct posenc_backend *backend)
{
    const struct conf_options *options = kernel->queue->checks->options;
    struct conf_result r = make_result(kernel, kernel->current, "all", "loaded", CONF_CRASH);
    snprintf(r.reason, sizeof r.reason, "%s", plugins_load_error(backend));
    if (options->wants && !options->wants(options->wants_user, backend, r.id))
        r.status = CONF_ELSEWHERE;
    send_check(kernel, &r);
}

/* Checks the current implementation. Returns true for a plug-in, which may have damaged the process. */
static bool check_implementation(struct kernel_checks *kernel)
{
    const struct checks *checks = kernel->queue->checks;
    const struct implementation *implementation =
        &checks->implementations[kernel->current].implementation;
    const struct posenc_backend *backend = implementation->backend;
    struct conf_options options = *checks->options;
    if (plugins_load_error(backend)) {
        report_load_error(kernel, backend);
        return false;
    }
    const bool is_plugin =
        plugins_is_stub(backend) && posenc_backend_provides(backend, kernel->kernel);
    if (is_plugin)
        plugins_load_family(backend);
    memset(options.kernels, 0, sizeof options.kernels);
    options.kernels[kernel->kernel] = true;
    options.wants = begin_case;
    options.fails = send_failure;
    options.wants_user = kernel;
    options.program = plugins_program_mode(backend);
    conf_run_implementation(implementation, &options, send_check, kernel);
    worker_set_activity(false, "after %s",
                        *kernel->last_case != '\0' ? kernel->last_case : "no case");
    if (checks->after_suites)
        checks->after_suites(checks->user, kernel->current, kernel->kernel);
    plugins_unload();
    return is_plugin;
}

/* Makes malloc() reuse large blocks instead of returning them, as page faults of new blocks slow a full run. */
static void keep_freed_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
#endif
}

/* Checks the implementations from `first` on, up to and including the first plug-in. */
static size_t check_implementations(void *user, size_t first)
{
    struct kernel_checks *kernel = user;
    const struct checks *checks = kernel->queue->checks;
    bool is_plugin = false;
    keep_freed_memory();
    for (kernel->current = first; kernel->current < checks->n_implementations && !is_plugin;
         kernel->current++) {
        kernel->first_case[0] = kernel->last_case[0] = '\0';
        worker_set_step(kernel->current);
        worker_set_activity(false, "before its first case");
        if (checks->implementations[kernel->current].implementation.backend)
            is_plugin = check_implementation(kernel);
    }
    return kernel->current;
}

/* ---- In the parent ---- */

static void flush_pending(const struct kernel_checks *kernel)
{
    size_t i;
    json_t *record;
    json_array_foreach(kernel->pending, i, record)
        kernel->queue->checks->on_record(kernel->queue->checks->user, record);
    json_array_clear(kernel->pending);
}

/* Forwards the records of the first unfinished kernel and of the finished kernels before it. */
static void flush_records(struct check_queue *queue)
{
    while (queue->first < queue->n) {
        flush_pending(&queue->kernels[queue->first]);
        if (!queue->kernels[queue->first].job->finished)
            return;
        queue->first++;
    }
}

static void receive_record(void *user, json_t *record)
{
    struct kernel_checks *kernel = user;
    if (!record_is(record, "kernel", posenc_kernel_name(kernel->kernel)))
        return; /* a plug-in wrote it */
    json_decref(kernel->failed);
    kernel->failed = NULL;
    if (json_object_get(record, "early")) {
        json_object_del(record, "early");
        kernel->failed = json_incref(record);
        return;
    }
    if (!record_is(record, "status", conf_status_name[CONF_ELSEWHERE]))
        snprintf(kernel->suite, sizeof kernel->suite, "%s", record_text(record, "suite"));
    if (json_array_append(kernel->pending, record) != 0)
        abort(); /* a failure must not be lost */
    flush_records(kernel->queue);
}

/* Returns the suite that an activity names, such as "in alibi/f32/memory/guard-end", or that of the last record. */
static const char *current_suite(const struct kernel_checks *kernel, const char *activity)
{
    static const char *const suites[] = { "memory", "properties", "random", "side-effects" };
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        char part[16];
        snprintf(part, sizeof part, "/%s/", suites[i]);
        if (strncmp(activity, "in ", 3) == 0 && strstr(activity, part))
            return suites[i];
    }
    return kernel->suite[0] != '\0' ? kernel->suite : "all";
}

/* Reports an early end, with the problem of the call. */
static size_t report_early_end(void *user, const struct worker_end *end)
{
    struct kernel_checks *kernel = user;
    json_t *failed = json_incref(kernel->failed);
    const struct guard_status *call = &end->status->call;
    struct conf_result r =
        make_result(kernel, kernel->job->step, current_suite(kernel, end->status->activity),
                    "ended", CONF_CRASH);
    snprintf(r.reason, sizeof r.reason, "%.300s %.90s", end->cause, end->status->activity);
    if (call->inside && call->known)
        conf_print_problem(r.problem, &call->problem);
    json_t *record = checks_record(kernel->queue->checks, kernel->job->step, &r);
    if (failed)
        receive_record(kernel, failed);
    json_decref(failed);
    receive_record(kernel, record);
    json_decref(record);
    return kernel->job->step + 1;
}

static bool flush_and_show_progress(void *user)
{
    struct check_queue *queue = user;
    const struct checks *checks = queue->checks;
    size_t done = 0;
    flush_records(queue);
    for (size_t i = 0; i < queue->n; i++)
        done += queue->jobs[i].finished ? checks->n_implementations : queue->jobs[i].step;
    checks->progress(checks->user, done, queue->n * checks->n_implementations);
    return outputs_interrupted() == 0;
}

static void add_job(struct check_queue *queue, struct kernel_checks *kernel, size_t *n_jobs)
{
    struct worker_job *job = &queue->jobs[(*n_jobs)++];
    *job = (struct worker_job){ .user = kernel,
                                .n_steps = queue->checks->n_implementations,
                                .run = check_implementations,
                                .on_message = receive_record,
                                .on_early_end = report_early_end };
    kernel->job = job;
}

static bool computes_sines(enum posenc_kernel kernel)
{
    return kernel_has_freqs(kernel) || kernel_rotates(kernel);
}

/* Lists the kernels in their order, and the jobs in the order in which they start. The first kernel starts first, since
 * its records are written at once. The longest jobs follow, so that all CPUs finish at about the same time. Kernels
 * with sines take longest, then kernels at the end of the list. */
static void list_kernels(struct check_queue *queue)
{
    size_t n_jobs = 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (conf_selects(queue->checks->options, (enum posenc_kernel)k))
            queue->kernels[queue->n++] = (struct kernel_checks){
                .queue = queue, .kernel = (enum posenc_kernel)k, .pending = json_array()
            };
    if (queue->n > 0)
        add_job(queue, &queue->kernels[0], &n_jobs);
    for (size_t i = queue->n; i-- > 1;)
        if (computes_sines(queue->kernels[i].kernel))
            add_job(queue, &queue->kernels[i], &n_jobs);
    for (size_t i = queue->n; i-- > 1;)
        if (!computes_sines(queue->kernels[i].kernel))
            add_job(queue, &queue->kernels[i], &n_jobs);
}

void checks_run(const struct checks *checks)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const struct worker_limits limits =
        worker_limits_of(checks->limit_s, checks->options->full ? FULL_CASE_S : QUICK_CASE_S);
    struct check_queue *queue = cli_allocate(1, sizeof *queue);
    queue->checks = checks;
    if (checks->n_implementations > 0)
        list_kernels(queue);
    const size_t one_for_each_cpu = cpus > 0 ? (size_t)cpus : 1;
    workers_run(queue->jobs, queue->n,
                checks->max_jobs > 0 ? checks->max_jobs : one_for_each_cpu, &limits,
                flush_and_show_progress, queue);
    for (size_t i = 0; i < queue->n; i++) {
        flush_pending(&queue->kernels[i]); /* left by an interrupted run */
        json_decref(queue->kernels[i].pending);
        json_decref(queue->kernels[i].failed);
    }
    free(queue);
}
