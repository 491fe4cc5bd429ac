/*
 * The budgets: which error each family's tables may have, by range of positions (see
 * budgets.txt).  Reading them, finding a row, and the ratchet that only ever lowers a limit.
 *
 * A line is  kernel family profile range metric limit witness ; the witness is the rest of the
 * line.  Empty lines and lines that begin with # are comments.
 */
#define _POSIX_C_SOURCE 200809L
#include "suite.h"

#include "conformance/problem/cases.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BUDGETS = 512, MAX_LINE = 1024, MESSAGE = 512 };

static const char *const builtin[] = {
#include "budgets.inc"
};

static struct budget table[MAX_BUDGETS];
static size_t n_budgets;

/* 1: a row, 0: a comment, -1: neither. */
static int parse_line(const char *line, struct budget *b)
{
    static const char *const metrics[] = { "ulp", "abs" };
    int witness = 0;
    if (line[strspn(line, " \t\r\n")] == '\0' || line[0] == '#')
        return 0;
    *b = (struct budget){ .limit = 0.0 };
    int fields = sscanf(line, "%31s %31s %15s %15s %11s %lf %n", b->kernel, b->family,
                        b->profile, b->range, b->metric, &b->limit, &witness);
    if (fields != 6 || !witness || !(b->limit > 0.0) || !isfinite(b->limit) ||
        (strcmp(b->metric, metrics[0]) != 0 && strcmp(b->metric, metrics[1]) != 0) ||
        posenc_kernel_find(b->kernel) == POSENC_KERNEL_COUNT)
        return -1;
    snprintf(b->witness, sizeof b->witness, "%s", line + witness);
    b->witness[strcspn(b->witness, "\r\n")] = '\0';
    return 1;
}

/* The next line without its end. */
static bool next_line(const char **text, char *line)
{
    if (!**text)
        return false;
    size_t n = strcspn(*text, "\n"), kept = n < MAX_LINE - 1 ? n : MAX_LINE - 1;
    memcpy(line, *text, kept);
    line[kept] = '\0';
    *text += n + ((*text)[n] == '\n');
    return true;
}

static int parse_all(const char *text, const char *name, char *error)
{
    struct budget *rows = calloc(MAX_BUDGETS, sizeof *rows);
    char line[MAX_LINE];
    size_t n = 0;
    int number = 0, kind = rows ? 0 : -1;
    while (rows && kind >= 0 && next_line(&text, line)) {
        number++;
        kind = n < MAX_BUDGETS && strlen(line) < MAX_LINE - 1 ? parse_line(line, rows + n) : -1;
        n += kind == 1;
    }
    if (kind >= 0 && n > 0) {
        memcpy(table, rows, n * sizeof *rows);
        n_budgets = n;
    } else if (!rows)
        snprintf(error, MESSAGE, "%s: out of memory", name);
    else if (kind >= 0)
        snprintf(error, MESSAGE,
                 "%s: holds no budget; expected a line for each: kernel family profile range "
                 "ulp|abs limit witness",
                 name);
    else
        snprintf(error, MESSAGE,
                 "%s: line %d: '%.80s' is no budget: kernel family profile range ulp|abs limit "
                 "witness",
                 name, number, line);
    free(rows);
    return kind >= 0 && n > 0 ? 0 : -1;
}

static char *read_text(const char *path, char *error)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        snprintf(error, MESSAGE, "%s: %s", path, strerror(errno));
        return NULL;
    }
    enum { LIMIT = 1 << 20 };
    char *text = malloc(LIMIT + 1);
    size_t n = text ? fread(text, 1, LIMIT, file) : 0;
    bool bad = !text || ferror(file) || n == LIMIT || memchr(text, '\0', n);
    fclose(file);
    if (bad) {
        snprintf(error, MESSAGE, "%s: no readable text file under 1 MB", path);
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

int budgets_read(const char *path, char *error)
{
    snprintf(error, MESSAGE, "out of memory");
    char *text =
        path ? read_text(path, error) : lines_joined(builtin, sizeof builtin / sizeof *builtin);
    int result = text ? parse_all(text, path ? path : "built-in budgets", error) : -1;
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
        if (strcmp(table[i].kernel, kernel) == 0 && strcmp(table[i].family, family) == 0 &&
            strcmp(table[i].profile, profile) == 0 && strcmp(table[i].range, range) == 0)
            return &table[i];
    return NULL;
}

/* ---- The ratchet ---- */

/* The least number of three significant digits that is not below. */
static double round_up(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.2e", value);
    double rounded = strtod(text, NULL);
    if (rounded < value) {
        double step = pow(10.0, floor(log10(value)) - 2.0);
        snprintf(text, sizeof text, "%.2e", rounded + step);
        rounded = strtod(text, NULL);
    }
    return rounded;
}

/* The worst result a row speaks for, or NULL. */
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

static int write_lowered(FILE *out, const char *text, const struct conf_result *results,
                         size_t n)
{
    char line[MAX_LINE];
    int lowered = 0;
    while (next_line(&text, line)) {
        struct budget b;
        const struct conf_result *worst =
            parse_line(line, &b) == 1 ? worst_of(&b, results, n) : NULL;
        double limit = worst ? round_up(worst->max) : 0.0;
        if (worst && limit > 0.0 && limit < b.limit) {
            fprintf(out, "%-14s %-8s %-7s %-5s %-6s %-8.3g %s\n", b.kernel, b.family, b.profile,
                    b.range, b.metric, limit, worst->witness);
            lowered++;
        } else
            fprintf(out, "%s\n", line);
    }
    return lowered;
}

int budgets_update(const char *path, const struct conf_result *results, size_t n, char *error)
{
    char temporary[4096];
    char *text = read_text(path, error);
    if (!text)
        return -1;
    int lowered = -1;
    FILE *out = NULL;
    if (parse_all(text, path, error) != 0)
        goto done;
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.new", path) >= sizeof temporary ||
        !(out = fopen(temporary, "wb"))) {
        snprintf(error, MESSAGE, "%s.new: %s", path, strerror(errno));
        goto done;
    }
    lowered = write_lowered(out, text, results, n);
    bool bad = ferror(out) != 0;
    bad = fclose(out) != 0 || bad;
    if (bad || rename(temporary, path) != 0) {
        snprintf(error, MESSAGE, "%s: %s", path, strerror(errno));
        remove(temporary);
        lowered = -1;
    }
done:
    free(text);
    return lowered;
}
