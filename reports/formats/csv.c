/*
 * CSV as RFC 4180 has it: a line for each check, timing, pair, change and count, and one for each finding of
 * posenc doctor.  Its columns are the members of all of them, by the names they have in the records; what a
 * record has not is empty.
 */
#include "reports/formats.h"
#include "reports/query.h"

#include <stdlib.h>
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
    "limit.resource",
    "limit.kind",
    "limit.variant",
    "limit.gbps",
    "limit.ratio",
    "vs_libm",
    "vs_autovec",
    "vs_apart",
    "null_pct",
    "refused",
    "base.ns",
    "head.ns",
    "ratio",
    "verdict",
    "floor",
    "budget",
    "confirmed",
    "launches",
    "failed.who",
    "failed.how",
    "null_ratio",
    "base.code",
    "head.code",
    "what",
    "worse",
    "metric",
    "base.status",
    "head.status",
    "base.max",
    "head.max",
    "base.value",
    "head.value",
    "limit",
    "witness",
    "want",
    "moved",
    "of",
    "problem",
    "build",
    "instructions",
    "loads",
    "stores",
    "branches",
    "vector",
    "elements",
    "per_element",
    "per_call",
    "by",
    "grade",
    "level",
    "cost_pct",
    "evidence",
    "fix",
    "command",
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

/* Whether a spreadsheet would take a text for a formula (OWASP, "CSV Injection"); numbers begin with
 * a minus, too. */
static bool is_formula(const char *text)
{
    char *end;
    (void)strtod(text, &end);
    return *text && strchr("=+-@\t\r", *text) && *end;
}

/* In quotes where a comma, a quote or a line end would break the line; quotes doubled.  What looks
 * like a formula gets an apostrophe, with which spreadsheets begin a text. */
static void csv_field(const char *text, FILE *out)
{
    const bool formula = is_formula(text);
    if (!formula && !strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputs(formula ? "\"'" : "\"", out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* A text, a number, or true or false. */
static void csv_value(const json_t *record, const char *path, FILE *out)
{
    const char *text = record_text(record, path);
    const json_t *member = json_object_get(record, path);
    double missing = -1.5e300, value = record_value(record, path, missing);
    if (*text)
        csv_field(text, out);
    else if (json_is_boolean(member))
        fputs(json_is_true(member) ? "true" : "false", out);
    else if (value > missing)
        fprintf(out, "%.10g", value);
}

/* What a line says besides its record: of which machine, and with which vectors. */
struct run {
    const json_t *env;
    const char *vectors;
};

static void csv_line(const struct run *run, const json_t *record, FILE *out)
{
    csv_field(record_text(run->env, "env_id"), out);
    for (int c = 0; c < N_COLUMNS; c++) {
        fputc(',', out);
        csv_value(record, columns[c], out);
    }
    fprintf(out, ",%s\r\n", run->vectors);
}

/* What doctor found: a line each, with the kind and the grade of the whole; nothing is a line, too. */
static void csv_findings(const struct run *run, const json_t *machine, FILE *out)
{
    const json_t *list = json_object_get(machine, "findings");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *finding = json_copy(json_array_get(list, i));
        json_object_set(finding, "t", json_object_get(machine, "t"));
        json_object_set(finding, "grade", json_object_get(machine, "grade"));
        csv_line(run, finding, out);
        json_decref(finding);
    }
    if (json_array_size(list) == 0)
        csv_line(run, machine, out);
}

int format_csv(const json_t *records, FILE *out, const struct render_options *options)
{
    static const char *const shown[] = { "conf", "bench", "pair", "change", "count" };
    (void)options;
    fputs("cpu", out);
    for (int c = 0; c < N_COLUMNS; c++)
        fprintf(out, ",%s", columns[c]);
    fputs(",vectors\r\n", out);
    struct run run = { .vectors = "" };
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        const char *kind = record_text(record, "t");
        if (strcmp(kind, "env") == 0)
            run.env = record;
        if (strcmp(kind, "header") == 0)
            run.vectors = header_vectors_note(record);
        if (strcmp(kind, "machine") == 0)
            csv_findings(&run, record, out);
        for (size_t k = 0; k < sizeof shown / sizeof *shown; k++)
            if (strcmp(kind, shown[k]) == 0)
                csv_line(&run, record, out);
    }
    return 0;
}
