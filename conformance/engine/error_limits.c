/* Reads the error limits of tables, finds rows, and lowers limits to measured errors; see error_limits.h. */
#define _POSIX_C_SOURCE 200809L
#include "error_limits.h"
#include "conformance/problem/cases.h"
#include "base/text/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 512, MOST_LINE = 1024, N_NUMERICS = 4 };

#define ROW_FORM "kernel family numerics range ulp|abs limit worst-case"

static const char *const built_in[] = {
#include "error_limits.inc"
    NULL
};

static struct error_limit limits[MOST_ROWS];
static size_t n_limits;

static const struct posenc_backend *const *extra_backends;
static size_t n_extra_backends;

const char *const range_name[N_RANGES] = { "2^10", "2^17", "2^20", "2^24", "2^31" };
const char *const range_id[N_RANGES] = { "p2e10", "p2e17", "p2e20", "p2e24", "p2e31" };

int64_t position_range_end(int range)
{
    static const int exponent[N_RANGES] = { 10, 17, 20, 24, 31 };
    return INT64_C(1) << exponent[range];
}

int range_of_position(int64_t position)
{
    int range = 0;
    while (range < N_RANGES - 1 && llabs(position) >= position_range_end(range))
        range++;
    return range;
}

/* ---- Lines ---- */

enum column { KERNEL, FAMILY, NUMERICS, RANGE, METRIC, LIMIT, WORST_CASE, COLUMNS };

/* A line of a file, and a copy that is cut into words. */
struct limit_line {
    char text[MOST_LINE], words[MOST_LINE];
    const char *word[COLUMNS];
    bool is_whole; /* false: it is too long, or holds a NUL */
};

static const char blanks[] = " \t\r\v\f";

/* Reads the next line without its newline; returns false at the end of the file. */
static bool read_line(FILE *file, struct limit_line *line)
{
    if (!fgets(line->text, MOST_LINE, file))
        return false;
    const size_t n = strcspn(line->text, "\n");
    line->is_whole = line->text[n] == '\n' || feof(file);
    line->text[n] = '\0';
    char *rest = memcpy(line->words, line->text, n + 1);
    for (enum column c = KERNEL; c < WORST_CASE; c++) {
        rest += strspn(rest, blanks);
        line->word[c] = rest;
        rest += strcspn(rest, blanks);
        if (*rest)
            *rest++ = '\0';
    }
    line->word[WORST_CASE] = rest + strspn(rest, blanks);
    return true;
}

/* Returns false for an empty line or a comment. A line that is too long or holds a NUL counts as a row, and is rejected
 * later. */
static bool is_row(const struct limit_line *line)
{
    return !line->is_whole || (*line->word[KERNEL] && line->text[0] != '#');
}

static void print_row(char row[ERROR_LIMIT_ROW], const char *kernel, const char *family,
                      const char *numerics, const char *range)
{
    snprintf(row, ERROR_LIMIT_ROW, "%s %s %s %s", kernel, family, numerics, range);
}

static struct error_limit read_row(const struct limit_line *line)
{
    const char *const *word = line->word;
    struct error_limit row = { .is_absolute = strcmp(word[METRIC], "abs") == 0,
                               .limit = strtod(word[LIMIT], NULL) };
    print_row(row.row, word[KERNEL], word[FAMILY], word[NUMERICS], word[RANGE]);
    snprintf(row.family, sizeof row.family, "%s", word[FAMILY]);
    return row;
}

/* ---- Errors in rows ---- */

bool is_table_kernel(enum posenc_kernel kernel)
{
    return kernel != POSENC_KERNEL_NONE && strcmp(kernel_stage(kernel), "table") == 0;
}

