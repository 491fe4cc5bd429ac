/*
 * For each shape of a model: who is fastest, how near the roof, how wrong, whether it conforms, and who
 * serves it by default; then what to do where the default is not the best choice.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/ranking.h"
#include "reports/report.h"
#include "reports/show.h"
#include "reports/worst.h"

#include <string.h>

enum { LONGEST_TIE = 20 }; /* "avx512 = avx512_bf16" */

/* "avx2 = avx512" where the clock cannot tell them apart; and who might be as fast, for all that was
 * measured of it. */
static void add_fastest(const struct ranking *k, struct table *table)
{
    char text[160] = "too noisy to tell", noisy[160] = "";
    char unsettled[32] = "";
    size_t at = 0, first = 0, after = 0, n_noisy = 0;
    for (size_t i = 0; i < k->n && at < sizeof text; i++)
        if (k->standing[i] >= TIED) {
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? " = " : "",
                                   k->row[i]->backend);
            first = first ? first : at;
        }
    for (size_t i = 0; k->best && i < k->n && after < sizeof noisy; i++)
        if (k->standing[i] == NOISY && rows_meet(k->row[i], k->best)) {
            after += (size_t)snprintf(noisy + after, sizeof noisy - after, "%s%s",
                                      after ? ", " : "; noisy: ", k->row[i]->backend);
            n_noisy++;
        }
    table_cell(table, "**%s**%s", text, noisy);
    if (n_noisy)
        snprintf(unsettled, sizeof unsettled, " (%zu noisy)", n_noisy);
    if (k->tied > 1 || at > LONGEST_TIE)
        table_cell(table, "%.*s + %zu tied%s", (int)first, text, k->tied, unsettled);
    else
        table_cell(table, "%s%s", text, unsettled);
}

/* Whoever is faster than the fastest and does not conform; NULL: nobody. */
static const struct bench_row *faster_but_wrong(const struct ranking *k)
{
    for (size_t i = 0; k->best && k->row[i] != k->best; i++)
        if (k->standing[i] == WRONG && !is_noisy(k->row[i]))
            return k->row[i];
    return NULL;
}

/* "error 0.50 ulp", "same bits". */
static const char *error_text(const struct results *r, const struct bench_row *b,
                              char text[WORST_TEXT])
{
    struct worst worst;
    char error[WORST_TEXT];
    worst_of_row(r, b, &worst);
    snprintf(text, WORST_TEXT, "%s%.140s", worst_in(&worst, "exact") ? "" : "error ",
             worst_text(&worst, false, error));
    return text;
}

static void add_default_cell(const struct results *r, const struct ranking *k,
                             struct table *table)
{
    char error[WORST_TEXT];
    const char *name = default_backend(r, k->row[0]->kernel);
    size_t at = rank_of(k, name);
    enum standing standing = at < k->n ? k->standing[at] : NOT_TIMED;
    if (!*name)
        table_cell(table, "not recorded");
    else if (behind_best(k, at) > 0.0)
        table_cell(table, "%s (%.0f %% slower, %s)", name, 100.0 * behind_best(k, at),
                   error_text(r, k->row[at], error));
    else
        table_cell(table, "%s%s", name,
                   standing == NOT_TIMED ? " (not timed)"
                   : standing == WRONG   ? " (does NOT conform)"
                   : standing == NOISY   ? " (too noisy to tell)"
                   : standing == TIED    ? " (tie)"
                   : !k->best            ? ""
                   : standing == SLOWER  ? " (within 3 %)"
                                         : "");
}

static void add_error_cells(const struct results *r, const struct bench_row *b,
                            struct table *table)
{
    struct worst worst;
    char text[WORST_TEXT];
    worst_of_row(r, b, &worst);
    table_cell(table, "%s", worst.n ? worst_text(&worst, false, text) : "-");
    table_cell(table, "%s", worst_text(&worst, true, text));
}

/* A shape in words, and in a word for a terminal. */
static void add_shape_cells(const struct bench_row *best, const json_t *one,
                            const json_t *model, struct table *table)
{
    const char *profile = strcmp(best->profile, "given") == 0 ? "" : best->profile;
    const char *dtype = narrow_name(best->dtype);
    table_cell(table, "`%s`", best->kernel);
    table_cell(table, "%s%s%s", record_text(one, "label"), *profile ? ", " : "", profile);
    table_cell(table, "  %s%s%s%s%s", short_shape(record_text(one, "case"), model),
               *dtype ? " " : "", dtype, *profile ? " " : "", profile);
}

/* `kernel` is that of the row before; a terminal has a line above the rows of each. */
static void add_answer(const struct results *r, const json_t *one, const json_t *model,
                       const char **kernel, struct table *table)
{
    struct ranking k;
    rank_case(r, record_text(one, "case"), &k);
    const struct bench_row *best = telling_row(r, &k), *wrong = faster_but_wrong(&k);
    if (!best)
        return;
    bool checked;
    conforms(r, best->kernel, best->backend, &checked);
    if (strcmp(*kernel, best->kernel) != 0)
        table_line(table, "%s", best->kernel);
    *kernel = best->kernel;
    add_shape_cells(best, one, model, table);
    add_fastest(&k, table);
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
    add_default_cell(r, &k, table);
}

