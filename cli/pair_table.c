/*
 * The compact table of posenc pair (see pair.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "pair.h"
#include "show.h"
#include "base/statistics/stats.h"

#include <math.h>
#include <string.h>

const struct format pair_formats[] = {
    { .name = "console",
      .extension = "txt",
      .commands = BY_ALL,
      .purpose = "a table for a terminal",
      .begins = "*posenc*",
      .write = pair_print },
    { .name = "jsonl",
      .extension = "jsonl",
      .commands = BY_ALL,
      .by_line = true,
      .purpose = "records, one JSON object a line",
      .begins = "{\"t\":\"header\",\"schema\":\"posenc.results/*",
      .write = format_jsonl },
    { .name = NULL },
};

static double median_change(const json_t *samples, const char *path)
{
    const json_t *list = json_object_get(json_object_get(samples, "ratios"), path);
    double values[128];
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list) && n < sizeof values / sizeof *values; i++)
        values[n++] = record_double(json_array_get(list, i), (double)NAN);
    return 100.0 * expm1(stats_median(values, n));
}

static bool is_kind(const json_t *record, const char *kind)
{
    return strcmp(record_text(record, "t"), kind) == 0;
}

static void print_samples(const json_t *r, FILE *out)
{
    fprintf(out, "%-40s %-12s ", record_text(r, "case"), record_text(r, "backend"));
    if (strcmp(record_text(r, "outcome"), "timed") != 0)
        fprintf(out, "%s: %s: %s\n", record_text(r, "who"), record_text(r, "outcome"),
                record_text(r, "reason"));
    else
        fprintf(out, "%9s %9s %+8.1f %% %+8.1f %%\n",
                show_time(record_value(r, "base.ns", 0.0)),
                show_time(record_value(r, "head.ns", 0.0)), median_change(r, "head"),
                median_change(r, "control"));
}

/* Prints outputs that moved, or a check that failed. */
static void print_result(const json_t *r, FILE *out)
{
    const json_t *worse = json_object_get(r, "worse");
    if (is_kind(r, "change"))
        fprintf(out, "outputs %s: %s %s: %.0f of %.0f values moved, at %s\n",
                json_is_true(worse)    ? "worse"
                : json_is_false(worse) ? "better"
                                       : "changed",
                record_text(r, "case"), record_text(r, "backend"),
                record_value(r, "moved", 0.0), record_value(r, "of", 0.0),
                record_text(r, "worst_at"));
    else if (strcmp(record_text(r, "status"), "fail") == 0 ||
             strcmp(record_text(r, "status"), "crash") == 0)
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

int pair_print(const json_t *records, FILE *out)
{
    size_t i, timed = 0;
    const json_t *r;
    json_array_foreach((json_t *)records, i, r)
    {
        if (is_kind(r, "samples") && timed++ == 0)
            fprintf(out, "%-40s %-12s %9s %9s %10s %10s\n", "case", "backend", "base", "head",
                    "change", "A/A");
        if (is_kind(r, "samples"))
            print_samples(r, out);
        else if (is_kind(r, "change") || is_kind(r, "check"))
            print_result(r, out);
        else if (is_kind(r, "agreement"))
            fprintf(out,
                    "results of %s %s: %.0f of %.0f values moved, %.0f of %.0f checks failed\n",
                    record_text(r, "kernel"), record_text(r, "backend"),
                    record_value(r, "moved", 0.0), record_value(r, "values", 0.0),
                    record_value(r, "failed", 0.0), record_value(r, "cases", 0.0));
        else if (is_kind(r, "count"))
            print_count(r, out);
        else if (is_kind(r, "planned") && strcmp(record_text(r, "builds"), "both") != 0)
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
