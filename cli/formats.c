/* Writes JSON Lines and tables for a terminal (see outputs.h). Python programs write the other formats. */
#include "outputs.h"
#include "base/records.h"
#include "base/statistics/stats.h"
#include "base/text/text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON Lines ---- */

int write_jsonl(const json_t *records, FILE *out)
{
    for (size_t i = 0; i < json_array_size(records); i++)
        if (json_dumpf(json_array_get(records, i), out, RECORDS_DUMP) ||
            fputc('\n', out) == EOF)
            return -1;
    return 0;
}

/* ---- Rounded numbers ---- */

enum { TIME_BYTES = 24 };

/* Writes three significant digits, without an exponent. */
static void print_three_digits(char *text, size_t bytes, double x)
{
    int decimals = 2;
    if (fabs(x) >= 9.995)
        decimals = fabs(x) >= 99.95 ? 0 : 1;
    snprintf(text, bytes, "%.*f", decimals, x);
}

/* Writes "29.2 ns", "1.87 us" or "12.3 ms". */
static const char *format_time(char text[TIME_BYTES], double ns)
{
    static const char *const units[] = { "ns", "us", "ms", "s" };
    char number[16];
    int unit = 0;
    for (; unit < 3 && ns >= 999.5; unit++)
        ns *= 1e-3;
    print_three_digits(number, sizeof number, ns);
    snprintf(text, TIME_BYTES, "%s %s", number, units[unit]);
    return text;
}

static const char *unit_of(const char *metric)
{
    return strcmp(metric, "pair_ulp") == 0 ? "pair ulp" : metric;
}

