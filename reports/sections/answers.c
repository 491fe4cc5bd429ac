/*
 * For each shape of a model: who is fastest, how near the roof, how wrong, whether it conforms, and who
 * serves it by default; then what to do where the default is not the best choice.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/report.h"
#include "reports/show.h"

#include <math.h>
#include <string.h>

enum { MAX_ROWS = 32 };

/* "avx2 = avx512" where the clock cannot tell them apart; rows are fastest first. */
static void add_fastest(const struct bench_row *const *rows, size_t n, struct table *table)
{
    char text[160];
    size_t tied = 0, at = (size_t)snprintf(text, sizeof text, "%s", rows[0]->backend),
           first = at;
    for (size_t i = 1; i < n; i++) {
        if (!is_tie(rows[0], rows[i]))
            continue;
        tied++;
        if (at < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, " = %s", rows[i]->backend);
    }
    table_cell(table, "**%s**", text);
    if (tied > 1)
        table_cell(table, "%.*s + %zu tied", (int)first, text, tied);
    else
        table_cell(table, "%s", text);
}

static const struct bench_row *row_of(const struct bench_row *const *rows, size_t n,
                                      const char *backend)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i]->backend, backend) == 0 && !*rows[i]->refused)
            return rows[i];
    return NULL;
}

/* The rows of a case whose backends conform, fastest first; `faster_but_wrong` the first one
 * that was passed over. */
static size_t trusted_rows(const struct results *r, const char *id,
                           const struct bench_row **rows,
                           const struct bench_row **faster_but_wrong)
{
    size_t n = rows_of_case(r, id, rows, MAX_ROWS), kept = 0;
    *faster_but_wrong = NULL;
    for (size_t i = 0; i < n; i++) {
        bool checked;
        if (*rows[i]->refused)
            continue;
        if (conforms(r, rows[i]->kernel, rows[i]->backend, &checked))
            rows[kept++] = rows[i];
        else if (kept == 0 && !*faster_but_wrong)
            *faster_but_wrong = rows[i];
    }
    return kept;
}

/* "error 0.50 ulp", "same bits". */
static const char *error_text(const struct results *r, const struct bench_row *b, char text[64])
{
    const struct conf_row *c = worst_error(r, b->kernel, b->dtype, b->backend, b->profile);
    snprintf(text, 64, "%s%s", c && strcmp(c->metric, "exact") == 0 ? "" : "error ",
             c ? show_error(c->max, c->metric) : "not measured");
    return text;
}

/* Who serves these rows by default, and by how much it is slower than the fastest; 0: it is not. */
static const struct bench_row *default_row(const struct results *r,
                                           const struct bench_row *const *rows, size_t n,
                                           double *slower)
{
    const struct bench_row *row = row_of(rows, n, default_backend(r, rows[0]->kernel));
    *slower = 0.0;
    if (row && row != rows[0] && !is_tie(rows[0], row))
        *slower = row->median / rows[0]->median - 1.0;
    return row;
}

static void add_default_cell(const struct results *r, const struct bench_row *const *rows,
                             size_t n, struct table *table)
{
    double slower;
    char error[64];
    const char *name = default_backend(r, rows[0]->kernel);
    const struct bench_row *row = default_row(r, rows, n, &slower);
    if (!*name)
        table_cell(table, "not recorded");
    else if (!row)
        table_cell(table, "%s (not timed)", name);
    else if (row == rows[0])
        table_cell(table, "%s", name);
    else if (slower == 0.0)
        table_cell(table, "%s (tie)", name);
    else
        table_cell(table, "%s (%.0f %% slower, %s)", name, 100.0 * slower,
                   error_text(r, row, error));
}

static void add_error_cells(const struct results *r, const struct bench_row *b,
                            struct table *table)
{
    const struct conf_row *c = worst_error(r, b->kernel, b->dtype, b->backend, b->profile);
    table_cell(table, "%s", c ? show_error(c->max, c->metric) : "-");
    if (c && strcmp(c->metric, "exact") != 0)
        table_cell(table, "%s (limit %.3g)", show_error(c->max, c->metric), c->limit);
    else
        table_cell(table, "%s", c ? show_error(c->max, c->metric) : "not measured");
}

