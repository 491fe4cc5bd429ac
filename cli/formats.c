/*
 * The table of formats; see formats.h.
 */
#include "formats.h"
#include "base/records.h"
#include "base/text/text.h"
#include "show.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct format record_formats[] = {
#define RECORD_FORMAT(name, extension, commands, by_line, purpose, begins)                     \
    { #name, extension, commands, by_line, purpose, begins, NULL, format_##name },
#define EXPORTED_FORMAT(name, extension, commands, program, purpose, begins)                   \
    { #name, extension, commands, false, purpose, begins, program, NULL },
#include "formats.def"
#undef EXPORTED_FORMAT
#undef RECORD_FORMAT
    { .name = NULL },
};

const struct format *format_find(const struct format *formats, unsigned commands,
                                 const char *name, size_t n)
{
    for (; formats->name; formats++)
        if ((formats->commands & commands) && strlen(formats->name) == n &&
            memcmp(formats->name, name, n) == 0)
            return formats;
    return NULL;
}

int render(const struct format *format, const json_t *records, FILE *out)
{
    return format->write(records, out) || fflush(out) || ferror(out) ? -1 : 0;
}

/* JSON Lines: the records as they are. */
int format_jsonl(const json_t *records, FILE *out)
{
    for (size_t i = 0; i < json_array_size(records); i++)
        if (json_dumpf(json_array_get(records, i), out, RECORDS_DUMP) ||
            fputc('\n', out) == EOF)
            return -1;
    return 0;
}

/* ---- Numbers, rounded for people ---- */

static char *buffer(void)
{
    static char buffers[16][48];
    static int next;
    return buffers[next++ % 16];
}

/* Three significant digits, without an exponent. */
static void three(char *text, size_t bytes, double x)
{
    double a = fabs(x);
    snprintf(text, bytes, a >= 99.95 ? "%.0f" : a >= 9.995 ? "%.1f" : "%.2f", x);
}

const char *show_time(double ns)
{
    char *text = buffer(), number[32];
    int unit = ns >= 999.5e6 ? 3 : ns >= 999.5e3 ? 2 : ns >= 999.5 ? 1 : 0;
    static const double scale[] = { 1.0, 1e-3, 1e-6, 1e-9 };
    static const char *const name[] = { "ns", "us", "ms", "s" };
    three(number, sizeof number, ns * scale[unit]);
    snprintf(text, 48, "%s %s", number, name[unit]);
    return text;
}

static const char *unit_of(const char *metric)
{
    return strcmp(metric, "pair_ulp") == 0 ? "pair ulp" : metric;
}

/* 0.500 ulp, 2.1e-02 abs, same bits; "-" without a metric. */
static void put_error(char text[48], double max, const char *metric)
{
    if (!*metric) {
        snprintf(text, 48, "-");
        return;
    }
    if (strcmp(metric, "exact") == 0) {
        snprintf(text, 48,
                 isinf(max)  ? "differs"
                 : max > 0.0 ? "%.3g differ"
                             : "same bits",
                 max);
        return;
    }
    bool ulp = strcmp(metric, "abs") != 0;
    const char *unit = unit_of(metric);
    if (isinf(max) || isnan(max))
        snprintf(text, 48, "%s %s", isnan(max) ? "NaN" : "infinite", unit);
    else if (max == 0.0)
        snprintf(text, 48, "0 %s", unit);
    else if (!ulp && max >= 0.01)
        snprintf(text, 48, "%.2g %s", max, unit);
    else if (ulp && max < 99.995)
        snprintf(text, 48, "%.2f %s", max, unit);
    else if (ulp && max < 9999.5)
        snprintf(text, 48, "%.0f %s", max, unit);
    else
        snprintf(text, 48, "%.1e %s", max, unit);
}

struct shown_error show_judged(double max, double limit, const char *metric)
{
    enum { DIGITS = 17 }; /* tell any two f64 apart */
    char *error = buffer(), *most = buffer();
    const bool is_number = *metric && strcmp(metric, "exact") != 0 && isfinite(max);
    put_error(error, max, metric);
    snprintf(most, 48, "%.3g", limit);
    for (int digits = 3; is_number && digits <= DIGITS; digits++) {
        if ((strtod(error, NULL) <= strtod(most, NULL)) == (max <= limit))
            break;
        snprintf(error, 48, "%.*g %s", digits, max, unit_of(metric));
        snprintf(most, 48, "%.*g", digits, limit);
    }
    return (struct shown_error){ error, most };
}

/* ---- The console: failures with their command, a table of checks or timings, and the sum ---- */

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