/* Returns true for the family of a backend of this program, or one that has built-in rows. */
static bool is_family(const char *name)
{
    const struct posenc_backend *backend;
    char family[32];
    bool found = false;
    for (size_t i = 0; (backend = posenc_backend_at(i)); i++)
        found = found || strcmp(backend->family, name) == 0;
    for (size_t i = 0; i < n_extra_backends; i++)
        found = found || strcmp(extra_backends[i]->family, name) == 0;
    for (const char *const *line = built_in; *line; line++)
        found = found || (**line != '#' && sscanf(*line, "%*s %31s", family) == 1 &&
                          strcmp(family, name) == 0);
    return found;
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Returns the reason why a row is wrong, and sets *wrong to the column; or returns NULL. */
static const char *find_error(const struct limit_line *line, enum column *wrong)
{
    static const char *const metrics[] = { "ulp", "abs" };
    const char *const *word = line->word;
    char *end;
    const double limit = strtod(word[LIMIT], &end);
    const struct {
        bool is_right;
        const char *reason;
    } checks[COLUMNS] = {
        [KERNEL] = { is_table_kernel(posenc_kernel_find(word[KERNEL])),
                     "no kernel that makes tables; expected sinusoidal or rope_table" },
        [FAMILY] = { is_family(word[FAMILY]), "no family of a backend (posenc list backends)" },
        [NUMERICS] = { is_one_of(word[NUMERICS], numerics_names, N_NUMERICS),
                       "no numerics mode; expected exact, hf_f32, ggml_f32 or torch_exp_f32" },
        [RANGE] = { is_one_of(word[RANGE], range_name, N_RANGES),
                    "no range; expected 2^10, 2^17, 2^20, 2^24 or 2^31" },
        [METRIC] = { is_one_of(word[METRIC], metrics, 2), "no metric; expected ulp or abs" },
        [LIMIT] = { !*end && limit > 0.0 && isfinite(limit),
                    "no limit; expected a number above 0" },
        [WORST_CASE] = { line->is_whole && text_is_plain(word[WORST_CASE]),
                         "no line of plain text, of at most 1000 bytes" },
    };
    for (*wrong = KERNEL; *wrong < COLUMNS; ++*wrong)
        if (!*word[*wrong])
            return "no error limit; expected " ROW_FORM;
    for (*wrong = KERNEL; *wrong < COLUMNS; ++*wrong)
        if (!checks[*wrong].is_right)
            return checks[*wrong].reason;
    *wrong = KERNEL;
    return NULL;
}

static const struct error_limit *find_row(const struct error_limit *rows, size_t n,
                                          const char *row)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].row, row) == 0)
            return &rows[i];
    return NULL;
}

/* Reads a file, and replaces the limits if all of its rows are right. */
static bool read_file(FILE *file, const char *name, char message[ERROR_LIMITS_MESSAGE])
{
    static struct error_limit rows[MOST_ROWS + 1];
    struct limit_line line;
    size_t n = 0;
    for (int number = 1; read_line(file, &line); number++) {
        enum column column = KERNEL;
        if (!is_row(&line))
            continue;
        const char *reason = find_error(&line, &column), *wrong = line.word[column];
        rows[n] = read_row(&line);
        if (!reason && find_row(rows, n, rows[n].row))
            reason = "there before with this family, mode and range; expected each once";
        if (!reason && n == MOST_ROWS)
            reason = "in one row too many; expected at most 512";
        if (reason) {
            snprintf(message, ERROR_LIMITS_MESSAGE, "%.200s:%d:%d: '%.80s' is %s", name, number,
                     (int)(wrong - line.words) + 1, *wrong ? wrong : line.text, reason);
            return false;
        }
        n++;
    }
    if (ferror(file))
        snprintf(message, ERROR_LIMITS_MESSAGE, "%.200s: %s", name, strerror(errno));
    else if (n == 0)
        snprintf(message, ERROR_LIMITS_MESSAGE,
                 "%.200s: holds no error limit; expected a line for each: " ROW_FORM, name);
    if (ferror(file) || n == 0)
        return false;
    memcpy(limits, rows, n * sizeof *rows);
    n_limits = n;
    return true;
}

