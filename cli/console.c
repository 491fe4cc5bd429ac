/*
 * What a terminal shows of a run: failures with the command that repeats each, one table of checks or timings, and
 * the sum.  posenc report shows more.
 */
#include "formats.h"
#include "show.h"
#include "base/records.h"
#include "base/text/text.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { NAMES = 64, LISTED = 20, TIME_BYTES = 24, ERROR_BYTES = 48 };

struct names {
    size_t n;
    const char *name[NAMES];
};

static bool is_kind(const json_t *record, const char *kind)
{
    return strcmp(record_text(record, "t"), kind) == 0;
}

static bool has_status(const json_t *check, const char *status)
{
    return strcmp(record_text(check, "status"), status) == 0;
}

static bool failed(const json_t *check)
{
    return has_status(check, "fail") || has_status(check, "crash");
}

static void add_name(struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->name[i], name) == 0)
            return;
    if (names->n < NAMES)
        names->name[names->n++] = name;
}

/* Width of the longest name, `least` at least. */
static int width_of(const struct names *names, size_t least)
{
    size_t width = least;
    for (size_t i = 0; i < names->n; i++)
        if (strlen(names->name[i]) > width)
            width = strlen(names->name[i]);
    return (int)width;
}

/* ---- Checks ---- */

static void print_failure(const json_t *check, FILE *out)
{
    const char *metric = record_text(check, "error.metric"),
               *reason = record_text(check, "reason");
    const char *command = record_text(check, "command");
    text_print(out, "%s  %s  %s\n", has_status(check, "crash") ? "CRASH" : "FAIL",
               record_text(check, "backend"), record_text(check, "case"));
    if (*metric && strcmp(metric, "exact") != 0)
        text_print(out, "      error %.4g %s, limit %.4g\n",
                   record_value(check, "error.max", (double)NAN), metric,
                   record_value(check, "error.limit", (double)NAN));
    if (*reason)
        text_print(out, "      %s\n", reason);
    if (*metric && *record_text(check, "error.worst_at"))
        text_print(out, "      at %s: got %s, want %s\n", record_text(check, "error.worst_at"),
                   record_text(check, "error.got"), record_text(check, "error.want"));
    if (*command)
        text_print(out, "      %s\n", command);
}

/* Prints the first failures. Returns how many there are. */
static size_t print_failures(const json_t *records, FILE *out)
{
    size_t i, found = 0;
    json_t *record;
    json_array_foreach(records, i, record)
    {
        if (is_kind(record, "check") && failed(record) && found++ < LISTED)
            print_failure(record, out);
    }
    if (found > LISTED)
        text_print(out, "and %zu more: --out jsonl has them all\n", found - LISTED);
    return found;
}

static void print_cell(const json_t *records, const char *kernel, const char *backend,
                       int width, FILE *out)
{
    size_t i, ran = 0, bad = 0;
    char text[2 * TIME_BYTES] = "-";
    json_t *record;
    json_array_foreach(records, i, record)
    {
        if (!is_kind(record, "check") || strcmp(record_text(record, "kernel"), kernel) != 0 ||
            strcmp(record_text(record, "backend"), backend) != 0)
            continue;
        ran +=
            failed(record) || has_status(record, "pass") || has_status(record, "inconclusive");
        bad += failed(record);
    }
    if (bad > 0)
        snprintf(text, sizeof text, "%zu of %zu failed", bad, ran);
    else if (ran > 0)
        snprintf(text, sizeof text, "%zu", ran);
    text_print(out, "  %*s", width, text);
}

