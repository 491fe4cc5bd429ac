/*
 * The evidence of one verdict: in words, and each launch as a strip of points.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/evidence.h"
#include "reports/report.h"
#include "reports/show.h"
#include "reports/statistics/stats.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double pct(double ratio) { return 100.0 * (ratio - 1.0); }

/* In how many launches head was on one side of both copies of base, from the samples; none: they are not in the
 * record. */
struct sides {
    size_t launches, above, below;
};

static struct sides sides_of(const struct pair_row *row)
{
    const json_t *samples = json_object_get(row->json, "samples"),
                 *head = json_object_get(samples, "head"),
                 *null = json_object_get(samples, "null");
    struct sides s = { 0 };
    for (size_t l = 0; l < json_array_size(head); l++) {
        const json_t *x = json_array_get(head, l), *z = json_array_get(null, l);
        const size_t n = json_array_size(x);
        double *values = calloc(2 * n + 1, sizeof *values);
        for (size_t i = 0; values && i < n; i++) {
            values[i] = record_double(json_array_get(x, i), (double)NAN);
            values[n + i] = values[i] - record_double(json_array_get(z, i), (double)NAN);
        }
        const double first = values ? stats_median(values, n) : (double)NAN,
                     second = values ? stats_median(values + n, n) : (double)NAN;
        s.launches += !isnan(first) && !isnan(second);
        s.above += first > 0.0 && second > 0.0;
        s.below += first < 0.0 && second < 0.0;
        free(values);
    }
    return s;
}

static void say_time(struct node *into, const struct pair_row *row)
{
    if (row->base_ns > 0.0 && row->head_ns > 0.0)
        add_text(into, ITEM, EVERYWHERE, "A call takes %s with base and %s with head.",
                 show_time(row->base_ns), show_time(row->head_ns));
    add_text(into, ITEM, EVERYWHERE,
             "Within rounds head takes **%.1f %% %s** time than base; with %g %% confidence "
             "the change lies "
             "between %+.1f and %+.1f %%.",
             fabs(pct(row->ratio)), row->ratio > 1.0 ? "more" : "less", 100.0 * row->level,
             pct(row->lo), pct(row->hi));
}

static void say_agreement(struct node *into, const struct pair_row *row)
{
    const struct sides s = sides_of(row);
    const bool up = row->ratio > 1.0;
    const size_t agree = up ? s.above : s.below;
    if (s.launches == 0)
        return;
    char chance[96] = ".";
    if (agree == s.launches && agree < 20)
        snprintf(chance, sizeof chance,
                 ".  Of one build, chance gives that once in %.0f comparisons.",
                 pow(3.0, (double)agree));
    add_text(into, ITEM, EVERYWHERE,
             "In %zu of %zu launches head was %s than both copies of base%s", agree, s.launches,
             up ? "slower" : "faster", chance);
}

static void say_floor(struct node *into, const struct pair_row *row)
{
    if (row->null_ratio > 0.0 && row->floor > 0.0)
        add_text(into, ITEM, EVERYWHERE,
                 "Base was timed against its own copy in the same rounds, and was %.1f %% from "
                 "it.  The floor is %.1f %%: a difference below it shows nothing.",
                 fabs(pct(row->null_ratio)), 100.0 * row->floor);
}

static void say_code(struct node *into, const struct pair_row *row)
{
    const char *base = record_text(row->json, "base.code"),
               *head = record_text(row->json, "head.code");
    if (*base && *head)
        add_text(into, ITEM, EVERYWHERE, "The machine code is %s (%.12s, %.12s).",
                 strcmp(base, head) == 0 ? "the same" : "another", base, head);
    if (!isnan(row->base_counted) && !isnan(row->head_counted))
        add_text(into, ITEM, EVERYWHERE,
                 "Instructions an element, counted one by one: %.4g with base, %.4g with head "
                 "(%+.2f %%).  That explains a time; it does not decide the verdict.",
                 row->base_counted, row->head_counted,
                 pct(row->head_counted / row->base_counted));
}

static void say_verdict(struct node *into, const struct pair_row *row)
{
    const char *rule = "";
    switch (row->kind) {
    case VERDICT_SLOWER:
        rule = "all of the interval lies above the floor, and the launches agree";
        break;
    case VERDICT_FASTER:
        rule = "all of the interval lies below the floor, and the launches agree";
        break;
    case VERDICT_SAME:
        rule = "all of the interval lies within the budget, to both sides";
        break;
    case VERDICT_IDENTICAL:
        rule =
            "machine code and constants are the same, so the time is that of layout or noise";
        break;
    case VERDICT_UNCLEAR:
        rule =
            "the interval lies neither beyond the floor nor within the budget, or the launches "
            "do not agree";
        break;
    case VERDICT_INCOMPARABLE:
    case VERDICT_NEW:
    case VERDICT_REMOVED:
    case VERDICT_KINDS:
        break;
    }
    add_text(into, ITEM, EVERYWHERE, "**%s**%s%s%s%s.", verdict_word(row->kind),
             *rule ? ": " : "", rule, *row->reason ? "; " : "", row->reason);
}

static void explain(struct node *into, const struct pair_row *row)
{
    struct node *section = add_section(into, EVERYWHERE, "%s %s", row->id, row->backend);
    if (!isnan(row->ratio)) {
        say_time(section, row);
        say_agreement(section, row);
        say_floor(section, row);
    }
    say_code(section, row);
    say_verdict(section, row);
    char *strip = evidence_strip(row);
    if (!strip)
        return;
    add_text(section, PARAGRAPH, ON_TERMINAL,
             "Each line is a launch, each point a round: head against base, then base against "
             "its own copy; | is no difference, ( ) the floor.");
    add_text(section, CODE, ON_TERMINAL, "%s", strip);
    add_drawing(
        section,
        "Each row is a launch, each point a round; grey: the floor, orange: the interval",
        evidence_svg(row), strip);
}

void explain_pairs(struct node *into, const struct comparison *c, const char *wanted)
{
    size_t found = 0;
    for (size_t i = 0; i < c->n; i++)
        if (fnmatch(wanted, c->rows[i].id, 0) == 0) {
            explain(into, &c->rows[i]);
            found++;
        }
    if (found == 0)
        add_text(into, NOTE, EVERYWHERE, "No pair is called %s; there are %zu%s%s.", wanted,
                 c->n, c->n ? ", the first " : "", c->n ? c->rows[0].id : "");
}
