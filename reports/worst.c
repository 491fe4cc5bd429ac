/*
 * Finds the largest errors, metric by metric; see worst.h.
 */
#include "worst.h"
#include "show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const metrics[] = { "ulp", "pair_ulp", "abs", "exact" };
enum { KNOWN = sizeof metrics / sizeof *metrics, EXACT = KNOWN - 1 }; /* the others behind */

static bool matches(const char *wanted, const char *value)
{
    return !wanted || strcmp(wanted, value) == 0;
}

const char *row_range(const struct conf_row *row)
{
    const char *last = strrchr(row->id, '/'), *range = last ? strstr(last, "p2e") : NULL;
    return strcmp(row->suite, "accuracy") == 0 && range ? range : "";
}

/* The exponent of the range's end; 0: no range. */
static int range_bits(const struct conf_row *row)
{
    const char *range = row_range(row);
    return *range ? atoi(range + strlen("p2e")) : 0;
}

/* A value that is none is further away than any number. */
static bool is_worse(const struct conf_row *a, const struct conf_row *b)
{
    return isnan(b->max) ? false : isnan(a->max) || a->max > b->max;
}

/* Where a metric goes: known ones to their places, others behind them; WORSTS: no room. */
static size_t slot_of(const struct worst *w, const char *metric)
{
    size_t i = 0;
    while (i < KNOWN && strcmp(metrics[i], metric) != 0)
        i++;
    while (i >= KNOWN && i < WORSTS && w->of[i] && strcmp(w->of[i]->metric, metric) != 0)
        i++;
    return i;
}

static bool is_of(const struct conf_row *c, const struct worst_of *of)
{
    return matches(of->kernel, c->kernel) && matches(of->dtype, c->dtype) &&
           matches(of->backend, c->backend) && matches(of->profile, c->profile) &&
           (!of->range || strcmp(of->range, row_range(c)) == 0) &&
           (of->scale == 0.0 || c->scale == 1.0 || c->scale == of->scale);
}

/* The end of the last range before the first one with that metric. */
static int since(const struct conf_row *const *rows, size_t n, const struct worst_of *of,
                 const char *metric)
{
    int first = 0, before = 0;
    for (size_t i = 0; i < n; i++) {
        int bits = strcmp(rows[i]->metric, metric) == 0 && is_of(rows[i], of)
                       ? range_bits(rows[i])
                       : 0;
        if (bits && (!first || bits < first))
            first = bits;
    }
    for (size_t i = 0; i < n; i++) {
        int bits = range_bits(rows[i]);
        if (bits < first && bits > before && is_of(rows[i], of))
            before = bits;
    }
    return before;
}

/* That bits were the same is said where it is all there is to say. */
static void close_up(struct worst *w)
{
    size_t n = 0;
    for (size_t i = 0; i < WORSTS; i++)
        n += w->of[i] != NULL;
    if (n > 1 && w->of[EXACT] && w->of[EXACT]->max == 0.0)
        w->of[EXACT] = NULL;
    for (size_t i = 0; i < WORSTS; i++)
        if (w->of[i])
            w->of[w->n++] = w->of[i];
}

void worst_among(const struct conf_row *const *rows, size_t n, const struct worst_of *of,
                 struct worst *w)
{
    *w = (struct worst){ 0 };
    for (size_t i = 0; i < n; i++) {
        size_t slot = is_of(rows[i], of) ? slot_of(w, rows[i]->metric) : WORSTS;
        if (slot < WORSTS && (!w->of[slot] || is_worse(rows[i], w->of[slot])))
            w->of[slot] = rows[i];
    }
    close_up(w);
    for (size_t i = 0; w->n > 1 && i < w->n; i++)
        w->since[i] = since(rows, n, of, w->of[i]->metric);
}

size_t measured_rows(const struct results *r, const char *kernel, const struct conf_row **rows)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_conf; i++)
        if (*r->conf[i].metric && matches(kernel, r->conf[i].kernel))
            rows[n++] = &r->conf[i];
    return n;
}

void worst_errors(const struct results *r, const struct worst_of *of, struct worst *w)
{
    const struct conf_row **rows = malloc((r->n_conf + 1) * sizeof *rows);
    *w = (struct worst){ 0 };
    if (rows)
        worst_among(rows, measured_rows(r, of->kernel, rows), of, w);
    free(rows);
}

void worst_of_row(const struct results *r, const struct bench_row *row, struct worst *w)
{
    const struct worst_of of = { .kernel = row->kernel,
                                 .dtype = row->dtype,
                                 .backend = row->backend,
                                 .profile = row->profile,
                                 .scale = row->scale };
    worst_errors(r, &of, w);
}

/* ---- What they say ---- */

void one_worst_text(const struct worst *w, size_t i, bool limits, char text[WORST_TEXT])
{
    const struct conf_row *c = w->of[i];
    char limit[64] = "", from[24] = "";
    const bool with_limit = limits && strcmp(c->metric, "exact") != 0;
    const struct shown_error shown = show_judged(c->max, c->limit, c->metric);
    if (with_limit)
        snprintf(limit, sizeof limit, " (limit %s)", shown.limit);
    if (w->since[i])
        snprintf(from, sizeof from, " from 2^%d", w->since[i]);
    snprintf(text, WORST_TEXT, "%s%s%s",
             with_limit ? shown.error : show_error(c->max, c->metric), limit, from);
}

const char *worst_text(const struct worst *w, bool limits, char text[WORST_TEXT])
{
    size_t at = (size_t)snprintf(text, WORST_TEXT, "%s", w->n ? "" : "not measured");
    for (size_t i = 0; i < w->n && at < WORST_TEXT; i++) {
        char one[WORST_TEXT];
        one_worst_text(w, i, limits, one);
        at += (size_t)snprintf(text + at, WORST_TEXT - at, "%s%s", i ? ", " : "", one);
    }
    return text;
}

const struct conf_row *worst_in(const struct worst *w, const char *metric)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->of[i]->metric, metric) == 0)
            return w->of[i];
    return NULL;
}

bool worst_is_exact(const struct worst *w)
{
    for (size_t i = 0; i < w->n; i++) {
        bool ulp = strcmp(w->of[i]->metric, "ulp") == 0 && w->of[i]->max <= 1.0,
             same = strcmp(w->of[i]->metric, "exact") == 0 && w->of[i]->max <= 0.0;
        if (!ulp && !same)
            return false;
    }
    return true;
}

/* Whether an error is as small as another of its metric, to the second digit or a hundredth of the
 * stricter limit. */
static bool is_as_small(const struct conf_row *a, const struct conf_row *b)
{
    double larger = fmax(a->max, b->max), limit = fmin(a->limit, b->limit);
    return a->max <= b->max || a->max - b->max <= fmax(0.1 * larger, 0.01 * limit);
}

bool is_as_right(const struct worst *a, const struct worst *b)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct conf_row *other = worst_in(b, a->of[i]->metric);
        bool none = strcmp(a->of[i]->metric, "exact") == 0 && a->of[i]->max == 0.0;
        if (!none && !(other && is_as_small(a->of[i], other)))
            return false;
    }
    return true;
}
