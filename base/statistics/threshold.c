/* Computes the noise threshold from rounds of identical code (see threshold.h). */
#include "threshold.h"
#include "stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { COMPARISON = THRESHOLD_PROCESSES * THRESHOLD_ROUNDS };
static const double detected_share = 0.99, level = 0.99;

/* Returns a quantile of the values, none of which is NaN. Sorts them. */
static double quantile(double *values, size_t n, double share)
{
    if (n == 0)
        return (double)NAN;
    stats_sort(values, n);
    size_t rank = (size_t)ceil(share * (double)n);
    return values[rank > 0 ? rank - 1 : 0];
}

/* Processes of a comparison, with y and z of the rule in reports/posenc/verdict.py. */
struct processes {
    double y[THRESHOLD_PROCESSES], z[THRESHOLD_PROCESSES];
};

static bool read_processes(const double *head, const double *control, size_t each,
                           struct processes *p)
{
    double *between = malloc(each * sizeof *between);
    for (size_t l = 0; between && l < THRESHOLD_PROCESSES; l++, head += each, control += each) {
        for (size_t i = 0; i < each; i++)
            between[i] = head[i] - control[i];
        p->y[l] = 0.5 * (stats_median(head, each) + stats_median(between, each));
        p->z[l] = stats_median(control, each);
    }
    free(between);
    return between != NULL;
}

/* Returns the half-width of Student's interval of the mean of y. */
static double half_width(const struct processes *p, double mean)
{
    static const double y_units = 1.5, z_units = 2.0;
    double sum = 0.0;
    for (size_t l = 0; l < THRESHOLD_PROCESSES; l++)
        sum += (p->y[l] - mean) * (p->y[l] - mean) / y_units + p->z[l] * p->z[l] / z_units;
    const int degrees = 2 * THRESHOLD_PROCESSES - 1;
    return stats_student(level, degrees) * sqrt(y_units * sum / degrees / THRESHOLD_PROCESSES);
}

/* Returns the logarithm of the noise threshold. */
static double noise_of(const struct processes *p)
{
    double largest = fmax(log1p(0.01), 2.0 * fabs(stats_median(p->z, THRESHOLD_PROCESSES)));
    for (size_t l = 0; l < THRESHOLD_PROCESSES; l++)
        largest = fmax(largest, fabs(p->z[l]));
    return largest;
}

/* Returns the difference that a comparison of n rounds detects; NaN: too few rounds. */
static double detectable_difference(const double *head, const double *control, size_t n)
{
    const size_t each = n / THRESHOLD_PROCESSES;
    struct processes p;
    double mean = 0.0;
    if (each == 0 || !read_processes(head, control, each, &p))
        return (double)NAN;
    for (size_t l = 0; l < THRESHOLD_PROCESSES; l++)
        mean += p.y[l] / THRESHOLD_PROCESSES;
    const double half = half_width(&p, mean);
    const struct stats_interval all = stats_interval(head, THRESHOLD_PROCESSES * each, level);
    const double side = fmax(fmax(mean + half, all.high), -fmin(mean - half, all.low));
    return expm1(noise_of(&p) + fmax(side, 0.0));
}

/* Rounds in which both ratios are finite. */
struct complete_rounds {
    size_t n;
    double *head, *control, *list; /* list: working memory for sorting */
};

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
        t->list[i] = detectable_difference(t->head + i * COMPARISON,
                                           t->control + i * COMPARISON, COMPARISON);
    summary->detectable = summary->comparisons > 0
                              ? quantile(t->list, summary->comparisons, detected_share)
                              : detectable_difference(t->head, t->control, n);
}

struct threshold_summary threshold_summarise(const double *head, const double *control,
                                             size_t n)
{
    const double none = (double)NAN;
    struct threshold_summary summary = { 0, 0, none, none, none, none };
    struct complete_rounds t = { 0, malloc((n + 1) * sizeof *t.head),
                                 malloc((n + 1) * sizeof *t.control),
                                 malloc((n + 1) * sizeof *t.list) };
    for (size_t i = 0; t.head && t.control && t.list && i < n; i++)
        if (isfinite(head[i]) && isfinite(control[i])) {
            t.head[t.n] = head[i];
            t.control[t.n++] = control[i];
        }
    if (t.n > 0)
        summarise_complete(&t, &summary);
    free(t.head);
    free(t.control);
    free(t.list);
    return summary;
}
