/*
 * Error limits ("budgets") of the tables of each backend family, by range of positions. Reads them,
 * finds a row, and lowers limits to measured errors; limits are never raised.
 *
 * A line is  kernel family profile range metric limit witness ; the witness is the rest of the
 * line. Empty lines and lines that begin with # are comments.
 */
#define _POSIX_C_SOURCE 200809L
#include "judge.h"

#include "conformance/problem/cases.h"
#include "base/text/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BUDGETS = 512, MAX_LINE = 1024, MESSAGE = 512, N_PROFILES = 4 };

static const char *const builtin[] = {
#include "budgets.inc"
    NULL
};

static struct budget table[MAX_BUDGETS];
static size_t n_budgets;

enum kind { COMMENT, ROW, NEITHER };

/* ---- Names ---- */

static const struct posenc_backend *const *extra_backends; /* besides those of the library */
static size_t n_extra_backends;

void budgets_know(const struct posenc_backend *const *backends, size_t n)
{
    extra_backends = backends;
    n_extra_backends = n;
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Returns true for the family of a present backend, or of one with rows in the built-in limits. */
static bool is_family(const char *name)
{
    const struct posenc_backend *backend;
    for (size_t i = 0; (backend = posenc_backend_at(i)); i++)
        if (strcmp(backend->family, name) == 0)
            return true;
    for (size_t i = 0; i < n_extra_backends; i++)
        if (strcmp(extra_backends[i]->family, name) == 0)
            return true;
    for (const char *const *line = builtin; *line; line++) {
        char family[32] = "";
        if (**line != '#' && sscanf(*line, "%*s %31s", family) == 1 &&
            strcmp(family, name) == 0)
            return true;
    }
    return false;
}

static bool is_table(const char *name)
{
    const enum posenc_kernel kernel = posenc_kernel_find(name);
    return kernel != POSENC_KERNEL_COUNT && strcmp(kernel_stage(kernel), "table") == 0;
}

enum column { KERNEL, FAMILY, PROFILE, RANGE, METRIC, LIMIT, WITNESS, COLUMNS };

/* Returns the error in a name of a row, and the column of that name; NULL if all names exist. */
static const char *wrong_name(const struct budget *b, enum column *column)
{
    static const char *const metrics[] = { "ulp", "abs" };
    *column = KERNEL;
    if (!is_table(b->kernel))
        return "no kernel that makes tables; expected sinusoidal or rope_table";
    *column = FAMILY;
    if (!is_family(b->family))
        return "no family of a backend (posenc list backends)";
    *column = PROFILE;
    if (!is_one_of(b->profile, profile_names, N_PROFILES))
        return "no profile; expected exact, hf_f32, ggml_f32 or torch_exp_f32";
    *column = RANGE;
    if (!is_one_of(b->range, range_name, N_RANGES))
        return "no range; expected 2^10, 2^17, 2^20, 2^24 or 2^31";
    *column = METRIC;
    return is_one_of(b->metric, metrics, 2) ? NULL : "no metric; expected ulp or abs";
}

static bool budget_matches(const struct budget *b, const char *kernel, const char *family,
                           const char *profile, const char *range)
{
    return strcmp(b->kernel, kernel) == 0 && strcmp(b->family, family) == 0 &&
           strcmp(b->profile, profile) == 0 && strcmp(b->range, range) == 0;
}

/* ---- Lines ---- */

/* Parses a line. Sets at[column] to the start of each column, at[COLUMNS] to the place of an
 * error. */
static enum kind parse_line(const char *line, struct budget *b, int at[COLUMNS + 1])
{
    memset(at, 0, (COLUMNS + 1) * sizeof *at);
    if (line[strspn(line, " \t\r\v\f")] == '\0' || line[0] == '#')
        return COMMENT;
    *b = (struct budget){ .limit = 0.0 };
    const int read =
        sscanf(line, " %n%31s %n%31s %n%15s %n%15s %n%11s %n%lf %n", &at[KERNEL], b->kernel,
               &at[FAMILY], b->family, &at[PROFILE], b->profile, &at[RANGE], b->range,
               &at[METRIC], b->metric, &at[LIMIT], &b->limit, &at[WITNESS]);
    const int wrong = read < LIMIT                                               ? read
                      : !(b->limit > 0.0) || !isfinite(b->limit)                 ? LIMIT
                      : !line[at[WITNESS]] || !text_is_plain(line + at[WITNESS]) ? WITNESS
                                                                                 : COLUMNS;
    at[COLUMNS] = wrong < COLUMNS ? at[wrong] : 0;
    if (wrong < COLUMNS)
        return NEITHER;
    snprintf(b->worst_at, sizeof b->worst_at, "%s", line + at[WITNESS]);
    b->worst_at[strcspn(b->worst_at, "\r")] = '\0';
    return ROW;
}

/* Reads the next line without its newline; returns false at the end. A line that is too long or
 * holds a NUL is neither a row nor a comment. */
static bool next_line(FILE *file, char line[MAX_LINE], struct budget *b, enum kind *kind,
                      int at[COLUMNS + 1])
{
    if (!fgets(line, MAX_LINE, file))
        return false;
    const size_t n = strcspn(line, "\n");
    const bool whole = line[n] == '\n' || feof(file);
    line[n] = '\0';
    *kind = parse_line(line, b, at);
    *kind = whole ? *kind : NEITHER;
    return true;
}

/* Returns true if the names of row n exist and no earlier row has the same ones. Otherwise writes a
 * message and sets *place to its place in the line. */
static bool check_row(const struct budget *rows, size_t n, enum kind kind, const char *line,
                      const int at[COLUMNS + 1], int *place, char *error)
{
    const struct budget *b = &rows[n];
    const char *const names[] = { b->kernel, b->family, b->profile, b->range, b->metric };
    *place = at[COLUMNS];
    if (kind != ROW || n == MAX_BUDGETS) {
        snprintf(error, MESSAGE / 2,
                 "'%.80s' is no budget: kernel family profile range ulp|abs limit witness, "
                 "at most %d of them",
                 line, MAX_BUDGETS);
        return false;
    }
    enum column column;
    const char *wrong = wrong_name(b, &column);
    for (size_t i = 0; i < n && !wrong; i++)
        if (budget_matches(&rows[i], b->kernel, b->family, b->profile, b->range)) {
            column = KERNEL;
            wrong = "there before with this family, profile and range; expected each once";
        }
    if (wrong) {
        *place = at[column];
        snprintf(error, MESSAGE / 2, "%s: %s", names[column], wrong);
    }
    return !wrong;
}

/* Reads a file, and replaces the table if all of its rows are valid. */
static int read_all(FILE *file, const char *name, char *error)
{
    static struct budget rows[MAX_BUDGETS + 1];
    char line[MAX_LINE], wrong[MESSAGE / 2];
    size_t n = 0;
    enum kind kind;
    int at[COLUMNS + 1], place;
    for (int number = 1; next_line(file, line, &rows[n], &kind, at); number++) {
        if (kind != COMMENT && !check_row(rows, n, kind, line, at, &place, wrong)) {
            snprintf(error, MESSAGE, "%.200s:%d:%d: %s", name, number, place + 1, wrong);
            return -1;
        }
        n += kind == ROW;
    }
    if (ferror(file))
        snprintf(error, MESSAGE, "%s: %s", name, strerror(errno));
    else if (n == 0)
        snprintf(error, MESSAGE,
                 "%s: holds no budget; expected a line for each: kernel family profile range "
                 "ulp|abs limit witness",
                 name);
    if (ferror(file) || n == 0)
        return -1;
    memcpy(table, rows, n * sizeof *rows);
    n_budgets = n;
    return 0;
}

int budgets_read(const char *path, char *error)
{
    char *text = path ? NULL : join_lines(builtin);
    FILE *file = path ? fopen(path, "r") : text ? fmemopen(text, strlen(text), "r") : NULL;
    int result = -1;
    if (file) {
        result = read_all(file, path ? path : "built-in budgets", error);
        fclose(file);
    } else {
        snprintf(error, MESSAGE, "%s: %s", path ? path : "built-in budgets", strerror(errno));
    }
    free(text);
    return result;
}

const struct budget *budget_find(const char *kernel, const char *family, const char *profile,
                                 const char *range)
{
    char error[MESSAGE];
    if (!n_budgets && budgets_read(NULL, error) != 0)
        return NULL;
    for (size_t i = 0; i < n_budgets; i++)
        if (budget_matches(&table[i], kernel, family, profile, range))
            return &table[i];
    return NULL;
}

/* ---- Lowering limits ---- */

/* Returns the least number of three significant digits that is not below the value. A step of
 * 1/1000 of the value is at most one unit of the last digit. */
static double round_up(double value)
{
    char text[32];
    double rounded = 0.0;
    for (double above = value; rounded < value; above *= 1.001) {
        snprintf(text, sizeof text, "%.2e", above);
        rounded = strtod(text, NULL);
    }
    return rounded;
}

/* Returns the worst result that a row applies to, or NULL. */
static const struct conf_result *worst_of(const struct budget *b,
                                          const struct conf_result *results, size_t n)
{
    const struct conf_result *worst = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct conf_result *r = &results[i];
        if (r->status != CONF_PASS || !r->range || !r->metric || !r->backend ||
            strcmp(r->range, b->range) != 0 || strcmp(r->metric, b->metric) != 0 ||
            strcmp(r->profile, b->profile) != 0 || strcmp(r->backend->family, b->family) != 0 ||
            strcmp(posenc_kernel_name(r->kernel), b->kernel) != 0)
            continue;
        if (!worst || r->max > worst->max)
            worst = r;
    }
    return worst;
}

