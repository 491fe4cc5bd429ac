/*
 * The section of the largest errors: of tables by range of positions, and of everything by
 * backend.
 */
#include "reports/report.h"
#include "reports/show.h"
#include "reports/worst.h"

#include <string.h>

/* f32, and what else was timed, or was checked alone. */
static bool is_of_interest(const struct results *r, const char *dtype)
{
    bool plain = strcmp(dtype, "f32") == 0, other = false;
    for (size_t i = 0; i < r->n_bench; i++)
        if (strcmp(r->bench[i].dtype, dtype) == 0)
            return true;
    for (size_t i = 0; i < r->n_conf && !other; i++)
        other = strcmp(r->conf[i].dtype, "f32") == 0;
    return plain || !other;
}

static void worst_error_cells(const struct conf_row *c, int since, struct table *table)
{
    table_cell(table, "%s", c->kernel);
    table_cell(table, "%s", c->dtype);
    table_cell(table, "%s", c->profile);
    table_cell(table, "%s", c->backend);
    const struct shown_error shown = show_judged(c->max, c->limit, c->metric);
    table_cell(table, "%s", shown.error);
    table_cell(table, "%s", shown.limit);
    if (since)
        table_cell(table, "%s; judged so from 2^%d", c->witness, since);
    else
        table_cell(table, "%s", c->witness);
    if (c->checked > 0.0)
        table_cell(table, "%s, %s values", c->coverage, show_count(c->checked));
    else
        table_cell(table, "%s", c->coverage);
}

/* Worst errors of each kernel, type and profile by backend. */
static void add_worst_errors(struct node *into, const struct results *r)
{
    static const char *const profiles[] = { "exact", "hf_f32", "ggml_f32", "torch_exp_f32",
                                            "given" };
    static const char *const dtypes[] = { "f32", "f16", "bf16" };
    enum { PROFILES = sizeof profiles / sizeof *profiles, ALL = 3 * PROFILES };
    struct node *section = add_section(
        into, DETAIL, "Worst error of every kernel and backend, with where it was met");
    struct table *table = add_table(
        section, EVERYWHERE, "kernel|type|profile|backend|>worst error|>limit|at|evidence");
    const struct conf_row **rows = malloc((r->n_conf + 1) * sizeof *rows);
    for (size_t k = 0; rows && k < r->n_kernels; k++) {
        size_t n = measured_rows(r, r->kernels[k], rows);
        for (int i = 0; i < ALL; i++)
            for (size_t b = 0; b < r->n_backends; b++) {
                struct worst_of of = { .dtype = dtypes[i / PROFILES],
                                       .profile = profiles[i % PROFILES],
                                       .backend = r->backends[b].id };
                struct worst worst;
                worst_among(rows, is_of_interest(r, of.dtype) ? n : 0, &of, &worst);
                for (size_t w = 0; w < worst.n; w++)
                    worst_error_cells(worst.of[w], worst.since[w], table);
            }
    }
    free(rows);
}

/* The ranges of a kernel and profile in order of appearance. */
static size_t ranges_of(const struct results *r, const char *kernel, const char *profile,
                        const char **ranges, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_conf; i++) {
        const struct conf_row *c = &r->conf[i];
        if (!*row_range(c) || strcmp(c->kernel, kernel) != 0 ||
            strcmp(c->profile, profile) != 0 || !*c->metric || *narrow_name(c->dtype))
            continue;
        size_t k = 0;
        while (k < n && strcmp(ranges[k], row_range(c)) != 0)
            k++;
        if (k == n && n < most)
            ranges[n++] = row_range(c);
    }
    return n;
}

/* "everywhere", "below 2^24", "nowhere": where a backend is within 1 ulp, of what its ranges say. */
static void reach_cell(const struct worst *worst, const char *const *ranges, size_t n,
                       struct table *table)
{
    const char *last_right = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!worst_is_exact(&worst[i])) {
            if (last_right)
                table_cell(table, "below 2^%s", last_right + strlen("p2e"));
            else
                table_cell(table, "nowhere");
            return;
        }
        last_right = worst[i].n ? ranges[i] : last_right;
    }
    table_cell(table, "everywhere");
}

/* The errors of a backend, range by range; false where there is none. */
static bool find_worst(const struct results *r, struct worst_of of, const char *const *ranges,
                       size_t n, struct worst *worst)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        of.range = ranges[i];
        worst_errors(r, &of, &worst[i]);
        any = any || worst[i].n;
    }
    return any;
}

/* The tables of a kernel and profile. */
static void by_position(struct node *section, const struct results *r, enum medium medium,
                        const char *kernel, const char *profile)
{
    enum { MOST = TABLE_COLUMNS - 2 };
    const char *ranges[MOST];
    size_t n = ranges_of(r, kernel, profile, ranges, MOST);
    if (n == 0)
        return;
    char head[512] = "backend";
    size_t at = strlen(head);
    for (size_t i = 0; i < n && at < sizeof head; i++)
        at +=
            (size_t)snprintf(head + at, sizeof head - at, "|><2^%s", ranges[i] + strlen("p2e"));
    if (at < sizeof head)
        snprintf(head + at, sizeof head - at, "|?within 1 ulp");
    add_text(section, PARAGRAPH, medium,
             "Largest error of `%s`, profile `%s`, by |position|:", kernel, profile);
    struct table *table = add_table(section, medium, head);
    for (size_t b = 0; b < r->n_backends; b++) {
        struct worst_of of = { kernel, "f32", r->backends[b].id, profile, NULL, 0.0 };
        struct worst worst[MOST];
        char text[WORST_TEXT];
        if (!find_worst(r, of, ranges, n, worst))
            continue;
        table_cell(table, "%s", r->backends[b].id);
        for (size_t i = 0; i < n; i++)
            table_cell(table, "%s", worst[i].n ? worst_text(&worst[i], false, text) : "-");
        reach_cell(worst, ranges, n, table);
    }
}

static bool has_ranges(const struct results *r)
{
    for (size_t i = 0; i < r->n_conf; i++)
        if (*row_range(&r->conf[i]))
            return true;
    return false;
}

void section_accuracy(struct node *into, const struct results *r,
                      const struct render_options *options)
{
    (void)options;
    struct node *section = add_section(into, EVERYWHERE, "Accuracy by position");
    if (has_ranges(r))
        add_text(
            section, PARAGRAPH, ON_PAGE,
            "The largest error against real mathematics in each range of positions, the half "
            "ulp of rounding included.  A backend whose cell exceeds 1 ulp, or that is judged "
            "by absolute error, is no longer exact there.");
    by_position(section, r, EVERYWHERE, "sinusoidal", "exact");
    by_position(section, r, EVERYWHERE, "rope_table", "exact");
    by_position(section, r, ON_PAGE, "sinusoidal", "hf_f32");
    by_position(section, r, ON_PAGE, "rope_table", "hf_f32");
    add_worst_errors(section, r);
}
