/*
 * The answer, before everything else: for each model which backend to take, whether it is right, what a
 * step costs with it, and how to force another.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/cost.h"
#include "reports/ranking.h"
#include "reports/report.h"
#include "reports/show.h"

#include <string.h>

/* What the default does at the shapes of a model. */
struct standing_of {
    char names[128];  /* of the default, or those of several kernels */
    char better[160]; /* "sleef_avx512 for rope_table" */
    size_t shapes, fastest, noisy, wrong, checked,
        failed; /* wrong: outputs that were not timed */
};

static void append_name(char *text, size_t bytes, const char *name, const char *after)
{
    size_t n = strlen(text);
    snprintf(text + n, bytes - n, "%s%s%s", n ? ", " : "", name, after);
}

static void count_checks(const struct results *r, const char *kernel, const char *backend,
                         struct standing_of *s)
{
    struct counts t = count_conf(r, kernel, backend, NULL);
    s->checked += (size_t)(t.pass + t.weak + t.fail + t.crash);
    s->failed += (size_t)(t.fail + t.crash);
}

/* Each kernel of the model once. */
static void count_kernels(const struct results *r, const json_t *model, struct standing_of *s)
{
    const json_t *cases = json_object_get(model, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const char *kernel = record_text(json_array_get(cases, i), "kernel");
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= strcmp(record_text(json_array_get(cases, k), "kernel"), kernel) == 0;
        const char *name = default_backend(r, kernel);
        const char *better = again ? NULL : better_than_default(r, model, kernel);
        if (again || !*name)
            continue;
        if (!strstr(s->names, name))
            append_name(s->names, sizeof s->names, name, "");
        count_checks(r, kernel, name, s);
        if (better) {
            char what[80];
            snprintf(what, sizeof what, " for `%.64s`", kernel);
            append_name(s->better, sizeof s->better, better, what);
        }
    }
}

static void count_shapes(const struct results *r, const json_t *model, struct standing_of *s)
{
    const json_t *cases = json_object_get(model, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        struct ranking k;
        rank_case(r, record_text(json_array_get(cases, i), "case"), &k);
        size_t at = rank_of(&k, k.n ? default_backend(r, k.row[0]->kernel) : "");
        if (k.n == 0 || *k.row[0]->refused)
            continue;
        s->shapes++;
        s->wrong += at < k.n && is_wrong(k.row[at]);
        s->noisy += !k.best || (at < k.n && k.standing[at] == NOISY);
        s->fastest += at < k.n && (k.standing[at] == FASTEST || k.standing[at] == TIED);
    }
}

/* "is fastest, or tied with the fastest, at 5 of 6 shapes (1 too noisy to tell)" */
static void speed_words(const struct standing_of *s, char *text, size_t bytes)
{
    char noisy[48] = "";
    if (s->noisy)
        snprintf(noisy, sizeof noisy, " (%zu too noisy to tell)", s->noisy);
    if (s->shapes == 0)
        snprintf(text, bytes, "is not timed here");
    else if (s->noisy == s->shapes)
        snprintf(text, bytes, "was timed at %zu shape%s too noisy to tell who is fastest",
                 s->shapes, s->shapes == 1 ? "," : "s, all");
    else if (s->fastest == s->shapes && s->shapes == 1)
        snprintf(text, bytes, "is the fastest, or tied with it, at the one shape");
    else if (s->fastest == s->shapes)
        snprintf(text, bytes, "is the fastest, or tied with it, at each of %zu shapes",
                 s->shapes);
    else if (s->fastest == 0)
        snprintf(text, bytes, "is not the fastest at any of %zu shape%s%s", s->shapes,
                 s->shapes == 1 ? "" : "s", noisy);
    else
        snprintf(text, bytes, "is the fastest, or tied with it, at %zu of %zu shapes%s",
                 s->fastest, s->shapes, noisy);
}

static const char *step_words(const struct step *step)
{
    return cost_step_is(step, "decode")    ? "decoding a token"
           : cost_step_is(step, "prefill") ? "a prompt"
                                           : "a picture";
}

/* "Over all layers decoding a token takes 10.6 us, with libm 57.8 us." */
static void cost_words(const struct results *r, const json_t *model, char *text, size_t bytes)
{
    struct step steps[STEPS];
    size_t n = cost_steps(r, model, steps);
    text[0] = 0;
    if (n == 0)
        return;
    struct cost cost = cost_of(r, model, &steps[0], NULL),
                plain = cost_of(r, model, &steps[0], "libm");
    if (!cost.known || cost.missing)
        return;
    size_t at = (size_t)snprintf(text, bytes, "  Over all layers %s takes **%s**%s",
                                 step_words(&steps[0]), show_time(cost.ns),
                                 cost.noisy ? " (noisy)" : "");
    if (!plain.missing && at < bytes)
        snprintf(text + at, bytes - at, ", with `libm` %s.", show_time(plain.ns));
    else if (at < bytes)
        snprintf(text + at, bytes - at, ".");
}

/* "and right in all of its 96 checks": what verify checked, and bench before it timed. */
static void right_words(const struct standing_of *s, char *text, size_t bytes)
{
    if (s->failed)
        snprintf(text, bytes, "and **wrong**: %zu of its %zu checks failed", s->failed,
                 s->checked);
    else if (s->wrong)
        snprintf(text, bytes, "and **wrong**: its output at %zu of them", s->wrong);
    else if (s->checked)
        snprintf(text, bytes, "and right in all of its %zu checks", s->checked);
    else
        snprintf(text, bytes, "and right wherever it was timed; `posenc verify` checks more");
}

static bool add_summary(struct node *into, const struct results *r, const json_t *model)
{
    struct standing_of s = { .shapes = 0 };
    char speed[160], cost[200], right[96];
    count_kernels(r, model, &s);
    count_shapes(r, model, &s);
    if (!*s.names || (s.shapes == 0 && s.checked == 0))
        return false;
    speed_words(&s, speed, sizeof speed);
    cost_words(r, model, cost, sizeof cost);
    right_words(&s, right, sizeof right);
    add_text(into, PARAGRAPH, EVERYWHERE, "**%s**: the default, **%s**, %s, %s.%s%s%s%s",
             record_text(model, "title"), s.names, speed, right,
             *s.better ? "  Faster beyond doubt: " : "", s.better, *s.better ? "." : "", cost);
    return true;
}

void section_summary(struct node *into, const struct results *r,
                     const struct render_options *options)
{
    (void)options;
    bool any = false;
    for (size_t m = 0; m < r->n_models; m++)
        any |= add_summary(into, r, r->models[m]);
    if (any)
        add_text(into, PARAGRAPH, EVERYWHERE,
                 "To force another backend: `POSENC_BACKEND=NAME`, or "
                 "`posenc_select(\"NAME\")`.");
}
