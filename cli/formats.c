/*
 * Writes JSON Lines and tables for a terminal (see outputs.h). Python programs write the other formats. The console
 * format has a table for each kind of record, such as counts of instructions, and one of all checks:
 *
 *     case                                      backend         per element      per call
 *     alibi/f32/given/count                     scalar               12.750          2118
 */
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

/* Writes "29.2 ns", "1.87 us" or "12.3 ms". */
static const char *format_time(char text[TIME_BYTES], double ns)
{
    static const char *const units[] = { "ns", "us", "ms", "s" };
    int unit = 0;
    for (; unit < 3 && ns >= 999.5; unit++)
        ns *= 1e-3;
    snprintf(text, TIME_BYTES, "%.3g %s", ns, units[unit]);
    return text;
}

struct formatted_error format_error(double max, double limit, const char *metric)
{
    enum { DIGITS = 17 }; /* distinguish any two f64 */
    struct formatted_error shown;
    const char *unit = strcmp(metric, "pair_ulp") == 0 ? "pair ulp"
                       : strcmp(metric, "exact") == 0  ? "different"
                                                       : metric;
    int digits = 3;
    do {
        snprintf(shown.error, sizeof shown.error, "%.*g %s", digits, max, unit);
        snprintf(shown.limit, sizeof shown.limit, "%.*g", digits, limit);
    } while (digits++ < DIGITS && isfinite(max) &&
             (strtod(shown.error, NULL) <= strtod(shown.limit, NULL)) != (max <= limit));
    return shown;
}

/* ---- The console format: tables of results, and failures ---- */

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

static void print_timing(const json_t *row, FILE *out)
{
    const double median = record_value(row, "median_ns", (double)NAN),
                 low = record_value(row, "ci.lo", median),
                 high = record_value(row, "ci.hi", median),
                 speedup = record_value(row, "speedup_libm", (double)NAN);
    char time[TIME_BYTES], speedup_text[32] = "-"; /* libm was not timed */
    if (!isnan(speedup))
        snprintf(speedup_text, sizeof speedup_text, "%.2fx", speedup);
    text_print(out, "%8s  %5.1f %%  %6.3g  %8.0f %%  %7s\n", format_time(time, median),
               100.0 * fmax(high - median, median - low) / median,
               record_value(row, "gbps", (double)NAN),
               100.0 * record_value(row, "roofline.share", (double)NAN), speedup_text);
}

static void print_count(const json_t *row, FILE *out)
{
    const char *build = record_text(row, "build"); /* of posenc pair */
    text_print(out, "%12.3f  %12.0f%s%s\n", record_value(row, "per_element", (double)NAN),
               record_value(row, "per_call", (double)NAN), *build ? "  " : "", build);
}

static double median_change(const json_t *samples, const char *path)
{
    const json_t *list = json_object_get(json_object_get(samples, "ratios"), path);
    double values[128];
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list) && n < sizeof values / sizeof *values; i++)
        values[n++] = record_double(json_array_get(list, i), (double)NAN);
    return 100.0 * expm1(stats_median(values, n));
}

static void print_samples(const json_t *row, FILE *out)
{
    char base[TIME_BYTES], head[TIME_BYTES];
    if (!record_is(row, "outcome", "timed"))
        text_print(out, "%s: %s: %s\n", record_text(row, "who"), record_text(row, "outcome"),
                   record_text(row, "reason"));
    else
        text_print(out, "%8s  %8s  %+6.1f %%  %+6.1f %%\n",
                   format_time(base, record_value(row, "base.ns", 0.0)),
                   format_time(head, record_value(row, "head.ns", 0.0)),
                   median_change(row, "head"), median_change(row, "control"));
}

static void print_change(const json_t *row, FILE *out)
{
    const json_t *worse = json_object_get(row, "worse");
    text_print(out, "%.0f of %.0f values moved, at %s: %s\n", record_value(row, "moved", 0.0),
               record_value(row, "of", 0.0), record_text(row, "worst_at"),
               json_is_true(worse)    ? "worse"
               : json_is_false(worse) ? "better"
                                      : "changed");
}

static void print_agreement(const json_t *row, FILE *out)
{
    text_print(out, "%.0f of %.0f values moved, %.0f of %.0f checks failed\n",
               record_value(row, "moved", 0.0), record_value(row, "values", 0.0),
               record_value(row, "failed", 0.0), record_value(row, "cases", 0.0));
}

static void print_build(const json_t *row, FILE *out)
{
    text_print(out, "in %s alone\n", record_text(row, "builds"));
}

/* Tables of the console, by the kind of their records. Each row begins with the case, or the kernel, and the backend.
 * Cases that both builds have are in the table of samples. */
static const struct {
    const char *kind, *columns; /* names of further columns */
    void (*print)(const json_t *row, FILE *out);
} console_tables[] = {
    { "bench", "    time       +-    GB/s  % roofline  vs libm", print_timing },
    { "count", " per element      per call", print_count },
    { "planned", "build", print_build },
    { "samples",
      "    base      head    change       A/A  (medians; posenc compare judges them)",
      print_samples },
    { "change", "outputs of head", print_change },
    { "agreement", "outputs of head", print_agreement },
};
enum { CONSOLE_TABLES = sizeof console_tables / sizeof *console_tables };

