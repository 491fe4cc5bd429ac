/*
 * posenc bench --instructions: counts the instructions that a call of each kernel takes.
 */
#define _POSIX_C_SOURCE 200809L
#include "instructions.h"
#include "worker.h"
#include "emit.h"
#include "plugins.h"
#include "base/clock.h"
#include "base/text/text.h"
#include "work.h"

#include <math.h>
#include <stdio.h>

/* ---- Records ---- */

enum { COUNT_ID = 96 };

/* Writes an id such as "rope_half/f32/given/count". */
static void write_id(const struct problem *problem, char id[COUNT_ID])
{
    snprintf(id, COUNT_ID, "%s/%s/%s/count", posenc_kernel_name(problem->kernel),
             dtype_names[problem->dtype], emit_profile(problem));
}

static void set_integer(json_t *record, const char *name, uint64_t value)
{
    json_object_set_new(record, name, json_integer((json_int_t)value));
}

json_t *instructions_record(const struct kernel_instructions *count,
                            const struct posenc_backend *backend, const char *build)
{
    char id[COUNT_ID];
    write_id(&count->problem, id);
    json_t *record = emit_result("count", count->problem.kernel, count->problem.dtype,
                                 emit_profile(&count->problem), id, backend);
    if (!record)
        return NULL;
    if (build)
        json_object_set_new(record, "build", json_string(build));
    if (backend->lanes)
        json_object_set_new(record, "vector_width", json_integer(plugins_lanes(backend)));
    if (!count->call[0].by || !count->call[1].by) {
        json_object_set_new(record, "rejected", json_string(count->why));
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
    struct work *work;
    size_t done, total, counted;
    double most_s, begun; /* most_s: 0 is no limit */
};

static bool time_is_up(const struct counting *counting)
{
    return counting->most_s > 0.0 && clock_now() - counting->begun > counting->most_s;
}

static void show_progress(const struct counting *counting, const char *id, const char *backend)
{
    char where[160];
    snprintf(where, sizeof where, "%s %s", backend, id);
    progress_draw(&(struct progress){ .what = "bench",
                                      .unit = "kernels on backends",
                                      .done = (double)counting->done,
                                      .total = counting->total,
                                      .most_s = counting->most_s,
                                      .notes = "",
                                      .where = where });
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
    records_append(&counting->work->records, instructions_record(&count, backend, NULL));
}

/* Counts a kernel in one form on every backend that has it. */
static void count_form(struct counting *counting, const struct problem *form)
{
    struct work *work = counting->work;
    char id[COUNT_ID];
    write_id(form, id);
    if (!work_wants(work, id))
        return;
    for (size_t i = 0; i < work->selected.n && !time_is_up(counting); i++) {
        const struct posenc_backend *backend = work->selected.backends[i];
        show_progress(counting, id, backend->name);
        counting->done++;
        if (!posenc_backend_obstacle(backend) && posenc_provides(backend, form->kernel) &&
            (backend->f16_bf16 || form->dtype == POSENC_F32))
            count_one(counting, backend, form);
        work_end_if_interrupted(work);
    }
}

/* Lists each selected kernel in each selected dtype and in the numerics modes in which it is counted.  Returns
 * the number of these forms. */
static size_t list_forms(const struct selection *selected, struct problem forms[MOST_FORMS])
{
    size_t n = 0;
    for (int dtype = 0; dtype < N_DTYPES; dtype++)
        for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
            enum posenc_profile profiles[2];
            const size_t n_profiles = instructions_profiles((enum posenc_kernel)k, profiles);
            if (!times_dtype(selected, NULL, (enum posenc_dtype)dtype) ||
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
    struct work work = { 0 };
    if (cli->model.n > 0 || cli->problem || cli->tune || cli->shard)
        return cli_refuse(cli, "--instructions", NULL,
                          "expected without --model, --config, --problem, --tune and --shard");
    if (!instructions_method()) {
        cli_refuse(cli, "nothing is counted here", NULL, "it takes Linux on x86-64");
        return EXIT_NOTHING;
    }
    if (work_begin(&work, cli, BY_BENCH, false, false) != EXIT_FINE)
        return EXIT_USAGE;
    work_keep_to_plugins(&work);
    struct counting counting = { .work = &work,
                                 .most_s = isnan(cli->budget) ? 0.0 : cli->budget,
                                 .begun = clock_now() };
    const size_t n = list_forms(&work.selected, forms);
    counting.total = n * work.selected.n;
    for (size_t i = 0; i < n; i++)
        count_form(&counting, &forms[i]);
    progress_clear();
    if (time_is_up(&counting))
        text_print(stderr, "posenc bench: --budget is spent: %zu of %zu were counted\n",
                   counting.done, counting.total);
    int status = work_check_patterns(&work);
    if (status != EXIT_FINE) {
        work_give_up(&work);
        return status;
    }
    status = work_end(&work, !time_is_up(&counting));
    return status != EXIT_FINE ? status : counting.counted > 0 ? EXIT_FINE : EXIT_NOTHING;
}
