/*
 * For a terminal: failures first, then the answer, then the evidence.
 */
#define _DEFAULT_SOURCE
#include "env.h"
#include "estimate.h"
#include "formats.h"
#include "sections.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { STANDARD_WIDTH = 100, LISTED_FAILURES = 20 };

struct console {
    FILE *out;
    int width;
    bool color;
    struct look look;
};

static int columns_of(FILE *out, int wanted)
{
    if (wanted > 0)
        return wanted;
    const char *columns = getenv("COLUMNS");
    int n = columns ? atoi(columns) : 0;
    struct winsize size;
    if (n <= 0 && fileno(out) >= 0 && ioctl(fileno(out), TIOCGWINSZ, &size) == 0)
        n = size.ws_col;
    return n >= 40 ? n : STANDARD_WIDTH;
}

/* The locale's character set by its name, as a terminal's user has set it. */
static bool utf8_here(void)
{
    const char *names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8") ||
                   strstr(value, "utf-8");
    }
    return false;
}

static struct console console_of(FILE *out, const struct render_options *options)
{
    const char *no_color = getenv("NO_COLOR");
    bool terminal = fileno(out) >= 0 && isatty(fileno(out));
    struct console c = { .out = out, .width = columns_of(out, options->width) };
    c.color = options->color >= 0 ? options->color : terminal && !(no_color && *no_color);
    c.look.utf8 = utf8_here();
    c.look.all = options->all;
    return c;
}

static void title(const struct console *c, const char *text)
{
    fprintf(c->out, "\n%s%s%s\n", c->color ? "\033[1m" : "", text, c->color ? "\033[0m" : "");
}

/* A table; where the window is too narrow for it with less between its columns, with heads in two
 * lines, not indented, or a block for each row. */
static void show(const struct console *c, struct grid *grid)
{
    for (int way = 0; way < 3 && grid_width(grid) + 2 > c->width; way++) {
        grid->gap = way % 2 ? 2 : 1;
        grid->split = way > 0;
    }
    int room = c->width - grid_width(grid);
    if (room >= 0)
        grid_console(grid, room >= 2 ? "  " : "", c->out);
    else
        grid_blocks(grid, "  ", c->width, c->out);
    grid_end(grid);
}

static void heading(const struct console *c, const struct results *r)
{
    json_t *trust = env_trust(r->env, json_object_get(r->footer, "noise"), median_null(r));
    const char *virt = record_text(r->env, "virt.kind");
    fprintf(c->out, "posenc %s   %s   %s%s%s   trust %s   mode %s\n",
            record_text(r->header, "tool.version"), record_text(r->env, "cpu.name"),
            record_text(r->env, "cpu.key"), *virt ? "/" : "", virt,
            r->env ? record_text(trust, "grade") : "-", record_text(r->header, "mode"));
    json_decref(trust);
    const char *emulator = record_text(r->env, "emulator");
    if (*emulator)
        fprintf(c->out, "  nothing was timed: %s\n", emulator);
    if (r->finished < r->runs)
        fprintf(c->out, "  incomplete: %d of %d runs did not finish\n", r->runs - r->finished,
                r->runs);
}

/* The grid's rows as a few lines each: what, where, and how to repeat it. */
static void show_failures(const struct console *c, const struct results *r)
{
    struct grid grid;
    int n = section_failures(r, c->look.all ? r->n_conf : LISTED_FAILURES, &grid);
    if (n > 0) {
        char text[80];
        snprintf(text, sizeof text, "%d failed", n);
        title(c, text);
    }
    for (size_t i = 5; i + 5 <= grid.cells_used; i += 5) {
        char *const *cell = grid.cells + i;
        fprintf(c->out, "  %sFAIL%s %s  %s\n", c->color ? "\033[31m" : "",
                c->color ? "\033[0m" : "", cell[0], cell[1]);
        fprintf(c->out, "       %s%s%s\n", cell[2], *cell[3] ? "; at " : "", cell[3]);
        if (*cell[4])
            fprintf(c->out, "       %s\n", cell[4]);
    }
    if (grid.cells_used / 5 > LISTED_FAILURES)
        fprintf(c->out,
                "  The same check on several backends is told once; there may be more.\n");
    grid_end(&grid);
}

/* Where the default is not the fastest. */
static void show_defaults(const struct console *c, const struct results *r, const json_t *model)
{
    const json_t *cases = json_object_get(model, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const char *id = record_text(json_array_get(cases, i), "case");
        char cost[128];
        default_cost(r, id, cost, sizeof cost);
        if (*cost)
            fprintf(c->out, "  %s: %s\n", id, cost);
    }
}

