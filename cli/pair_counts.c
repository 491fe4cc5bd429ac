/*
 * Instructions of the rows of posenc pair (see pair.h). They have no noise and explain the times.
 */
#define _POSIX_C_SOURCE 200809L
#include "pair.h"
#include "instructions.h"

#include <math.h>

static const double COUNTS_S = 15.0;

/* Returns whether rows differ in the size of the shape alone, which does not change what is counted. */
static bool same_counts(const struct pair_run *run, const struct pair_row *a,
                        const struct pair_row *b)
{
    const struct problem *p = &run->pairing.cases[a->at_case].problem,
                         *q = &run->pairing.cases[b->at_case].problem;
    return a->name == b->name && p->kernel == q->kernel && p->dtype == q->dtype &&
           (p->freqs.profile == q->freqs.profile || !kernel_has_freqs(p->kernel));
}

/* Counts in both builds. Callers have timed the row before, so that a call of it ends. */
static void count_row(struct pair_run *run, const struct pair_row *row)
{
    const struct pairing_name *name = &run->pairing.names[row->name];
    const struct implementation *implementations[2] = { name->base, name->head };
    const struct problem *p = &run->pairing.cases[row->at_case].problem;
    static const char *const builds[2] = { "base", "head" };
    for (int i = 0; i < 2; i++) {
        struct kernel_instructions count;
        (void)instructions_of_kernel(implementations[i], p->kernel, p->dtype, p->freqs.profile,
                                     &count);
        records_append(&run->work.records,
                       instructions_record(&count, implementations[i]->backend, builds[i]));
    }
}

static bool is_counted(const struct pair_run *run, const struct pair_row *row)
{
    for (size_t i = 0; i < run->n; i++)
        if (run->rows[i].counted && same_counts(run, &run->rows[i], row))
            return true;
    return false;
}

void pair_counts(struct pair_run *run)
{
    const double budget = run->work.cli->budget,
                 deadline = clock_now() + (isnan(budget) ? COUNTS_S : budget);
    size_t n = 0;
    if (!instructions_method())
        return;
    for (size_t i = 0; i < run->n_wanted && outputs_interrupted() == 0; i++) {
        struct pair_row *row = &run->rows[run->wanted[i]];
        if (is_counted(run, row))
            continue;
        if (n++ > 0 && clock_now() > deadline)
            break;
        count_row(run, row);
        row->counted = true;
    }
}