/* Prints checks by kernel and backend, the failures before, and the sum. */
static void print_checks(const json_t *records, FILE *out)
{
    struct names kernels = { 0 }, backends = { 0 };
    size_t i, passed = 0, skipped = 0, inconclusive = 0;
    json_t *record;
    json_array_foreach(records, i, record)
    {
        if (!is_kind(record, "check"))
            continue;
        passed += has_status(record, "pass");
        inconclusive += has_status(record, "inconclusive");
        skipped += has_status(record, "skipped") || has_status(record, "unsupported");
        add_name(&kernels, record_text(record, "kernel"));
        if (!has_status(record, "unsupported"))
            add_name(&backends, record_text(record, "backend"));
    }
    if (kernels.n == 0)
        return;
    const size_t bad = print_failures(records, out);
    const int width = width_of(&kernels, strlen("checks"));
    text_print(out, "%-*s", width, "checks");
    for (size_t b = 0; b < backends.n; b++)
        text_print(out, "  %s", backends.name[b]);
    fputc('\n', out);
    for (size_t k = 0; k < kernels.n && backends.n > 0; k++) {
        text_print(out, "%-*s", width, kernels.name[k]);
        for (size_t b = 0; b < backends.n; b++)
            print_cell(records, kernels.name[k], backends.name[b],
                       (int)strlen(backends.name[b]), out);
        fputc('\n', out);
    }
    text_print(out, "%zu failed, %zu passed, %zu skipped", bad, passed, skipped);
    if (inconclusive > 0)
        text_print(out, ", %zu inconclusive", inconclusive);
    fputc('\n', out);
}

/* ---- Timings ---- */

static void print_timing(const json_t *row, int cases, int backends, FILE *out)
{
    const double median = record_value(row, "median_ns", (double)NAN);
    const double low = record_value(row, "ci.lo", median),
                 high = record_value(row, "ci.hi", median);
    text_print(out, "%-*s  %-*s  ", cases, record_text(row, "case"), backends,
               record_text(row, "backend"));
    if (*record_text(row, "rejected")) {
        text_print(out, "%s\n", record_text(row, "rejected"));
        return;
    }
    text_print(out, "%8s  %5.1f %%  %6.3g  %8.0f %%  %6.2fx\n", show_time(median),
               100.0 * fmax(high - median, median - low) / median,
               record_value(row, "gbps", (double)NAN),
               100.0 * record_value(row, "roofline.share", (double)NAN),
               record_value(row, "speedup_libm", (double)NAN));
}

static void print_timings(const json_t *records, FILE *out)
{
    struct names backends = { 0 };
    size_t i, timed = 0, cases = strlen("case");
    json_t *record;
    json_array_foreach(records, i, record)
    {
        if (!is_kind(record, "bench"))
            continue;
        timed++;
        add_name(&backends, record_text(record, "backend"));
        cases = strlen(record_text(record, "case")) > cases
                    ? strlen(record_text(record, "case"))
                    : cases;
    }
    if (timed == 0)
        return;
    const int width = width_of(&backends, strlen("backend"));
    text_print(out, "%-*s  %-*s  %8s  %7s  %6s  %10s  %7s\n", (int)cases, "case", width,
               "backend", "time", "+-", "GB/s", "% roofline", "vs libm");
    json_array_foreach(records, i, record)
    {
        if (is_kind(record, "bench"))
            print_timing(record, (int)cases, width, out);
    }
}

/* ---- Counts of instructions ---- */

static void print_counts(const json_t *records, FILE *out)
{
    size_t i, counted = 0;
    json_t *record;
    json_array_foreach(records, i, record)
    {
        if (!is_kind(record, "count"))
            continue;
        if (counted++ == 0)
            text_print(out, "%-28s  %-14s  %12s  %12s\n", "case", "backend", "per element",
                       "per call");
        text_print(out, "%-28s  %-14s  ", record_text(record, "case"),
                   record_text(record, "backend"));
        if (*record_text(record, "rejected"))
            text_print(out, "%s\n", record_text(record, "rejected"));
        else
            text_print(out, "%12.3f  %12.0f\n",
                       record_value(record, "per_element", (double)NAN),
                       record_value(record, "per_call", (double)NAN));
    }
}

/* Prints which program ran, on what, and what a reader has to know of it. */
static void print_head(const json_t *records, FILE *out)
{
    size_t i;
    json_t *record;
    json_array_foreach(records, i, record)
    {
        if (is_kind(record, "header"))
            text_print(out, "posenc %s", record_text(record, "tool.version"));
        if (is_kind(record, "header") &&
            json_is_false(json_object_get(json_object_get(record, "vectors"), "official")))
            text_print(out, ", not the official vectors");
        if (is_kind(record, "env"))
            text_print(out, ", %s (%s), measurement quality %s\n",
                       record_text(record, "cpu.name"), record_text(record, "env_id"),
                       record_text(record, "quality.grade"));
    }
}

int format_console(const json_t *records, FILE *out)
{
    print_head(records, out);
    print_timings(records, out);
    print_counts(records, out);
    print_checks(records, out);
    return 0;
}
