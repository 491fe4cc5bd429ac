/* Writes records of posenc pair as a table for a terminal (see pair.h). */
#define _POSIX_C_SOURCE 200809L
#include "pair.h"
#include "base/statistics/stats.h"

#include <math.h>
#include <string.h>

static double median_change(const json_t *samples, const char *path)
{
    const json_t *list = json_object_get(json_object_get(samples, "ratios"), path);
    double values[128];
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list) && n < sizeof values / sizeof *values; i++)
        values[n++] = record_double(json_array_get(list, i), (double)NAN);
    return 100.0 * expm1(stats_median(values, n));
}

static void print_samples(const json_t *r, FILE *out)
{
    fprintf(out, "%-40s %-12s ", record_text(r, "case"), record_text(r, "backend"));
    if (!record_is(r, "outcome", "timed"))
        fprintf(out, "%s: %s: %s\n", record_text(r, "who"), record_text(r, "outcome"),
                record_text(r, "reason"));
    else
        fprintf(out, "%9s %9s %+8.1f %% %+8.1f %%\n",
                format_time(record_value(r, "base.ns", 0.0)),
                format_time(record_value(r, "head.ns", 0.0)), median_change(r, "head"),
                median_change(r, "control"));
}

/* Prints a record of changed outputs, or a failed check. */
static void print_result(const json_t *r, FILE *out)
{
    const json_t *worse = json_object_get(r, "worse");
    if (record_is(r, "t", "change"))
        fprintf(out, "outputs %s: %s %s: %.0f of %.0f values moved, at %s\n",
                json_is_true(worse)    ? "worse"
                : json_is_false(worse) ? "better"
                                       : "changed",
                record_text(r, "case"), record_text(r, "backend"),
                record_value(r, "moved", 0.0), record_value(r, "of", 0.0),
                record_text(r, "worst_at"));
    else if (check_has_failed(r))
        fprintf(out, "%s: %s: %s %s: %s\n", record_text(r, "build"), record_text(r, "status"),
                record_text(r, "case"), record_text(r, "backend"), record_text(r, "reason"));
}

static void print_count(const json_t *r, FILE *out)
{
    const double elements = record_value(r, "elements", 0.0);
    if (elements > 0.0)
        fprintf(out, "%s %s, %s: %.4g instructions per element\n", record_text(r, "case"),
                record_text(r, "backend"), record_text(r, "build"),
                record_value(r, "instructions", 0.0) / elements);
}

static int print_pair(const json_t *records, FILE *out)
{
    size_t i, timed = 0;
    const json_t *r;
    json_array_foreach((json_t *)records, i, r)
    {
        if (record_is(r, "t", "samples") && timed++ == 0)
            fprintf(out, "%-40s %-12s %9s %9s %10s %10s\n", "case", "backend", "base", "head",
                    "change", "A/A");
        if (record_is(r, "t", "samples"))
            print_samples(r, out);
        else if (record_is(r, "t", "change") || record_is(r, "t", "check"))
            print_result(r, out);
        else if (record_is(r, "t", "agreement"))
            fprintf(out,
                    "results of %s %s: %.0f of %.0f values moved, %.0f of %.0f checks failed\n",
                    record_text(r, "kernel"), record_text(r, "backend"),
                    record_value(r, "moved", 0.0), record_value(r, "values", 0.0),
                    record_value(r, "failed", 0.0), record_value(r, "cases", 0.0));
        else if (record_is(r, "t", "count"))
            print_count(r, out);
        else if (record_is(r, "t", "planned") && !record_is(r, "builds", "both"))
            fprintf(out, "%s %s: in %s alone\n", record_text(r, "case"),
                    record_text(r, "backend"), record_text(r, "builds"));
    }
    if (timed > 0)
        fputs("\nMedians of one posenc process: no verdict. A/A: base against its own copy. "
              "posenc compare "
              "starts several processes.\n",
              out);
    return ferror(out) ? -1 : 0;
}

const struct output_format pair_formats[] = {
    { "console", "txt", BY_ALL, false, "a table for a terminal", "*posenc*", NULL, print_pair },
    { "jsonl", "jsonl", BY_ALL, true, "records, one JSON object a line",
      "{\"t\":\"header\",\"schema\":\"posenc.results/*", NULL, write_jsonl },
    { .name = NULL },
};