static void show_answers(const struct console *c, const struct results *r)
{
    for (size_t m = 0; m < r->n_models; m++) {
        const json_t *model = r->models[m];
        struct grid grid;
        if (section_answers(r, model, &c->look, &grid) == 0) {
            grid_end(&grid);
            continue;
        }
        title(c, record_text(model, "title"));
        show(c, &grid);
        show_defaults(c, r, model);
        char lines[512];
        if (!better_choice(r, model, lines, sizeof lines))
            continue;
        fputs("  To force one: POSENC_BACKEND=NAME.  The fastest over these shapes, as "
              "posenc_select() takes it:\n",
              c->out);
        for (const char *line = lines; *line; line += strcspn(line, "\n") + 1)
            fprintf(c->out, "    %.*s\n", (int)strcspn(line, "\n"), line);
    }
}

static void show_conformance(const struct console *c, const struct results *r)
{
    if (r->n_conf == 0)
        return;
    struct grid grid;
    title(c, "Conformance: checks passed, or failed of all, by kernel");
    section_matrix_by_kernel(r, &c->look, &grid);
    show(c, &grid);
    title(c, "By kind of evidence");
    section_matrix_by_suite(r, &c->look, &grid);
    show(c, &grid);
    static const char *const kernels[] = { "sinusoidal", "rope_table" };
    for (int k = 0; k < 2; k++) {
        if (section_errors_by_range(r, kernels[k], "exact", &grid) > 0) {
            char text[96];
            snprintf(text, sizeof text, "Largest error of %s, profile exact, by |position|",
                     kernels[k]);
            title(c, text);
            show(c, &grid);
        } else {
            grid_end(&grid);
        }
    }
    if (!c->look.all)
        return;
    title(c, "Worst errors");
    section_worst_errors(r, &grid);
    show(c, &grid);
}

static void show_benchmarks(const struct console *c, const struct results *r)
{
    for (size_t k = 0; k < r->n_kernels; k++) {
        struct grid grid;
        struct look look = c->look;
        if (section_benchmarks(r, r->kernels[k], &look, &grid) == 0) {
            grid_end(&grid);
            continue;
        }
        int space = c->width - grid_width(&grid) - 4;
        if (space >= 6) { /* bars take what is left */
            grid_end(&grid);
            look.bar = space < 24 ? space : 24;
            section_benchmarks(r, r->kernels[k], &look, &grid);
        }
        title(c, r->kernels[k]);
        show(c, &grid);
    }
}

static void summary(const struct console *c, const struct results *r)
{
    struct tally t = tally_conf(r, NULL, NULL, NULL);
    if (t.total == 0)
        return;
    const char *color = !c->color ? "" : t.fail + t.crash ? "\033[31m" : "\033[32m";
    fprintf(c->out,
            "\n%s%d failed, %d passed, %d crashed, %d skipped, %d cannot run here, %d weak%s\n",
            color, t.fail, t.pass, t.crash, t.skipped, t.unsupported, t.weak,
            c->color ? "\033[0m" : "");
}

/* A paragraph, broken at blanks. */
static void show_text(const struct console *c, const char *text, size_t bytes)
{
    int column = 0;
    for (size_t at = 0; at < bytes;) {
        int n = (int)strcspn(text + at, " \n");
        const char *gap = column == 0 ? "  " : column + 1 + n > c->width ? "\n  " : " ";
        fprintf(c->out, "%s%.*s", gap, n, text + at);
        column = (*gap == '\n' || column == 0 ? 2 : column + 1) + n;
        at += (size_t)n + strspn(text + at + n, " ");
    }
    fputc('\n', c->out);
}

static void show_estimates(const struct console *c, const json_t *records)
{
    struct grid grid;
    size_t n = 0;
    while (section_estimates(records, n, &grid) > 0) {
        if (n++ == 0)
            title(c, ESTIMATES_TITLE);
        else
            fputc('\n', c->out);
        show(c, &grid);
    }
    if (n == 0)
        return;
    fputc('\n', c->out);
    char *text = estimate_caveats(records);
    for (const char *line = text; line && *line; line += strcspn(line, "\n") + 1)
        show_text(c, line, strcspn(line, "\n"));
    free(text);
}

int render_console(const json_t *records, FILE *out, const struct render_options *options)
{
    struct console c = console_of(out, options);
    size_t machines = estimates_only(records) ? 0 : results_machines(records);
    for (size_t m = 0; m < machines; m++) {
        struct results r;
        if (results_make(records, m, &r))
            return -1;
        if (m)
            fputc('\n', out);
        heading(&c, &r);
        show_failures(&c, &r);
        show_answers(&c, &r);
        show_conformance(&c, &r);
        show_benchmarks(&c, &r);
        summary(&c, &r);
        results_free(&r);
    }
    show_estimates(&c, records);
    return 0;
}
