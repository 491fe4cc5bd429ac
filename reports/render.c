/*
 * The formats by name, and the two that need no thought.
 *
 * csv: one line a result, RFC 4180 quoting, the union of what conf and bench hold.
 */
#include "formats.h"
#include "records.h"

#include <string.h>

const char *const render_formats[] = { "console", "md", "jsonl", "csv", "junit", NULL };

int render(const char *format, const json_t *records, FILE *out,
           const struct render_options *options)
{
    static const struct render_options standard = { .color = -1 };
    static int (*const by_format[])(const json_t *, FILE *, const struct render_options *) = {
        render_console, render_markdown, render_jsonl, render_csv, render_junit,
    };
    for (int i = 0; render_formats[i]; i++)
        if (strcmp(render_formats[i], format) == 0)
            return by_format[i](records, out, options ? options : &standard) || fflush(out) ||
                           ferror(out)
                       ? -1
                       : 0;
    return -1;
}

int render_jsonl(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    for (size_t i = 0; i < json_array_size(records); i++)
        if (json_dumpf(json_array_get(records, i), out,
                       JSON_COMPACT | JSON_REAL_PRECISION(10)) ||
            fputc('\n', out) == EOF)
            return -1;
    return 0;
}

static const char *const columns[] = {
    "t",
    "kernel",
    "dtype",
    "profile",
    "stage",
    "case",
    "backend",
    "family",
    "suite",
    "status",
    "reason",
    "err.metric",
    "err.max",
    "err.limit",
    "err.witness",
    "err.got",
    "err.want",
    "err.coverage",
    "err.n",
    "err.misrounded",
    "footprint.name",
    "footprint.bytes",
    "threads",
    "rounds",
    "median_ns",
    "min_ns",
    "ci.level",
    "ci.lo",
    "ci.hi",
    "bytes",
    "gbps",
    "roof.kind",
    "roof.variant",
    "roof.gbps",
    "roof.ratio",
    "vs_libm",
    "vs_autovec",
    "null_pct",
    "refused",
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

/* In quotes where a comma, a quote or a line end would break the line; quotes doubled. */
static void csv_field(const char *text, FILE *out)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void csv_value(const json_t *record, const char *path, FILE *out)
{
    const char *text = record_text(record, path);
    double missing = -1.5e300, value = record_value(record, path, missing);
    if (*text)
        csv_field(text, out);
    else if (value > missing)
        fprintf(out, "%.10g", value);
}

int render_csv(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    fputs("cpu", out);
    for (int c = 0; c < N_COLUMNS; c++)
        fprintf(out, ",%s", columns[c]);
    fputs("\r\n", out);
    const json_t *env = NULL;
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        const char *kind = record_text(record, "t");
        if (strcmp(kind, "env") == 0)
            env = record;
        if (strcmp(kind, "conf") != 0 && strcmp(kind, "bench") != 0)
            continue;
        csv_field(record_text(env, "env_id"), out);
        for (int c = 0; c < N_COLUMNS; c++) {
            fputc(',', out);
            csv_value(record, columns[c], out);
        }
        fputs("\r\n", out);
    }
    return 0;
}