static void print_rows(const json_t *records, size_t table, FILE *out)
{
    size_t i, n = 0;
    json_t *row;
    json_array_foreach(records, i, row)
    {
        const char *id = record_text(row, *record_text(row, "case") ? "case" : "kernel");
        if (!record_is(row, "t", console_tables[table].kind) ||
            record_is(row, "builds", "both"))
            continue;
        if (n++ == 0)
            text_print(out, "%-40s  %-13s  %s\n", "case", "backend",
                       console_tables[table].columns);
        text_print(out, "%-40s  %-13s  ", id, record_text(row, "backend"));
        if (*record_text(row, "rejected"))
            text_print(out, "%s\n", record_text(row, "rejected"));
        else
            console_tables[table].print(row, out);
    }
}

/* ---- Checks ---- */

bool check_has_failed(const json_t *check)
{
    return record_is(check, "status", "fail") || record_is(check, "status", "crash");
}

static void print_failure(const json_t *check, FILE *out)
{
    const char *metric = record_text(check, "error.metric"),
               *reason = record_text(check, "reason"), *command = record_text(check, "command"),
               *place = record_text(check, "error.worst_at"),
               *mistake = record_text(check, "mistake"), *build = record_text(check, "build");
    const bool has_place = *place && strstr(reason, place); /* and the values */
    text_print(out, "%s  %s  %s%s%s\n", record_is(check, "status", "crash") ? "CRASH" : "FAIL",
               record_text(check, "backend"), record_text(check, "case"), *build ? "  " : "",
               build);
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

/* Numbers of checks that ran and that failed, for each kernel and backend, and in total. */
struct checks_table {
    size_t n_backends;
    const char *backends[BACKENDS_MAX];
    bool has_kernel[POSENC_KERNEL_COUNT];
    size_t ran[POSENC_KERNEL_COUNT][BACKENDS_MAX], failed[POSENC_KERNEL_COUNT][BACKENDS_MAX];
    size_t n, n_failed, n_passed;
};

static void count_check(struct checks_table *table, const json_t *check)
{
    const enum posenc_kernel kernel = posenc_kernel_find(record_text(check, "kernel"));
    const char *backend = record_text(check, "backend");
    size_t b = 0;
    table->n++;
    table->n_failed += check_has_failed(check);
    table->n_passed += record_is(check, "status", "pass");
    if (kernel == POSENC_KERNEL_NONE)
        return;
    table->has_kernel[kernel] = true;
    while (b < table->n_backends && strcmp(table->backends[b], backend) != 0)
        b++;
    if (b == BACKENDS_MAX || record_is(check, "status", "unsupported"))
        return;
    table->backends[b] = backend;
    table->n_backends += b == table->n_backends;
    table->ran[kernel][b] += !record_is(check, "status", "skipped");
    table->failed[kernel][b] += check_has_failed(check);
}

static void print_checks_table(const struct checks_table *table, FILE *out)
{
    text_print(out, "%-18s", "checks");
    for (size_t b = 0; b < table->n_backends; b++)
        text_print(out, "  %s", table->backends[b]);
    fputc('\n', out);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        if (!table->has_kernel[k] || table->n_backends == 0)
            continue;
        text_print(out, "%-18s", posenc_kernel_name((enum posenc_kernel)k));
        for (size_t b = 0; b < table->n_backends; b++) {
            char cell[48] = "-";
            if (table->failed[k][b] > 0)
                snprintf(cell, sizeof cell, "%zu of %zu failed", table->failed[k][b],
                         table->ran[k][b]);
            else if (table->ran[k][b] > 0)
                snprintf(cell, sizeof cell, "%zu", table->ran[k][b]);
            text_print(out, "  %*s", (int)strlen(table->backends[b]), cell);
        }
        fputc('\n', out);
    }
}

/* Prints the first LISTED failures, a table of the checks, and the totals. */
static void print_checks(const json_t *records, FILE *out)
{
    enum { LISTED = 20 };
    struct checks_table table = { 0 };
    size_t i;
    json_t *check;
    json_array_foreach(records, i, check)
    {
        if (!record_is(check, "t", "check"))
            continue;
        count_check(&table, check);
        if (check_has_failed(check) && table.n_failed <= LISTED)
            print_failure(check, out);
    }
    if (table.n == 0)
        return;
    if (table.n_failed > LISTED)
        text_print(out, "and %zu more: --out jsonl has them all\n", table.n_failed - LISTED);
    print_checks_table(&table, out);
    text_print(out, "%zu failed, %zu passed, %zu skipped\n", table.n_failed, table.n_passed,
               table.n - table.n_failed - table.n_passed);
}

static void write_console(const json_t *records, FILE *out)
{
    print_header(records, out);
    for (size_t table = 0; table < CONSOLE_TABLES; table++)
        print_rows(records, table, out);
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
