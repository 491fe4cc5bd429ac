/*
 * posenc bench --instructions: counts the instructions that a call of each kernel takes, on each backend. A count is a
 * number for each element, and one for the call besides (bench/instructions.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "bench/instructions.h"
#include "base/clock.h"
#include "base/text/text.h"
#include "conformance/engine/judge.h"
#include "plugins.h"
#include "session.h"
#include "worker.h"

#include <math.h>
#include <stdio.h>

enum { COUNT_ID = 96 };

/* A form is a kernel with a dtype and one of at most two numerics modes: rope_table in f16 and mode exact. */
enum { MOST_FORMS = 2 * POSENC_KERNEL_COUNT * N_DTYPES };

/* Draws the progress, counted in pairs of a form and a backend, provided or not. */
static void show_progress(const struct problem *form, const struct posenc_backend *backend,
                          size_t done, size_t total, double most_s)
{
    char id[COUNT_ID], case_id[160];
    problem_id(form, "count", id, sizeof id);
    snprintf(case_id, sizeof case_id, "%s %s", backend->name, id);
    progress_draw(&(struct progress){ .command = "bench",
                                      .unit = "kernels on backends",
                                      .done = (double)done,
                                      .total = total,
                                      .most_s = most_s,
                                      .case_id = case_id });
}

/* Counts a form on a backend, unless it is not provided. Returns true if it was counted. */
static bool count_form(struct session *session, const struct problem *form,
                       const struct posenc_backend *backend)
{
    const struct implementation implementation = implementation_of(backend);
    struct kernel_instructions count;
    if (posenc_backend_unavailable_reason(backend) ||
        !posenc_backend_provides(backend, form->kernel) ||
        !(backend->f16_bf16 || form->dtype == POSENC_DTYPE_F32))
        return false;
    worker_enter_kernel(posenc_kernel_name(form->kernel));
    const bool counted = instructions_of_kernel(&implementation, form->kernel, form->dtype,
                                                form->freqs.numerics, &count);
    worker_leave_kernel();
    records_append(&session->records, emit_count(&count, backend, NULL));
    return counted;
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
    const double begun = clock_now(), most_s = isnan(cli->time_limit) ? 0.0 : cli->time_limit;
    const size_t n_backends = session.selected.n,
                 total = list_forms(&session, forms) * n_backends;
    size_t done = 0, counted = 0;
    for (; done < total && (most_s <= 0.0 || clock_now() - begun <= most_s); done++) {
        const struct problem *form = &forms[done / n_backends];
        const struct posenc_backend *backend = session.selected.backends[done % n_backends];
        show_progress(form, backend, done, total, most_s);
        counted += count_form(&session, form, backend);
        session_exit_if_interrupted(&session);
    }
    progress_clear();
    if (done < total)
        text_print(stderr,
                   "posenc bench: --time-limit reached after %zu of %zu kernels on backends; "
                   "%zu counted\n",
                   done, total, counted);
    session_check_patterns(&session);
    session_end(&session, done == total);
    return counted > 0 ? EXIT_OK : EXIT_SKIPPED;
}