/* Writes "0.50 ulp", "0.021 abs" or "same bits"; "-" without a metric. */
static void print_error(char text[48], double max, const char *metric)
{
    if (!*metric) {
        snprintf(text, 48, "-");
        return;
    }
    if (strcmp(metric, "exact") == 0) {
        if (isinf(max))
            snprintf(text, 48, "differs");
        else if (max > 0.0)
            snprintf(text, 48, "%.3g differ", max);
        else
            snprintf(text, 48, "same bits");
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

struct formatted_error format_error(double max, double limit, const char *metric)
{
    enum { DIGITS = 17 }; /* distinguish any two f64 */
    struct formatted_error shown;
    const bool is_number = *metric && strcmp(metric, "exact") != 0 && isfinite(max);
    print_error(shown.error, max, metric);
    snprintf(shown.limit, sizeof shown.limit, "%.3g", limit);
    for (int digits = 3; is_number && digits <= DIGITS; digits++) {
        if ((strtod(shown.error, NULL) <= strtod(shown.limit, NULL)) == (max <= limit))
            break;
        snprintf(shown.error, sizeof shown.error, "%.*g %s", digits, max, unit_of(metric));
        snprintf(shown.limit, sizeof shown.limit, "%.*g", digits, limit);
    }
    return shown;
}

/* ---- The console format: tables of timings and checks, and failures ---- */

enum { NAMES = 64, LISTED = 20 };

struct names {
    size_t n;
    const char *name[NAMES];
};

bool check_has_failed(const json_t *check)
{
    return record_is(check, "status", "fail") || record_is(check, "status", "crash");
}

/* Returns the index of a name, after adding a new one. Returns the last index if the list is full. */
static size_t add_name(struct names *names, const char *name)
{
    size_t i = 0;
    while (i < names->n && strcmp(names->name[i], name) != 0)
        i++;
    if (i == NAMES)
        return NAMES - 1;
    if (i == names->n)
        names->name[names->n++] = name;
    return i;
}

/* Returns the larger of a width and the length of a text. */
static int widen(int width, const char *text)
{
    return (int)strlen(text) > width ? (int)strlen(text) : width;
}

/* Returns the next record of a kind from index *at on, or NULL. */
static const json_t *next_of(const json_t *records, const char *kind, size_t *at)
{
    const json_t *record;
    do
        record = json_array_get(records, (*at)++);
    while (record && !record_is(record, "t", kind));
    return record;
}

/* ---- Checks ---- */

static void print_failure(const json_t *check, FILE *out)
{
    const char *metric = record_text(check, "error.metric"),
               *reason = record_text(check, "reason");
    const char *command = record_text(check, "command"),
               *place = record_text(check, "error.worst_at"),
               *mistake = record_text(check, "mistake");
    const bool has_place = *place && strstr(reason, place); /* and the values */
    text_print(out, "%s  %s  %s\n", record_is(check, "status", "crash") ? "CRASH" : "FAIL",
               record_text(check, "backend"), record_text(check, "case"));
    if (*metric && strcmp(metric, "exact") != 0 && !has_place)
        text_print(out, "      error %.4g %s, limit %.4g\n",
                   record_value(check, "error.max", (double)NAN), metric,
                   record_value(check, "error.limit", (double)NAN));
    if (*reason)
        text_print(out, "      %s\n", reason);
    if (*metric && *place && !has_place)
        text_print(out, "      at %s: got %s, want %s\n", place,
                   record_text(check, "error.got"), record_text(check, "error.want"));
    if (*mistake)
        text_print(out, "      matches: %s\n", mistake);
    if (*command)
        text_print(out, "      %s\n", command);
}

/* Prints the first LISTED failures. Returns the number of all failures. */
static size_t print_failures(const json_t *records, FILE *out)
{
    size_t found = 0;
    const json_t *check;
    for (size_t at = 0; (check = next_of(records, "check", &at));)
        if (check_has_failed(check) && found++ < LISTED)
            print_failure(check, out);
    if (found > LISTED)
        text_print(out, "and %zu more: --out jsonl has them all\n", found - LISTED);
    return found;
}

/* Numbers of checks that ran and that failed, for each kernel (row) and backend (column). */
struct checks_table {
    struct names kernels, backends;
    size_t ran[NAMES][NAMES], failed[NAMES][NAMES];
};

static void count_check(struct checks_table *table, const json_t *check)
{
    const size_t k = add_name(&table->kernels, record_text(check, "kernel"));
    if (record_is(check, "status", "unsupported"))
        return;
    const size_t b = add_name(&table->backends, record_text(check, "backend"));
    table->ran[k][b] += !record_is(check, "status", "skipped");
    table->failed[k][b] += check_has_failed(check);
}

static void print_table(const struct checks_table *table, FILE *out)
{
    int width = (int)strlen("checks");
    for (size_t k = 0; k < table->kernels.n; k++)
        width = widen(width, table->kernels.name[k]);
    text_print(out, "%-*s", width, "checks");
    for (size_t b = 0; b < table->backends.n; b++)
        text_print(out, "  %s", table->backends.name[b]);
    fputc('\n', out);
    for (size_t k = 0; k < table->kernels.n && table->backends.n > 0; k++) {
        text_print(out, "%-*s", width, table->kernels.name[k]);
        for (size_t b = 0; b < table->backends.n; b++) {
            const size_t ran = table->ran[k][b], failed = table->failed[k][b];
            char cell[2 * TIME_BYTES] = "-";
            if (failed > 0)
                snprintf(cell, sizeof cell, "%zu of %zu failed", failed, ran);
            else if (ran > 0)
                snprintf(cell, sizeof cell, "%zu", ran);
            text_print(out, "  %*s", (int)strlen(table->backends.name[b]), cell);
        }
        fputc('\n', out);
    }
}

/* Prints the failures, a table of the checks, and the totals. */
static void print_checks(const json_t *records, FILE *out)
{
    struct checks_table table = { 0 };
    size_t passed = 0, skipped = 0, inconclusive = 0;
    const json_t *check;
    for (size_t at = 0; (check = next_of(records, "check", &at));) {
        passed += record_is(check, "status", "pass");
        inconclusive += record_is(check, "status", "inconclusive");
        skipped +=
            record_is(check, "status", "skipped") || record_is(check, "status", "unsupported");
        count_check(&table, check);
    }
    if (table.kernels.n == 0)
        return;
    const size_t failed = print_failures(records, out);
    print_table(&table, out);
    text_print(out, "%zu failed, %zu passed, %zu skipped", failed, passed, skipped);
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
    const double speedup = record_value(row, "speedup_libm", (double)NAN);
    char speedup_text[32] = "-"; /* libm was not timed */
    if (!isnan(speedup))
        snprintf(speedup_text, sizeof speedup_text, "%.2fx", speedup);
    char time[TIME_BYTES];
    text_print(out, "%8s  %5.1f %%  %6.3g  %8.0f %%  %7s\n", format_time(time, median),
               100.0 * fmax(high - median, median - low) / median,
               record_value(row, "gbps", (double)NAN),
               100.0 * record_value(row, "roofline.share", (double)NAN), speedup_text);
}

static void print_timings(const json_t *records, FILE *out)
{
    int cases = (int)strlen("case"), backends = (int)strlen("backend");
    const json_t *row;
    size_t timed = 0;
    for (size_t at = 0; (row = next_of(records, "bench", &at)); timed++) {
        cases = widen(cases, record_text(row, "case"));
        backends = widen(backends, record_text(row, "backend"));
    }
    if (timed == 0)
        return;
    text_print(out, "%-*s  %-*s  %8s  %7s  %6s  %10s  %7s\n", cases, "case", backends,
               "backend", "time", "+-", "GB/s", "% roofline", "vs libm");
    for (size_t at = 0; (row = next_of(records, "bench", &at));)
        print_timing(row, cases, backends, out);
}

/* ---- Counts of instructions ---- */

static void print_counts(const json_t *records, FILE *out)
{
    const json_t *row;
    size_t counted = 0;
    for (size_t at = 0; (row = next_of(records, "count", &at));) {
        if (counted++ == 0)
            text_print(out, "%-28s  %-14s  %12s  %12s\n", "case", "backend", "per element",
                       "per call");
        text_print(out, "%-28s  %-14s  ", record_text(row, "case"),
                   record_text(row, "backend"));
        if (*record_text(row, "rejected"))
            text_print(out, "%s\n", record_text(row, "rejected"));
        else
            text_print(out, "%12.3f  %12.0f\n", record_value(row, "per_element", (double)NAN),
                       record_value(row, "per_call", (double)NAN));
    }
}

/* ---- Two builds ---- */

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
    char base[TIME_BYTES], head[TIME_BYTES];
    fprintf(out, "%-40s %-12s ", record_text(r, "case"), record_text(r, "backend"));
    if (!record_is(r, "outcome", "timed"))
        fprintf(out, "%s: %s: %s\n", record_text(r, "who"), record_text(r, "outcome"),
                record_text(r, "reason"));
    else
        fprintf(out, "%9s %9s %+8.1f %% %+8.1f %%\n",
                format_time(base, record_value(r, "base.ns", 0.0)),
                format_time(head, record_value(r, "head.ns", 0.0)), median_change(r, "head"),
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

static void print_pair_count(const json_t *r, FILE *out)
{
    const double elements = record_value(r, "elements", 0.0);
    if (elements > 0.0)
        fprintf(out, "%s %s, %s: %.4g instructions per element\n", record_text(r, "case"),
                record_text(r, "backend"), record_text(r, "build"),
                record_value(r, "instructions", 0.0) / elements);
}

static void print_pair(const json_t *records, FILE *out)
{
    size_t i, timed = 0;
    json_t *r;
    json_array_foreach(records, i, r)
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
            print_pair_count(r, out);
        else if (record_is(r, "t", "planned") && !record_is(r, "builds", "both"))
            fprintf(out, "%s %s: in %s alone\n", record_text(r, "case"),
                    record_text(r, "backend"), record_text(r, "builds"));
    }
    if (timed > 0)
        fputs("\nMedians of one posenc process: no verdict. A/A: base against its own copy. "
              "posenc compare "
              "starts several processes.\n",
              out);
}

/* Prints the version, the CPU, the measurement quality, and a note about other golden vectors. */
static void print_header(const json_t *records, FILE *out)
{
    const json_t *header = json_array_get(records, 0), *env = json_array_get(records, 1);
    const json_t *vectors = json_object_get(header, "vectors");
    text_print(out, "posenc %s", record_text(header, "tool.version"));
    if (json_is_false(json_object_get(vectors, "official")))
        text_print(out, ", not the official vectors");
    text_print(out, ", %s (%s), measurement quality %s\n", record_text(env, "cpu.name"),
               record_text(env, "env_id"), record_text(env, "quality.grade"));
}

static void write_console(const json_t *records, FILE *out)
{
    if (record_is(json_array_get(records, 0), "command", "pair")) {
        print_pair(records, out);
        return;
    }
    print_header(records, out);
    print_timings(records, out);
    print_counts(records, out);
    print_checks(records, out);
}

/* ---- The table of formats ---- */

enum {
    EXPORTS = FOR_VERIFY | FOR_BENCH | FOR_VECTORS,
    RECORDS = EXPORTS | FOR_PAIR,
};

static const struct output_format output_formats[] = {
    { "console", "txt", RECORDS, false, "text for a terminal", "*posenc*", NULL },
    { "jsonl", "jsonl", RECORDS, true,
      "the records themselves, one JSON object a line; posenc report reads them",
      "{\"t\":\"header\",\"schema\":\"posenc.results/*", NULL },
    { "md", "md", EXPORTS, false, "a page of Markdown", "## posenc: *", "report" },
    { "html", "html", EXPORTS, false, "a page for a browser, in one file",
      "<!DOCTYPE html>*<title>posenc*", "report" },
    { "csv", "csv", EXPORTS, false, "a line for each result, for spreadsheets",
      "cpu,t,kernel,*", "results" },
    { "junit", "xml", EXPORTS, false,
      "JUnit XML: a test for each result, for continuous integration",
      "<?xml *<testsuites name=\"posenc\"*", "results" },
    { "annotations", "txt", EXPORTS, false, "failures, as annotations of a workflow of GitHub",
      "::[enw]* title=*", "results" },
    { "summary", "md", EXPORTS, false, "summary of a job on GitHub, within its 1024 KiB",
      "## posenc: *", "results" },
    { "comment", "md", EXPORTS, false, "the same for a comment on GitHub, within its 64 KiB",
      "## posenc: *", "results" },
    { "badge", "json", EXPORTS, false, "the outcome, for shields.io",
      "{\"schemaVersion\":1,\"label\":\"posenc*", "results" },
    { "baseline", "jsonl", EXPORTS, false,
      "largest errors and shares of the roofline, for posenc compare",
      "{\"t\":\"header\",\"schema\":\"posenc.results/[12]\",\"mode\":\"baseline\"*",
      "results" },
    { "gha", "json", FOR_BENCH, false,
      "ratios for github-action-benchmark (customSmallerIsBetter)", "\\[?[]{]*", "results" },
    { "gbench", "json", FOR_BENCH, false, "timings as Google Benchmark writes them",
      "{?\"context\":{\"executable\":\"posenc\"*", "results" },
    { "bmf", "json", EXPORTS, false, "Bencher Metric Format", "{?[}\"]*", "results" },
    { "csv", "csv", FOR_TABLE, false, "a line a row, under a line of names", "[cpr]*,*", NULL },
    { "npy", "npy", FOR_TABLE, false, "one array, no bf16", "?NUMPY*", NULL },
    { "safetensors", "safetensors", FOR_TABLE, false, "all arrays by name",
      "????????{\"*\":{\"dtype\":*", NULL },
    { .name = NULL },
};

const struct output_format *format_next(const struct cli *cli,
                                        const struct output_format *format)
{
    format = format ? format + 1 : output_formats;
    while (format->name && !(format->commands & cli->bit))
        format++;
    return format->name ? format : NULL;
}

int format_write(const struct output_format *format, const json_t *records, FILE *out)
{
    if (format->by_line)
        return write_jsonl(records, out);
    write_console(records, out);
    return fflush(out) || ferror(out) ? -1 : 0;
}