bool error_limits_read(const char *path, char message[ERROR_LIMITS_MESSAGE])
{
    const char *name = path ? path : "built-in error limits";
    char *text = path ? NULL : cases_join_lines(built_in);
    FILE *file = NULL;
    bool right = false;
    if (path)
        file = fopen(path, "r");
    else if (text)
        file = fmemopen(text, strlen(text), "r");
    if (file) {
        right = read_file(file, name, message);
        fclose(file);
    } else {
        snprintf(message, ERROR_LIMITS_MESSAGE, "%.200s: %s", name, strerror(errno));
    }
    free(text);
    return right;
}

void error_limits_add_backends(const struct posenc_backend *const *backends, size_t n)
{
    extra_backends = backends;
    n_extra_backends = n;
}

static const struct error_limit *find_limit(enum posenc_kernel table, const char *family,
                                            const char *numerics, const char *range)
{
    char row[ERROR_LIMIT_ROW];
    print_row(row, posenc_kernel_name(table), family, numerics, range);
    return find_row(limits, n_limits, row);
}

const struct error_limit *error_limits_find(enum posenc_kernel table,
                                            const struct posenc_backend *backend,
                                            const char *numerics, int range)
{
    char message[ERROR_LIMITS_MESSAGE];
    if (!n_limits && !error_limits_read(NULL, message))
        return NULL;
    const struct error_limit *own =
        find_limit(table, backend->family, numerics, range_name[range]);
    return own ? own : find_limit(table, "libm", numerics, range_name[range]);
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

/* Returns the passing result with the largest error to which a row applies, or NULL. */
static const struct conf_result *find_worst(const struct error_limit *row,
                                            const struct conf_result *results, size_t n)
{
    const struct conf_result *worst = NULL;
    char own[ERROR_LIMIT_ROW];
    for (const struct conf_result *r = results; r < results + n; r++) {
        if (r->status != CONF_PASS || !r->range || !r->metric || !r->backend)
            continue;
        print_row(own, posenc_kernel_name(r->kernel), r->backend->family, r->numerics,
                  r->range);
        if (strcmp(own, row->row) == 0 && (strcmp(r->metric, "abs") == 0) == row->is_absolute &&
            (!worst || r->max > worst->max))
            worst = r;
    }
    return worst;
}

/* Copies a valid file with lowered limits. Returns the number of lowered limits. */
static int copy_lowered(FILE *out, FILE *in, const struct conf_result *results, size_t n)
{
    struct limit_line line;
    int lowered = 0;
    while (read_line(in, &line)) {
        const char *const *word = line.word;
        const struct error_limit row = read_row(&line);
        const struct conf_result *worst = is_row(&line) ? find_worst(&row, results, n) : NULL;
        const double limit = worst ? round_up(worst->max) : 0.0;
        if (limit > 0.0 && limit < row.limit) {
            fprintf(out, "%-14s %-8s %-7s %-5s %-6s %-8.3g %s\n", word[KERNEL], word[FAMILY],
                    word[NUMERICS], word[RANGE], word[METRIC], limit, worst->worst_at);
            lowered++;
        } else {
            fprintf(out, "%s\n", line.text);
        }
    }
    return lowered;
}

int error_limits_lower(const char *path, const struct conf_result *results, size_t n,
                       char message[ERROR_LIMITS_MESSAGE])
{
    char temporary[4096];
    if (!error_limits_read(path, message))
        return -1;
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *in = fopen(path, "r"), *out = in ? fopen(temporary, "w") : NULL;
    int lowered = out ? copy_lowered(out, in, results, n) : -1;
    bool good = out && !ferror(out) && !ferror(in);
    good = out && fclose(out) == 0 && good;
    if (!good || rename(temporary, path) != 0) {
        snprintf(message, ERROR_LIMITS_MESSAGE, "%.200s: %s", path, strerror(errno));
        remove(temporary);
        lowered = -1;
    }
    if (in)
        fclose(in);
    return lowered;
}
