/*
 * CSV: a line for each result, with RFC 4180 quoting.  Its columns are those of both kinds of
 * records, conf and bench; what a record has not is empty.
 */
#include "reports/formats.h"
#include "reports/records.h"

#include <string.h>

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
    "vs_apart",
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

int format_csv(const json_t *records, FILE *out, const struct render_options *options)
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