/* A shape in words, and in a word for a terminal. */
static void add_shape_cells(const struct bench_row *best, const json_t *one,
                            const json_t *model, struct table *table)
{
    const char *profile = strcmp(best->profile, "given") == 0 ? "" : best->profile;
    const char *dtype = narrow_name(best->dtype);
    table_cell(table, "`%s`", best->kernel);
    table_cell(table, "%s%s%s", record_text(one, "label"), *profile ? ", " : "", profile);
    table_cell(table, "%s %s%s%s%s%s", best->kernel,
               short_shape(record_text(one, "case"), model), *dtype ? " " : "", dtype,
               *profile ? " " : "", profile);
}

static void add_answer(const struct results *r, const json_t *one, const json_t *model,
                       struct table *table)
{
    const struct bench_row *rows[MAX_ROWS], *wrong;
    size_t n = trusted_rows(r, record_text(one, "case"), rows, &wrong);
    if (n == 0)
        return;
    const struct bench_row *best = rows[0];
    bool checked;
    conforms(r, best->kernel, best->backend, &checked);
    add_shape_cells(best, one, model, table);
    add_fastest(rows, n, table);
    table_cell(table, "%s", show_time(best->median));
    table_cell(table, "%s", show_rate(best->gbps));
    table_cell(table, "%s", show_percent(best->roof_ratio));
    table_cell(table, "%s", show_times(best->vs_libm));
    table_cell(table, "%s", show_times(best->vs_autovec));
    add_error_cells(r, best, table);
    if (wrong)
        table_cell(table, "yes; %s is faster and does NOT", wrong->backend);
    else
        table_cell(table, "%s", checked ? "yes" : "not checked");
    add_default_cell(r, rows, n, table);
}

/* For a terminal, whose table has no room for it: where the default is not the fastest. */
static void add_slower_default(struct node *section, const struct results *r, const json_t *one)
{
    const struct bench_row *rows[MAX_ROWS], *wrong;
    size_t n = trusted_rows(r, record_text(one, "case"), rows, &wrong);
    double slower = 0.0;
    char error[64];
    const struct bench_row *row = n > 0 ? default_row(r, rows, n, &slower) : NULL;
    if (row && slower > 0.0)
        add_text(section, ITEM, ON_TERMINAL, "%s: the default, %s, is %.0f %% slower (%s)",
                 record_text(one, "case"), row->backend, 100.0 * slower,
                 error_text(r, row, error));
}

/* Sum of the logarithms of a backend's times at the model's shapes of a kernel; infinite where
 * it lacks one or does not conform. */
static double log_time(const struct results *r, const json_t *model, const char *kernel,
                       const char *backend, int *shapes)
{
    const json_t *cases = json_object_get(model, "cases");
    double sum = 0.0;
    *shapes = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        const struct bench_row *rows[MAX_ROWS], *wrong;
        if (strcmp(record_text(one, "kernel"), kernel) != 0)
            continue;
        size_t n = trusted_rows(r, record_text(one, "case"), rows, &wrong);
        const struct bench_row *row = row_of(rows, n, backend);
        if (n == 0)
            continue;
        if (!row)
            return HUGE_VAL;
        sum += log(row->median);
        ++*shapes;
    }
    return *shapes ? sum : HUGE_VAL;
}

/* What the fastest must gain over the default, on average, to be worth naming. */
static const double worth_naming = 0.03;

static bool find_better_choice(const struct results *r, const json_t *model, char *text,
                               size_t bytes)
{
    size_t at = 0;
    text[0] = 0;
    for (size_t k = 0; k < r->n_kernels; k++) {
        int shapes;
        const char *best = default_backend(r, r->kernels[k]);
        double standard = log_time(r, model, r->kernels[k], best, &shapes), least = standard;
        if (isinf(standard))
            continue;
        for (size_t b = 0; b < r->n_backends; b++) {
            double time = log_time(r, model, r->kernels[k], r->backends[b].id, &shapes);
            if (time < least - 1e-12) {
                least = time;
                best = r->backends[b].id;
            }
        }
        log_time(r, model, r->kernels[k], best, &shapes);
        if (standard - least > shapes * log1p(worth_naming) && at < bytes)
            at += (size_t)snprintf(text + at, bytes - at, "%.60s %.60s\n", r->kernels[k], best);
    }
    return at > 0;
}

