/* Computes medians and their intervals by order statistics; see stats.h. */
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

/* Returns the samples that are not NaN, sorted and to be freed, and their number. Returns NULL without any or memory. */
static double *sort_samples(const double *samples, size_t n, size_t *count)
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
static size_t order_for(size_t n, double level)
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
        const size_t k = order_for(n, levels[i]);
        if (k > 0)
            return (struct stats_interval){ levels[i], sorted[k - 1], sorted[n - k] };
    }
    return (struct stats_interval){ stats_coverage(n, 1), sorted[0], sorted[n - 1] };
}

struct stats_summary stats_summarise(const double *samples, size_t n)
{
    const double none = (double)NAN;
    struct stats_summary s = { 0, none, none, none, { 0.0, none, none } };
    double *sorted = sort_samples(samples, n, &s.n);
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
    double *sorted = sort_samples(samples, n, &count);
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
