/*
 * Chooses the points of a picture of accuracy against speed; see tradeoff.h.
 */
#include "tradeoff.h"

#include <string.h>

/* Whether a is as fast and as right as b, and more so in one of them. */
static bool beats(const struct point *a, const struct point *b)
{
    bool as_right = is_as_right(&a->worst, &b->worst);
    if (is_noisy(a->bench) || is_faster(b->bench, a->bench) || !as_right)
        return false;
    return is_faster(a->bench, b->bench) || !is_as_right(&b->worst, &a->worst);
}

/* What is noisy beats nobody; but where it is as right and all of its interval is ahead, nobody will
 * call the other one unbeaten. */
static bool is_ahead(const struct point *noisy, const struct point *of)
{
    return is_noisy(noisy->bench) && is_as_right(&noisy->worst, &of->worst) &&
           noisy->bench->median < of->bench->median && !rows_meet(noisy->bench, of->bench);
}

static void judge(struct point *points, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool beaten = false, unsettled = is_noisy(points[i].bench);
        for (size_t k = 0; k < n; k++) {
            beaten = beaten || (k != i && beats(&points[k], &points[i]));
            unsettled = unsettled || is_ahead(&points[k], &points[i]);
        }
        points[i].kind = is_noisy(points[i].bench) ? UNSETTLED
                         : beaten                  ? BEATEN
                         : unsettled               ? UNSETTLED
                                                   : UNBEATEN;
    }
}

/* The metric of an axis: the one most points have an error in. */
static const char *common_metric(const struct point *points, size_t n)
{
    static const char *const axes[] = { "ulp", "pair_ulp", "abs" };
    const char *best = NULL;
    size_t most = 0;
    for (size_t m = 0; m < sizeof axes / sizeof *axes; m++) {
        size_t have = 0;
        for (size_t i = 0; i < n; i++)
            have += worst_in(&points[i].worst, axes[m]) != NULL;
        if (have > most) {
            most = have;
            best = axes[m];
        }
    }
    return best;
}

static size_t points_of(const struct results *r, const char *id, struct point *points)
{
    const struct bench_row *rows[RANKED];
    size_t n = rows_of_case(r, id, rows, RANKED), timed = 0, found = 0;
    for (size_t i = 0; i < n; i++) {
        if (*rows[i]->refused)
            continue;
        points[timed].bench = rows[i];
        worst_of_row(r, rows[i], &points[timed++].worst);
    }
    const char *metric = common_metric(points, timed);
    for (size_t i = 0; metric && i < timed; i++) {
        points[found] = points[i];
        points[found].error = worst_in(&points[i].worst, metric);
        found += points[found].error != NULL;
    }
    judge(points, found);
    return found;
}

size_t tradeoff_points(const struct results *r, const char *kernel, struct point points[RANKED])
{
    size_t best = 0;
    for (size_t c = 0; c < r->n_cases; c++) {
        const struct bench_row *row[1];
        struct point here[RANKED];
        if (rows_of_case(r, r->cases[c], row, 1) == 0 || strcmp(row[0]->kernel, kernel) != 0)
            continue;
        size_t n = points_of(r, r->cases[c], here);
        if (n > best) {
            best = n;
            memcpy(points, here, n * sizeof *points);
        }
    }
    return best;
}
