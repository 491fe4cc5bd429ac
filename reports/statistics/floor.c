/*
 * Takes rounds of identical code as comparisons; see floor.h.
 */
#include "floor.h"
#include "stats.h"
#include "verdict.h"

#include <math.h>
#include <stdlib.h>

enum { COMPARISON = FLOOR_LAUNCHES * FLOOR_ROUNDS };
static const double found = 0.99;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value that a share of them does not exceed; NaN sorts nowhere and is not among them. */
static double quantile(double *values, size_t n, double share)
{
    if (n == 0)
        return (double)NAN;
    qsort(values, n, sizeof *values, by_value);
    size_t rank = (size_t)ceil(share * (double)n);
    return values[rank > 0 ? rank - 1 : 0];
}

/* What one comparison of n rounds tells apart; NaN where they are too few for a verdict. */
static double apart_in(const double *head, const double *null, size_t n)
{
    const size_t each = n / FLOOR_LAUNCHES;
    const size_t rounds[FLOOR_LAUNCHES] = { each, each, each };
    const double *heads[FLOOR_LAUNCHES], *nulls[FLOOR_LAUNCHES];
    for (size_t i = 0; i < FLOOR_LAUNCHES; i++) {
        heads[i] = head + i * each;
        nulls[i] = null + i * each;
    }
    if (each == 0)
        return (double)NAN;
    const struct verdict_pair pair = {
        .launches = FLOOR_LAUNCHES, .rounds = rounds, .head = heads, .null = nulls
    };
    struct verdict v = verdict_of(&pair);
    return (1.0 + v.floor) * fmax(fmax(1.0 / v.lo, v.hi), 1.0) - 1.0;
}

/* Rounds that were taken, in a row. */
struct taken {
    size_t n;
    double *head, *null, *list; /* list: for what is sorted */
};

static void sum_up(const struct taken *t, struct floor_summary *floor)
{
    const size_t n = t->n, launch = n < COMPARISON ? n : FLOOR_ROUNDS;
    floor->rounds = n;
    for (size_t i = 0; i < n; i++)
        t->list[i] = fabs(t->head[i]);
    floor->median = quantile(t->list, n, 0.5);
    floor->largest = t->list[n - 1];
    for (size_t i = 0; i < n / launch; i++)
        t->list[i] = fabs(stats_median(t->head + i * launch, launch));
    floor->launch = stats_median(t->list, n / launch);
    floor->comparisons = n / COMPARISON;
    for (size_t i = 0; i < floor->comparisons; i++)
        t->list[i] = apart_in(t->head + i * COMPARISON, t->null + i * COMPARISON, COMPARISON);
    floor->apart = floor->comparisons > 0 ? quantile(t->list, floor->comparisons, found)
                                          : apart_in(t->head, t->null, n);
}

struct floor_summary floor_summarise(const double *head, const double *null, size_t n)
{
    const double none = (double)NAN;
    struct floor_summary floor = { 0, 0, none, none, none, none };
    struct taken t = { 0, malloc((n + 1) * sizeof *t.head), malloc((n + 1) * sizeof *t.null),
                       malloc((n + 1) * sizeof *t.list) };
    for (size_t i = 0; t.head && t.null && t.list && i < n; i++)
        if (isfinite(head[i]) && isfinite(null[i])) {
            t.head[t.n] = head[i];
            t.null[t.n++] = null[i];
        }
    if (t.n > 0)
        sum_up(&t, &floor);
    free(t.head);
    free(t.null);
    free(t.list);
    return floor;
}
