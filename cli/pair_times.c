/*
 * Times the rows of posenc pair in this process (see pair.h).
 */
#define _DEFAULT_SOURCE
#include "pair.h"
#include "emit.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST_ROUNDS = 5, QUICK_ROUNDS = 31, FULL_ROUNDS = 61, DISPLACED_BYTES = 16384 };
static const double USUAL_S = 12.0;

/* The rows of one case. */
struct group {
    struct pair_run *run;
    const size_t *rows;
    size_t n;
};

static struct pair_row *row_of(const struct group *group, size_t pair)
{
    return &group->run->rows[group->rows[pair]];
}

static void on_doing(void *user, size_t pair, enum pair_side who)
{
    const struct group *group = user;
    json_t *record = pair_record_running(group->run, row_of(group, pair),
                                         who < PAIR_SIDES ? pair_side_name[who] : "rounds");
    records_write(&group->run->work.records, record); /* for readers of a crash alone */
    json_decref(record);
}

static void on_result(void *user, const struct pair_result *result)
{
    const struct group *group = user;
    struct pair_run *run = group->run;
    if (result->outcome != BENCH_TIMED && result->outcome != BENCH_LACKS_IT &&
        result->who != PAIR_BASE)
        run->broken++;
    records_append(&run->work.records,
                   pair_record_samples(run, row_of(group, result->pair), result));
}

static bool stop(void *user)
{
    (void)user;
    return outputs_interrupted() != 0;
}

static int time_group(struct group *group, double share_s)
{
    struct pair_run *run = group->run;
    const struct pairing *p = &run->pairing;
    const size_t c = row_of(group, 0)->at_case;
    struct bench_pair *pairs = calloc(group->n, sizeof *pairs);
    char error[256] = "";
    for (size_t i = 0; pairs && i < group->n; i++) {
        const struct pairing_name *name = &p->names[row_of(group, i)->name];
        pairs[i] = (struct bench_pair){ { name->base, name->head, name->again } };
    }
    const struct pair_options options = {
        .seed = mix64(run->seed, c),
        .scalar = { library_implementation(p->base, "scalar"),
                    library_implementation(p->head, "scalar") },
        .rows_alone = run->work.cli->rows_alone,
        .share_s = share_s,
        .least_rounds = LEAST_ROUNDS,
        .most_rounds = run->work.cli->full ? FULL_ROUNDS : QUICK_ROUNDS,
        .doing = on_doing,
        .sink = on_result,
        .stop = stop,
        .user = group
    };
    const bool done = pairs && pairs_run(&p->cases[c], pairs, group->n, &options, error) == 0;
    free(pairs);
    return done ? EXIT_FINE
                : cli_refuse(run->work.cli, "timing", NULL, "%s", pairs ? error : "no memory");
}

static int time_all(struct pair_run *run)
{
    const double budget = run->work.cli->budget,
                 deadline = clock_now() + (isnan(budget) ? USUAL_S : budget);
    int status = EXIT_FINE;
    for (size_t at = 0; at < run->n_wanted && status == EXIT_FINE && !stop(NULL);) {
        struct group group = { run, run->wanted + at, 0 };
        while (at + group.n < run->n_wanted &&
               row_of(&group, group.n)->at_case == row_of(&group, 0)->at_case)
            group.n++;
        const double share = (double)group.n / (double)(run->n_wanted - at);
        status = time_group(&group, fmax(deadline - clock_now(), 0.0) * share);
        at += group.n;
    }
    return status;
}

/* Displaces stack and heap by the seed. The cost of a layout is then part of the noise between processes, and no
 * difference between two builds. Address-space randomisation alone moves whole pages. */
static int time_displaced(struct pair_run *run, unsigned bytes)
{
    volatile char *displaced = __builtin_alloca(bytes + 1);
    displaced[bytes] = 0;
    char *heap = malloc((size_t)mix64(run->seed, bytes) % 65536 + 1);
    const int status = time_all(run);
    free(heap);
    return status;
}

int pair_times(struct pair_run *run)
{
    return time_displaced(run, (unsigned)(mix64(run->seed, 0) % DISPLACED_BYTES / 16 * 16));
}