static int write_lowered(FILE *out, FILE *in, const struct conf_result *results, size_t n)
{
    char line[MAX_LINE];
    struct budget b;
    enum kind kind;
    int lowered = 0, at[COLUMNS + 1];
    while (next_line(in, line, &b, &kind, at)) {
        const struct conf_result *worst = kind == ROW ? worst_of(&b, results, n) : NULL;
        double limit = worst ? round_up(worst->max) : 0.0;
        if (worst && limit > 0.0 && limit < b.limit) {
            fprintf(out, "%-14s %-8s %-7s %-5s %-6s %-8.3g %s\n", b.kernel, b.family, b.profile,
                    b.range, b.metric, limit, worst->worst_at);
            lowered++;
        } else
            fprintf(out, "%s\n", line);
    }
    return lowered;
}

int budgets_update(const char *path, const struct conf_result *results, size_t n, char *error)
{
    char temporary[4096];
    if (budgets_read(path, error) != 0)
        return -1;
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *in = fopen(path, "r"), *out = in ? fopen(temporary, "w") : NULL;
    int lowered = out ? write_lowered(out, in, results, n) : -1;
    bool good = out && !ferror(out) && !ferror(in);
    good = out && fclose(out) == 0 && good;
    if (!good || rename(temporary, path) != 0) {
        snprintf(error, MESSAGE, "%s: %s", path, strerror(errno));
        remove(temporary);
        lowered = -1;
    }
    if (in)
        fclose(in);
    return lowered;
}
