/* Computes the noise threshold from rounds of identical code, taken as comparisons; see floor.h. */
#include "floor.h"
#include "stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { COMPARISON = FLOOR_PROCESSES * FLOOR_ROUNDS };
static const double detected_share = 0.99, level = 0.99;

/* Returns the value that a share of the values does not exceed. None of them may be NaN. */
static double quantile(double *values, size_t n, double share)
{
    if (n == 0)
        return (double)NAN;
    stats_sort(values, n);
    size_t rank = (size_t)ceil(share * (double)n);
    return values[rank > 0 ? rank - 1 : 0];
}

/* Processes of a comparison: y and z of the rule in reports/posenc/verdict.py. */
struct processes {
    double y[FLOOR_PROCESSES], z[FLOOR_PROCESSES];
};

static bool read_processes(const double *head, const double *null, size_t each,
                           struct processes *p)
{
    double *between = malloc(each * sizeof *between);
    for (size_t l = 0; between && l < FLOOR_PROCESSES; l++, head += each, null += each) {
        for (size_t i = 0; i < each; i++)
            between[i] = head[i] - null[i];
        p->y[l] = 0.5 * (stats_median(head, each) + stats_median(between, each));
        p->z[l] = stats_median(null, each);
    }
    free(between);
    return between != NULL;
}

/* Returns half of Student's interval of the mean of y. */
static double half_width(const struct processes *p, double mean)
{
    static const double y_units = 1.5, z_units = 2.0;
    double sum = 0.0;
    for (size_t l = 0; l < FLOOR_PROCESSES; l++)
        sum += (p->y[l] - mean) * (p->y[l] - mean) / y_units + p->z[l] * p->z[l] / z_units;
    const int degrees = 2 * FLOOR_PROCESSES - 1;
    return stats_student(level, degrees) * sqrt(y_units * sum / degrees / FLOOR_PROCESSES);
}

/* Returns the logarithm of the noise threshold. */
static double noise_of(const struct processes *p)
{
    double largest = fmax(log1p(0.01), 2.0 * fabs(stats_median(p->z, FLOOR_PROCESSES)));
    for (size_t l = 0; l < FLOOR_PROCESSES; l++)
        largest = fmax(largest, fabs(p->z[l]));
    return largest;
}

/* Returns the difference that one comparison of n rounds detects; NaN: too few for a verdict. */
static double detectable_in(const double *head, const double *null, size_t n)
{
    const size_t each = n / FLOOR_PROCESSES;
    struct processes p;
    double mean = 0.0;
    if (each == 0 || !read_processes(head, null, each, &p))
        return (double)NAN;
    for (size_t l = 0; l < FLOOR_PROCESSES; l++)
        mean += p.y[l] / FLOOR_PROCESSES;
    const double half = half_width(&p, mean);
    const struct stats_interval all = stats_interval(head, FLOOR_PROCESSES * each, level);
    const double side = fmax(fmax(mean + half, all.high), -fmin(mean - half, all.low));
    return expm1(noise_of(&p) + fmax(side, 0.0));
}

/* Rounds in which both samples were taken. */
struct taken {
    size_t n;
    double *head, *null, *list; /* list: working memory for sorting */
};

static void summarise_taken(const struct taken *t, struct floor_summary *floor)
{
    const size_t n = t->n, process = n < COMPARISON ? n : FLOOR_ROUNDS;
    floor->rounds = n;
    for (size_t i = 0; i < n; i++)
        t->list[i] = fabs(t->head[i]);
    floor->median = quantile(t->list, n, 0.5);
    floor->largest = t->list[n - 1];
    for (size_t i = 0; i < n / process; i++)
        t->list[i] = fabs(stats_median(t->head + i * process, process));
    floor->process = stats_median(t->list, n / process);
    floor->comparisons = n / COMPARISON;
    for (size_t i = 0; i < floor->comparisons; i++)
        t->list[i] =
            detectable_in(t->head + i * COMPARISON, t->null + i * COMPARISON, COMPARISON);
    floor->apart = floor->comparisons > 0
                       ? quantile(t->list, floor->comparisons, detected_share)
                       : detectable_in(t->head, t->null, n);
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
        summarise_taken(&t, &floor);
    free(t.head);
    free(t.null);
    free(t.list);
    return floor;
}
