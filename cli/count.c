/*
 * posenc count: how many instructions does a call of each kernel take?
 */
#define _POSIX_C_SOURCE 200809L
#include "bench/counts.h"
#include "apart.h"
#include "emit_count.h"
#include "base/machine/noise.h"
#include "base/text/text.h"
#include "work.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct counting {
    struct work *work;
    size_t done, total, counted;
    double most_s, begun; /* 0: as long as it takes */
};

static bool is_selected(const struct work *work, enum posenc_kernel kernel)
{
    return !work->selected.any_kernel || work->selected.kernels[kernel];
}

static bool time_is_up(const struct counting *counting)
{
    return counting->most_s > 0.0 &&
           noise_watch_start().wall_s - counting->begun > counting->most_s;
}

static void show_progress(struct counting *counting, const char *id, const char *backend)
{
    char where[160];
    snprintf(where, sizeof where, "%s %s", backend, id);
    const struct progress now = { .what = "count",
                                  .unit = "kernels on backends",
                                  .done = (double)counting->done,
                                  .total = counting->total,
                                  .most_s = counting->most_s,
                                  .notes = "",
                                  .where = where };
    progress(&now);
}

static void count_one(struct counting *counting, const struct posenc_backend *backend,
                      enum posenc_kernel kernel, enum posenc_dtype dtype,
                      enum posenc_profile profile)
{
    const struct subject subject = subject_of(backend);
    struct kernel_counts counts;
    apart_enter(posenc_kernel_name(kernel));
    const bool counted = count_kernel(&subject, kernel, dtype, profile, &counts);
    apart_leave();
    counting->counted += counted;
    records_append(&counting->work->records, emit_count(&counts, backend, NULL));
}

/* A kernel in one form on every backend that has it. */
static void count_form(struct counting *counting, enum posenc_kernel kernel,
                       enum posenc_dtype dtype, enum posenc_profile profile)
{
    struct work *work = counting->work;
    struct problem problem = problem_default(kernel);
    char id[96];
    problem.dtype = dtype;
    problem.freqs.profile = profile;
    count_id(&problem, id, sizeof id);
    if (!work_wants(work, id))
        return;
    for (size_t i = 0; i < work->selected.n && !time_is_up(counting); i++) {
        const struct posenc_backend *backend = work->selected.backends[i];
        show_progress(counting, id, backend->name);
        counting->done++;
        if (!posenc_backend_obstacle(backend) && posenc_provides(backend, kernel) &&
            (backend->f16_bf16 || dtype == POSENC_F32))
            count_one(counting, backend, kernel, dtype, profile);
        work_end_if_interrupted(work);
    }
}

/* Those of one type of storage; or only adds up how many there are. */
static void count_stored_as(struct counting *counting, enum posenc_dtype dtype,
                            bool only_add_up)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const enum posenc_kernel kernel = (enum posenc_kernel)k;
        enum posenc_profile profiles[2];
        const size_t n =
            is_selected(counting->work, kernel) ? count_profiles(kernel, profiles) : 0;
        for (size_t i = 0; i < n; i++)
            if (only_add_up)
                counting->total += counting->work->selected.n;
            else
                count_form(counting, kernel, dtype, profiles[i]);
    }
}

static void count_everything(struct counting *counting)
{
    for (int only_add_up = 1; only_add_up >= 0; only_add_up--)
        for (int dtype = 0; dtype < N_DTYPES; dtype++)
            if (times_dtype(&counting->work->selected, NULL, (enum posenc_dtype)dtype))
                count_stored_as(counting, (enum posenc_dtype)dtype, only_add_up);
}

int command_count(struct cli *cli)
{
    struct work work = { 0 };
    if (cli->n_operands > 0)
        return cli_refuse(cli, "unexpected argument", cli->operands[0],
                          "expected options only");
    if (!counts_method()) {
        cli_refuse(cli, "nothing is counted here", NULL,
                   "it takes Linux on x86-64, or the plug-in of qemu (./run count-emulated)");
        return EXIT_NOTHING;
    }
    if (work_begin(&work, cli, BY_BENCH, false, false) != EXIT_FINE)
        return EXIT_USAGE;
    work_keep_to_plugins(&work);
    struct counting counting = { .work = &work,
                                 .most_s = isnan(cli->budget) ? 0.0 : cli->budget,
                                 .begun = noise_watch_start().wall_s };
    count_everything(&counting);
    progress_clear();
    if (time_is_up(&counting))
        text_print(stderr, "posenc count: --budget is spent: %zu of %zu were counted\n",
                   counting.done, counting.total);
    int status = work_check_patterns(&work);
    if (status != EXIT_FINE) {
        work_give_up(&work);
        return status;
    }
    status = work_end(&work, !time_is_up(&counting));
    return status != EXIT_FINE ? status : counting.counted > 0 ? EXIT_FINE : EXIT_NOTHING;
}
