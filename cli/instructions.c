/* posenc bench --instructions: counts the instructions that a call of each kernel takes. */
#define _POSIX_C_SOURCE 200809L
#include "instructions.h"
#include "worker.h"
#include "emit.h"
#include "conformance/engine/judge.h"
#include "plugins.h"
#include "base/clock.h"
#include "base/text/text.h"
#include "session.h"

#include <math.h>
#include <stdio.h>

/* ---- Records ---- */

enum { COUNT_ID = 96 };

static void set_integer(json_t *record, const char *name, uint64_t value)
{
    json_object_set_new(record, name, json_integer((json_int_t)value));
}

json_t *instructions_record(const struct kernel_instructions *count,
                            const struct posenc_backend *backend, const char *build)
{
    char id[COUNT_ID];
    problem_id(&count->problem, "count", id, sizeof id);
    json_t *record = emit_result("count", count->problem.kernel, count->problem.dtype,
                                 numerics_name(&count->problem), id, backend);
    if (!record)
        return NULL;
    if (build)
        json_object_set_new(record, "build", json_string(build));
    if (backend->lanes)
        json_object_set_new(record, "vector_width", json_integer(plugins_lanes(backend)));
    if (!count->call[0].by || !count->call[1].by) {
        json_object_set_new(record, "rejected", json_string(count->reason));
        return record;
    }
    json_object_set_new(record, "by", json_string(count->call[0].by));
    set_integer(record, "elements", (uint64_t)count->elements[0]);
    set_integer(record, "instructions", count->call[0].instructions);
    set_integer(record, "outside", count->call[0].outside);
    json_object_set_new(record, "per_element", record_number(count->per_element));
    json_object_set_new(record, "per_call", record_number(count->per_call));
    return record;
}

/* ---- The run ---- */

enum { MOST_FORMS = 2 * POSENC_KERNEL_COUNT * N_DTYPES };

struct counting {
    struct session *session;
    size_t done, total, counted;
    double most_s, begun; /* 0: no limit; wall clock at the start */
};

static bool time_is_up(const struct counting *counting)
{
    return counting->most_s > 0.0 && clock_now() - counting->begun > counting->most_s;
}

static void show_progress(const struct counting *counting, const char *id, const char *backend)
{
    char case_id[160];
    snprintf(case_id, sizeof case_id, "%s %s", backend, id);
    progress_draw(&(struct progress){ .command = "bench",
                                      .unit = "kernels on backends",
                                      .done = (double)counting->done,
                                      .total = counting->total,
                                      .most_s = counting->most_s,
                                      .notes = "",
                                      .case_id = case_id });
}

static void count_one(struct counting *counting, const struct posenc_backend *backend,
                      const struct problem *form)
{
    const struct implementation implementation = implementation_of(backend);
    struct kernel_instructions count;
    worker_enter_kernel(posenc_kernel_name(form->kernel));
    counting->counted += instructions_of_kernel(&implementation, form->kernel, form->dtype,
                                                form->freqs.profile, &count);
    worker_leave_kernel();
    records_append(&counting->session->records, instructions_record(&count, backend, NULL));
}

/* Counts a kernel in one form (dtype and numerics mode) on every backend that provides it. */
static void count_form(struct counting *counting, const struct problem *form)
{
    struct session *session = counting->session;
    char id[COUNT_ID];
    problem_id(form, "count", id, sizeof id);
    if (!session_wants_case(session, id))
        return;
    for (size_t i = 0; i < session->selected.n && !time_is_up(counting); i++) {
        const struct posenc_backend *backend = session->selected.backends[i];
        show_progress(counting, id, backend->name);
        counting->done++;
        if (!posenc_backend_obstacle(backend) && posenc_provides(backend, form->kernel) &&
            (backend->f16_bf16 || form->dtype == POSENC_F32))
            count_one(counting, backend, form);
        session_exit_if_interrupted(session);
    }
}

/* Lists each selected kernel in each selected dtype and each numerics mode in which it is counted. Returns their
 * number. */
static size_t list_forms(const struct selection *selected, struct problem forms[MOST_FORMS])
{
    size_t n = 0;
    for (int dtype = 0; dtype < N_DTYPES; dtype++)
        for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
            enum posenc_profile profiles[2];
            const size_t n_profiles = instructions_profiles((enum posenc_kernel)k, profiles);
            if (!selection_times_dtype(selected, NULL, (enum posenc_dtype)dtype) ||
                (selected->any_kernel && !selected->kernels[k]))
                continue;
            for (size_t i = 0; i < n_profiles; i++) {
                forms[n] = problem_default((enum posenc_kernel)k);
                forms[n].dtype = (enum posenc_dtype)dtype;
                forms[n++].freqs.profile = profiles[i];
            }
        }
    return n;
}

int instructions_command(struct cli *cli)
{
    static struct problem forms[MOST_FORMS];
    struct session session = { 0 };
    if (cli->model.n > 0 || cli->problem || cli->tune || cli->shard)
        return cli_reject(cli, "--instructions", NULL,
                          "expected without --model, --config, --problem, --tune and --shard");
    if (!instructions_method()) {
        cli_reject(cli, "nothing is counted here", NULL, "it takes Linux on x86-64");
        return EXIT_SKIPPED;
    }
    if (session_begin(&session, cli, BY_BENCH, false, false) != EXIT_OK)
        return EXIT_USAGE;
    session_select_plugin_kernels(&session);
    struct counting counting = { .session = &session,
                                 .most_s = isnan(cli->budget) ? 0.0 : cli->budget,
                                 .begun = clock_now() };
    const size_t n = list_forms(&session.selected, forms);
    counting.total = n * session.selected.n;
    for (size_t i = 0; i < n; i++)
        count_form(&counting, &forms[i]);
    progress_clear();
    if (time_is_up(&counting))
        text_print(stderr, "posenc bench: --budget is spent: %zu of %zu were counted\n",
                   counting.done, counting.total);
    int status = session_check_patterns(&session);
    if (status != EXIT_OK) {
        session_abort(&session);
        return status;
    }
    status = session_end(&session, !time_is_up(&counting));
    return status != EXIT_OK ? status : counting.counted > 0 ? EXIT_OK : EXIT_SKIPPED;
}
