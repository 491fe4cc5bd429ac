/* Computes medians and their intervals by order statistics, and noise thresholds; see stats.h. */
#include "stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_sort(double *values, size_t n) { qsort(values, n, sizeof *values, compare_doubles); }

/* Returns the samples that are not NaN, sorted and to be freed, and their number. Returns NULL without samples or memory. */
static double *sorted_copy(const double *samples, size_t n, size_t *count)
{
    *count = 0;
    double *sorted = n > 0 ? malloc(n * sizeof *sorted) : NULL;
    if (!sorted)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (!isnan(samples[i]))
            sorted[(*count)++] = samples[i];
    stats_sort(sorted, *count);
    return sorted;
}

static double median_of_sorted(const double *sorted, size_t n)
{
    if (n == 0)
        return (double)NAN;
    return n % 2 == 1 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

double stats_coverage(size_t n, size_t k)
{
    /* Logarithms, since 2^-n underflows. */
    double tail = 0.0, log_term = -(double)n * log(2.0);
    for (size_t i = 0; i < k; i++) {
        tail += exp(log_term);
        log_term += log((double)(n - i)) - log((double)(i + 1));
    }
    double coverage = 1.0 - 2.0 * tail;
    return coverage > 0.0 ? coverage : 0.0;
}

/* Returns the largest k for which [k-th smallest, k-th largest] of n samples covers the median at that level; 0: none. */
static size_t largest_order(size_t n, double level)
{
    size_t k = 0;
    while (k + 1 <= (n + 1) / 2 && stats_coverage(n, k + 1) >= level)
        k++;
    return k;
}

/* Returns the interval of 99 %, else of 95 %, else the whole range. */
static struct stats_interval interval_of(const double *sorted, size_t n)
{
    static const double levels[] = { 0.99, 0.95 };
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        const size_t k = largest_order(n, levels[i]);
        if (k > 0)
            return (struct stats_interval){ levels[i], sorted[k - 1], sorted[n - k] };
    }
    return (struct stats_interval){ stats_coverage(n, 1), sorted[0], sorted[n - 1] };
}

struct stats_summary stats_summarise(const double *samples, size_t n)
{
    const double none = (double)NAN;
    struct stats_summary s = { 0, none, none, none, { 0.0, none, none } };
    double *sorted = sorted_copy(samples, n, &s.n);
    if (s.n > 0) {
        s.median = median_of_sorted(sorted, s.n);
        s.min = sorted[0];
        s.max = sorted[s.n - 1];
        s.interval = interval_of(sorted, s.n);
    }
    free(sorted);
    return s;
}

double stats_median(const double *samples, size_t n)
{
    size_t count;
    double *sorted = sorted_copy(samples, n, &count);
    double median = median_of_sorted(sorted, count);
    free(sorted);
    return median;
}

double stats_median_ratio(const double *over, const double *under, size_t n)
{
    double *ratios = n > 0 ? malloc(n * sizeof *ratios) : NULL;
    if (!ratios)
        return (double)NAN;
    for (size_t i = 0; i < n; i++)
        ratios[i] = over[i] / under[i]; /* NaN where either is */
    double median = stats_median(ratios, n);
    free(ratios);
    return median;
}

/* ---- Noise threshold ---- */

enum { PROCESSES = THRESHOLD_PROCESSES, COMPARISON = PROCESSES * THRESHOLD_ROUNDS };

/* Rounds in which both ratios are finite. */
struct complete_rounds {
    size_t n;
    double *head, *control, *scratch; /* [n]; scratch is working memory */
};

/* Sorts n values, none of which is NaN, and returns the smallest one that a share of them does not exceed. */
static double quantile(double *values, size_t n, double share)
{
    stats_sort(values, n);
    return values[(size_t)ceil(share * (double)n) - 1];
}

/* Returns the difference that a comparison of the n rounds from `first` on detects, by the rule in
 * reports/posenc/verdict.py; NaN: too few rounds. Names follow that rule: y is the effect in a process, the mean of head
 * against base and head against control; z is the A/A control. */
static double detectable_difference(const struct complete_rounds *rounds, size_t first,
                                    size_t n)
{
    /* |t| of Student's distribution with 2 PROCESSES - 1 = 5 degrees is below it with a probability of 99 %. */
    static const double student = 4.032142983555227;
    /* Variances of y and z, relative to that of the median of one copy. */
    static const double y_units = 1.5, z_units = 2.0;
    const size_t each = n / PROCESSES, degrees = 2 * PROCESSES - 1;
    double y[PROCESSES], z[PROCESSES], between[THRESHOLD_ROUNDS], mean = 0.0, sum = 0.0;
    if (each == 0)
        return (double)NAN;
    for (size_t p = 0; p < PROCESSES; p++) {
        const double *head = rounds->head + first + p * each,
                     *control = rounds->control + first + p * each;
        for (size_t i = 0; i < each; i++)
            between[i] = head[i] - control[i];
        y[p] = 0.5 * (stats_median(head, each) + stats_median(between, each));
        z[p] = stats_median(control, each);
        mean += y[p] / PROCESSES;
    }
    double noise = fmax(log1p(0.01), 2.0 * fabs(stats_median(z, PROCESSES)));
    for (size_t p = 0; p < PROCESSES; p++) {
        noise = fmax(noise, fabs(z[p]));
        sum += (y[p] - mean) * (y[p] - mean) / y_units + z[p] * z[p] / z_units;
    }
    const double half = student * sqrt(y_units * sum / (double)degrees / PROCESSES);
    const struct stats_interval all =
        stats_summarise(rounds->head + first, PROCESSES * each).interval;
    const double side = fmax(fmax(mean + half, all.high), -fmin(mean - half, all.low));
    return expm1(noise + fmax(side, 0.0));
}

static void summarise_complete(const struct complete_rounds *rounds,
                               struct threshold_summary *summary)
{
    const size_t n = rounds->n, each = n < COMPARISON ? n : THRESHOLD_ROUNDS;
    summary->rounds = n;
    for (size_t i = 0; i < n; i++)
        rounds->scratch[i] = fabs(rounds->head[i]);
    summary->median = quantile(rounds->scratch, n, 0.5);
    summary->largest = rounds->scratch[n - 1];
    for (size_t i = 0; i < n / each; i++)
        rounds->scratch[i] = fabs(stats_median(rounds->head + i * each, each));
    summary->typical_process = stats_median(rounds->scratch, n / each);
    summary->comparisons = n / COMPARISON;
    for (size_t i = 0; i < summary->comparisons; i++)
        rounds->scratch[i] = detectable_difference(rounds, i * COMPARISON, COMPARISON);
    summary->detectable = summary->comparisons > 0
                              ? quantile(rounds->scratch, summary->comparisons, 0.99)
                              : detectable_difference(rounds, 0, n);
}

struct threshold_summary threshold_summarise(const double *head, const double *control,
                                             size_t n)
{
    const double none = (double)NAN;
    struct threshold_summary summary = { 0, 0, none, none, none, none };
    double *memory = malloc(3 * (n + 1) * sizeof *memory);
    struct complete_rounds rounds = { 0, memory, memory + n, memory + 2 * n };
    for (size_t i = 0; memory && i < n; i++)
        if (isfinite(head[i]) && isfinite(control[i])) {
            rounds.head[rounds.n] = head[i];
            rounds.control[rounds.n++] = control[i];
        }
    if (rounds.n > 0)
        summarise_complete(&rounds, &summary);
    free(memory);
    return summary;
}