/* One sentence on the profile the model's own code used. */
static void add_profile_note(struct node *section, const json_t *model)
{
    const char *profile = record_text(model, "trained_profile"),
               *encoding = record_text(model, "encoding");
    bool angles = strncmp(encoding, "rope", 4) == 0 || strcmp(encoding, "sinusoidal") == 0;
    if (strcmp(profile, "hf_f32") == 0)
        add_text(
            section, PARAGRAPH, ON_PAGE,
            "The code it was published with forms its angles in f32: profile `hf_f32` gives "
            "the numbers it was trained with, `exact` those of the formula.");
    else if (strcmp(profile, "exact") == 0)
        add_text(
            section, PARAGRAPH, ON_PAGE,
            "The code it was trained with forms its angles in f64: profile `exact` gives the "
            "numbers it was trained with.");
    else if (strcmp(profile, "torch_exp_f32") == 0)
        add_text(section, PARAGRAPH, ON_PAGE,
                 "The code it was published with forms its frequencies by exp in f32: profile "
                 "`torch_exp_f32` gives the numbers it was trained with, `exact` those of the "
                 "formula.");
    else if (angles)
        add_text(section, PARAGRAPH, ON_PAGE,
                 "With which rounding of the angles it was trained is not known.");
}

static void add_choice(struct node *section, const struct results *r, const json_t *model)
{
    char lines[512];
    if (find_better_choice(r, model, lines, sizeof lines)) {
        add_text(
            section, PARAGRAPH, EVERYWHERE,
            "The default is not the fastest over these shapes.  To force one backend for all "
            "kernels: `POSENC_BACKEND=NAME`.  The fastest, kernel by kernel, as text for "
            "`posenc_select()`:");
        add_text(section, CODE, EVERYWHERE, "%s", lines);
    } else {
        add_text(
            section, PARAGRAPH, ON_PAGE,
            "Kernel by kernel, over these shapes together, no backend gains %.0f %% on the "
            "default.  To force another: `POSENC_BACKEND=NAME`, or "
            "`posenc_select(\"NAME\")`.",
            100.0 * worth_naming);
    }
}

static void add_model(struct node *into, const struct results *r, const json_t *model)
{
    struct node *section = add_section(into, EVERYWHERE, "%s", record_text(model, "title"));
    struct table *table = add_table(
        section, EVERYWHERE,
        "~kernel|~shape|!shape|~fastest|!fastest|~>time|>GB/s|>of roof;roof|>vs libm;libm|"
        ">vs autovec;autovec|!>error|~>worst error|conforms|~default here");
    const json_t *cases = json_object_get(model, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++)
        add_answer(r, json_array_get(cases, i), model, table);
    if (table_rows(table) == 0)
        return;
    for (size_t i = 0; i < json_array_size(cases); i++)
        add_slower_default(section, r, json_array_get(cases, i));
    add_choice(section, r, model);
    add_profile_note(section, model);
    if (*record_text(model, "notes"))
        add_text(section, PARAGRAPH, ON_PAGE, "Not covered, or to be known of this model: %s.",
                 record_text(model, "notes"));
    const char *checked = record_text(model, "checked");
    add_text(section, PARAGRAPH, ON_PAGE, "Numbers of the model: %s.%s%s%s",
             record_text(model, "source"), *checked ? "  Checked against: " : "", checked,
             *checked ? "." : "");
}

void section_answers(struct node *into, const struct results *r,
                     const struct render_options *options)
{
    (void)options;
    for (size_t m = 0; m < r->n_models; m++)
        add_model(into, r, r->models[m]);
}
