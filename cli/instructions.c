/* posenc bench --instructions: counts the instructions that a call of each kernel takes. */
#define _POSIX_C_SOURCE 200809L
#include "bench/instructions.h"
#include "base/clock.h"
#include "base/text/text.h"
#include "conformance/engine/judge.h"
#include "emit.h"
#include "plugins.h"
#include "session.h"
#include "worker.h"

#include <math.h>
#include <stdio.h>

enum { COUNT_ID = 96 };

/* A form is a kernel with a dtype and one of at most two numerics modes. */
enum { MOST_FORMS = 2 * POSENC_KERNEL_COUNT * N_DTYPES };

struct counting {
    struct session *session;
    size_t done, total; /* pairs of a form and a backend, provided or not */
    size_t counted;
    bool is_cut;   /* the time was up before all were done */
    double most_s; /* 0: no limit */
    double begun;  /* wall clock at the start */
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
                                                form->freqs.numerics, &count);
    worker_leave_kernel();
    records_append(&counting->session->records, emit_count(&count, backend, NULL));
}

/* Counts a form on every backend that provides it. */
static void count_form(struct counting *counting, const struct problem *form)
{
    struct session *session = counting->session;
    char id[COUNT_ID];
    problem_id(form, "count", id, sizeof id);
    for (size_t i = 0; i < session->selected.n; i++) {
        counting->is_cut = counting->is_cut || time_is_up(counting);
        if (counting->is_cut)
            return;
        const struct posenc_backend *backend = session->selected.backends[i];
        show_progress(counting, id, backend->name);
        counting->done++;
        if (!posenc_backend_unavailable_reason(backend) &&
            posenc_backend_provides(backend, form->kernel) &&
            (backend->f16_bf16 || form->dtype == POSENC_DTYPE_F32))
            count_one(counting, backend, form);
        session_exit_if_interrupted(session);
    }
}

/* Lists the forms of the selected kernels, in each selected dtype and in each numerics mode that is counted. Omits
 * forms that --case excludes. Returns the number of forms. */
static size_t list_forms(struct session *session, struct problem forms[MOST_FORMS])
{
    const struct selection *selected = &session->selected;
    char id[COUNT_ID];
    size_t n = 0;
    for (int dtype = 0; dtype < N_DTYPES; dtype++)
        for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
            enum posenc_numerics modes[2];
            const size_t n_modes = instructions_numerics((enum posenc_kernel)k, modes);
            if (!selection_times_dtype(selected, NULL, (enum posenc_dtype)dtype) ||
                (selected->names_kernels && !selected->kernels[k]))
                continue;
            for (size_t i = 0; i < n_modes; i++) {
                forms[n] = problem_default((enum posenc_kernel)k);
                forms[n].dtype = (enum posenc_dtype)dtype;
                forms[n].freqs.numerics = modes[i];
                problem_id(&forms[n], "count", id, sizeof id);
                n += session_wants_case(session, id);
            }
        }
    return n;
}

int bench_instructions(struct cli *cli)
{
    static struct problem forms[MOST_FORMS];
    struct session session = { 0 };
    if (cli->model.n > 0 || cli->problem || cli->tune || cli->shard)
        cli_reject("--instructions", NULL,
                   "expected without --model, --config, --problem, --tune and --shard");
    if (!instructions_method()) {
        cli_complain("--instructions", NULL, "expected Linux on x86-64");
        return EXIT_SKIPPED;
    }
    session_begin(&session, cli, false);
    session_select_plugin_kernels(&session);
    struct counting counting = { .session = &session,
                                 .most_s = isnan(cli->time_limit) ? 0.0 : cli->time_limit,
                                 .begun = clock_now() };
    const size_t n = list_forms(&session, forms);
    counting.total = n * session.selected.n;
    for (size_t i = 0; i < n; i++)
        count_form(&counting, &forms[i]);
    progress_clear();
    if (counting.is_cut)
        text_print(stderr,
                   "posenc bench: --time-limit reached after %zu of %zu kernels on backends; "
                   "%zu counted\n",
                   counting.done, counting.total, counting.counted);
    session_check_patterns(&session);
    session_end(&session, !counting.is_cut);
    return counting.counted > 0 ? EXIT_OK : EXIT_SKIPPED;
}