/* For a terminal, whose table has no room for it: where the default is not the fastest, and who would
 * be and is wrong. */
static void add_exceptions(struct node *section, const struct results *r, const json_t *one)
{
    struct ranking k;
    char error[WORST_TEXT];
    rank_case(r, record_text(one, "case"), &k);
    const struct bench_row *wrong = faster_but_wrong(&k);
    if (wrong)
        add_text(section, ITEM, ON_TERMINAL, "%s: %s is faster and does NOT conform",
                 record_text(one, "case"), wrong->backend);
    size_t at = rank_of(&k, k.n ? default_backend(r, k.row[0]->kernel) : "");
    if (behind_best(&k, at) > 0.0)
        add_text(section, ITEM, ON_TERMINAL, "%s: the default, %s, is %.0f %% slower (%s)",
                 record_text(one, "case"), k.row[at]->backend, 100.0 * behind_best(&k, at),
                 error_text(r, k.row[at], error));
}

/* Lines "kernel backend" of whom to prefer to the default. */
static bool find_better_choice(const struct results *r, const json_t *model, char *text,
                               size_t bytes)
{
    size_t at = 0;
    text[0] = 0;
    for (size_t k = 0; k < r->n_kernels && at < bytes; k++) {
        const char *best = better_than_default(r, model, r->kernels[k]);
        if (best)
            at += (size_t)snprintf(text + at, bytes - at, "%.60s %.60s\n", r->kernels[k], best);
    }
    return at > 0;
}

/* The kernels of the model whose default is wrong, `learned_add`, `alibi`; 0: none of them is. */
static size_t find_wrong_defaults(const struct results *r, const json_t *model, char *text,
                                  size_t bytes)
{
    size_t found = 0, at = 0;
    for (size_t k = 0; k < r->n_kernels && at < bytes; k++) {
        const char *name = default_backend(r, r->kernels[k]);
        bool wrong = false;
        for (size_t i = 0; i < r->n_bench; i++) {
            const struct bench_row *b = &r->bench[i];
            const json_t *of = NULL;
            bool checked;
            if (strcmp(b->kernel, r->kernels[k]) == 0 && strcmp(b->backend, name) == 0 &&
                model_case(r, b->id, &of) && of == model)
                wrong |= is_wrong(b) || !conforms(r, b->kernel, name, &checked);
        }
        if (wrong)
            at += (size_t)snprintf(text + at, bytes - at, "%s`%.60s` (%.60s)",
                                   found++ ? ", " : "", r->kernels[k], name);
    }
    return found;
}

static void add_choice(struct node *section, const struct results *r, const json_t *model)
{
    char lines[512];
    size_t wrong = find_wrong_defaults(r, model, lines, sizeof lines);
    if (wrong > 0)
        add_text(section, PARAGRAPH, EVERYWHERE,
                 "**The default is wrong** for %s: force another, which the checks found to be "
                 "right.",
                 lines);
    if (find_better_choice(r, model, lines, sizeof lines)) {
        add_text(section, PARAGRAPH, EVERYWHERE,
                 "Over these shapes another than the default is faster, beyond doubt of the "
                 "clock.  The fastest, kernel by kernel, as text for `posenc_select()`:");
        add_text(section, CODE, EVERYWHERE, "%s", lines);
    } else if (wrong == 0) {
        add_text(section, PARAGRAPH, ON_PAGE,
                 "The default stays: kernel by kernel, over these shapes, no backend was seen "
                 "to beat it by more than both intervals and %.0f %%.",
                 100.0 * worth_naming);
    }
}

static void add_model(struct node *into, const struct results *r, const json_t *model)
{
    struct node *section = add_section(into, EVERYWHERE, "%s", record_text(model, "title"));
    struct table *table = add_table(
        section, EVERYWHERE,
        "~kernel|~shape|!shape|~fastest|!fastest|>time|>GB/s|>of roof;roof|?>vs libm;libm|"
        "?>vs autovec;autovec|!>error|~>worst error|~conforms|~default here");
    const json_t *cases = json_object_get(model, "cases");
    const char *kernel = "";
    for (size_t i = 0; i < json_array_size(cases); i++)
        add_answer(r, json_array_get(cases, i), model, &kernel, table);
    if (table_rows(table) == 0)
        return;
    for (size_t i = 0; i < json_array_size(cases); i++)
        add_exceptions(section, r, json_array_get(cases, i));
    add_choice(section, r, model);
    const char *angles =
        show_profile(record_text(model, "trained_profile"), record_text(model, "encoding"));
    if (*angles)
        add_text(section, PARAGRAPH, ON_PAGE, "%s", angles);
    if (*record_text(model, "notes"))
        add_text(section, PARAGRAPH, ON_PAGE, "Not covered, or to be known of this model: %s.",
                 record_text(model, "notes"));
    const char *checked = record_text(model, "checked");
    add_text(section, PARAGRAPH, ON_PAGE, "Numbers of the model: %s.%s%s%s",
             record_text(model, "source"), *checked ? "  Checked against: " : "", checked,
             *checked ? "." : "");
    section_cost(section, r, model);
}

void section_answers(struct node *into, const struct results *r,
                     const struct render_options *options)
{
    (void)options;
    for (size_t m = 0; m < r->n_models; m++)
        add_model(into, r, r->models[m]);
}
