/* Computes the noise threshold from rounds of identical code (see threshold.h). */
#include "threshold.h"
#include "stats.h"

#include <math.h>
#include <stdlib.h>

enum { PROCESSES = THRESHOLD_PROCESSES, COMPARISON = PROCESSES * THRESHOLD_ROUNDS };

/* Rounds in which both ratios are finite. */
struct complete_rounds {
    size_t n;
    double *head, *control, *list; /* list: working memory */
};

/* Returns a quantile of n values, none of which is NaN. Sorts them. */
static double quantile(double *values, size_t n, double share)
{
    stats_sort(values, n);
    return values[(size_t)ceil(share * (double)n) - 1];
}

/* Returns the difference that a comparison of the n rounds from `first` on detects, by the rule in
 * reports/posenc/verdict.py; NaN: too few rounds. */
static double detectable_difference(const struct complete_rounds *t, size_t first, size_t n)
{
    /* |t| of Student's distribution with 2 PROCESSES - 1 = 5 degrees is below it with a probability of 99 %. */
    static const double student = 4.032142983555227, y_units = 1.5, z_units = 2.0;
    const size_t each = n / PROCESSES, degrees = 2 * PROCESSES - 1;
    const double *head = t->head + first, *control = t->control + first;
    double y[PROCESSES], z[PROCESSES], between[THRESHOLD_ROUNDS], mean = 0.0, sum = 0.0;
    if (each == 0)
        return (double)NAN;
    for (size_t p = 0; p < PROCESSES; p++) {
        for (size_t i = 0; i < each; i++)
            between[i] = head[p * each + i] - control[p * each + i];
        y[p] = 0.5 * (stats_median(head + p * each, each) + stats_median(between, each));
        z[p] = stats_median(control + p * each, each);
        mean += y[p] / PROCESSES;
    }
    double noise = fmax(log1p(0.01), 2.0 * fabs(stats_median(z, PROCESSES)));
    for (size_t p = 0; p < PROCESSES; p++) {
        noise = fmax(noise, fabs(z[p]));
        sum += (y[p] - mean) * (y[p] - mean) / y_units + z[p] * z[p] / z_units;
    }
    const double half = student * sqrt(y_units * sum / (double)degrees / PROCESSES);
    const struct stats_interval all = stats_summarise(head, PROCESSES * each).interval;
    const double side = fmax(fmax(mean + half, all.high), -fmin(mean - half, all.low));
    return expm1(noise + fmax(side, 0.0));
}

static void summarise_complete(const struct complete_rounds *t,
                               struct threshold_summary *summary)
{
    const size_t n = t->n, each = n < COMPARISON ? n : THRESHOLD_ROUNDS;
    summary->rounds = n;
    for (size_t i = 0; i < n; i++)
        t->list[i] = fabs(t->head[i]);
    summary->median = quantile(t->list, n, 0.5);
    summary->largest = t->list[n - 1];
    for (size_t i = 0; i < n / each; i++)
        t->list[i] = fabs(stats_median(t->head + i * each, each));
    summary->typical_process = stats_median(t->list, n / each);
    summary->comparisons = n / COMPARISON;
    for (size_t i = 0; i < summary->comparisons; i++)
        t->list[i] = detectable_difference(t, i * COMPARISON, COMPARISON);
    summary->detectable = summary->comparisons > 0
                              ? quantile(t->list, summary->comparisons, 0.99)
                              : detectable_difference(t, 0, n);
}

struct threshold_summary threshold_summarise(const double *head, const double *control,
                                             size_t n)
{
    const double none = (double)NAN;
    struct threshold_summary summary = { 0, 0, none, none, none, none };
    double *memory = malloc(3 * (n + 1) * sizeof *memory);
    struct complete_rounds t = { 0, memory, memory + n, memory + 2 * n };
    for (size_t i = 0; memory && i < n; i++)
        if (isfinite(head[i]) && isfinite(control[i])) {
            t.head[t.n] = head[i];
            t.control[t.n++] = control[i];
        }
    if (t.n > 0)
        summarise_complete(&t, &summary);
    free(memory);
    return summary;
}
