/*
 * What a comparison says of the code itself: whether that of a kernel is the same in both builds, and
 * where it is not, how many instructions a call takes in each (see compare.h).  Neither has noise: the
 * first decides, the second explains what the clock said.
 */
#define _POSIX_C_SOURCE 200809L
#include "compare.h"
#include "emit_count.h"

#include <string.h>

/* What does not depend on the size of the shape: rows that agree in it have one answer. */
static bool same_kernel(const struct compare *all, const struct compare_row *a,
                        const struct compare_row *b)
{
    const struct problem *p = &all->pairing.cases[a->at_case].problem,
                         *q = &all->pairing.cases[b->at_case].problem;
    return a->name == b->name && p->kernel == q->kernel;
}

static bool same_counts(const struct compare *all, const struct compare_row *a,
                        const struct compare_row *b)
{
    const struct problem *p = &all->pairing.cases[a->at_case].problem,
                         *q = &all->pairing.cases[b->at_case].problem;
    return same_kernel(all, a, b) && p->dtype == q->dtype &&
           (p->freqs.profile == q->freqs.profile || !kernel_has_plan(p->kernel));
}

static void find_digests(const struct compare *all, struct compare_row *row)
{
    const struct pairing_name *name = &all->pairing.names[row->name];
    const enum posenc_kernel kernel = all->pairing.cases[row->at_case].problem.kernel;
    char why[CODE_WHY];
    for (const struct compare_row *before = all->rows; before < row; before++) {
        if (before->kind == PAIRING_BOTH && same_kernel(all, before, row)) {
            memcpy(row->code, before->code, sizeof row->code);
            return;
        }
    }
    (void)code_digest(name->base, kernel, all->pairing.base->path, row->code[0], why);
    (void)code_digest(name->head, kernel, all->pairing.head->path, row->code[1], why);
}

void compare_code(struct compare *all)
{
    for (size_t i = 0; i < all->n; i++) {
        struct compare_row *row = &all->rows[i];
        if (row->kind != PAIRING_BOTH)
            continue;
        find_digests(all, row);
        row->same_code = row->code[0][0] && strcmp(row->code[0], row->code[1]) == 0;
    }
}

/* Of both builds; whatever a call does, launches have seen it end. */
static void count_row(struct compare *all, const struct compare_row *row)
{
    const struct pairing_name *name = &all->pairing.names[row->name];
    const struct subject *subjects[2] = { name->base, name->head };
    const struct problem *p = &all->pairing.cases[row->at_case].problem;
    static const char *const builds[2] = { "base", "head" };
    for (int i = 0; i < 2; i++) {
        struct kernel_counts counts;
        (void)count_kernel(subjects[i], p->kernel, p->dtype, p->freqs.profile, &counts);
        records_append(&all->work.records,
                       emit_count(&counts, subjects[i]->backend, builds[i], row->code[i]));
    }
}

static bool is_counted(const struct compare *all, const struct compare_row *row)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->rows[i].counted && same_counts(all, &all->rows[i], row))
            return true;
    return false;
}

static bool has_verdict(const struct compare_row *row)
{
    return row->verdict.kind == VERDICT_SLOWER || row->verdict.kind == VERDICT_FASTER;
}

void compare_counts(struct compare *all, bool (*stop)(void *user), void *user)
{
    size_t n = 0;
    if (!counts_method())
        return;
    for (int flagged = 1; flagged >= 0; flagged--) {
        for (size_t i = 0; i < all->n && !(n > 0 && stop(user)); i++) {
            struct compare_row *row = &all->rows[i];
            if (row->kind != PAIRING_BOTH || row->outcome != BENCH_TIMED || row->same_code ||
                row->launches == 0 || has_verdict(row) != flagged || is_counted(all, row))
                continue;
            count_row(all, row);
            row->counted = true;
            n++;
        }
    }
}
