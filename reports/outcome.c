/*
 * Adds up what came of the records; see outcome.h.
 */
#include "outcome.h"
#include "document.h"
#include "ranking.h"
#include "show.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

struct words {
    char *text;
    size_t size, at;
};

/* Behind what stands there, after `between` where something does. */
FORMATTED(3, 4)
static void say(struct words *w, const char *between, const char *format, ...)
{
    va_list list;
    int n = snprintf(w->text + w->at, w->size - w->at, "%s", w->at > 0 ? between : "");
    size_t at = w->at + (size_t)n;
    if (at + 1 >= w->size)
        return;
    va_start(list, format);
    n = vsnprintf(w->text + at, w->size - at, format, list);
    va_end(list);
    w->at = at + (size_t)n < w->size ? at + (size_t)n : w->size - 1;
}

void check_words(const struct conf_row *c, char text[CHECK_TEXT])
{
    struct words w = { text, CHECK_TEXT, 0 };
    const struct shown_error shown = show_judged(c->max, c->limit, c->metric);
    const bool crash = strcmp(c->status, "crash") == 0;
    text[0] = 0;
    if (*c->metric && !crash)
        say(&w, "", "%s, limit %s, %s; got %s, want %s", shown.error, shown.limit, c->witness,
            c->got, c->want);
    if (*c->reason && strncmp(c->reason, "got ", 4) != 0) /* told already */
        say(&w, "; ", "%s", c->reason);
    if (!w.at)
        say(&w, "", "%s", *c->reason ? c->reason : c->status);
}

void change_words(const struct change_row *change, char text[CHANGE_TEXT])
{
    struct words w = { text, CHANGE_TEXT, 0 };
    char base[SIDE_TEXT], head[SIDE_TEXT];
    const double limit = record_value(change->json, "limit", -1.0),
                 of = record_value(change->json, "of", 0.0);
    change_side(change, "base", base);
    change_side(change, "head", head);
    say(&w, "", "%s, was %s", head, base);
    if (limit >= 0.0)
        say(&w, " ", "(limit %s)", show_error(limit, change->metric));
    if (of > 0.0)
        say(&w, ", ", "%s of %s values moved",
            show_count(record_value(change->json, "moved", 0.0)), show_count(of));
    if (*change->witness)
        say(&w, ", at ", "%s", change->witness);
}

/* As a change in per cent: 1.075 -> 7.5. */
static double per_cent(double ratio) { return 100.0 * (ratio - 1.0); }

void pair_words(const struct pair_row *row, char text[PAIR_TEXT])
{
    struct words w = { text, PAIR_TEXT, 0 };
    text[0] = 0;
    if (!isnan(row->ratio))
        say(&w, "", "%+.1f %% (%.1f to %.1f)", per_cent(row->ratio), per_cent(row->lo),
            per_cent(row->hi));
    if (*row->reason)
        say(&w, ": ", "%s", row->reason);
}

static int add_comparison(struct outcome *o, const struct results *r)
{
    struct comparison c;
    if (comparison_make(r, &c))
        return -1;
    o->pairs += c.n;
    o->slower += c.of[VERDICT_SLOWER];
    o->faster += c.of[VERDICT_FASTER];
    o->unclear += c.of[VERDICT_UNCLEAR];
    o->failing += c.failing;
    o->broken += c.broken;
    o->worse += c.worse;
    o->better += c.better;
    o->moved += c.moved;
    comparison_free(&c);
    return 0;
}

static void add_checks(struct counts *sum, const struct results *r)
{
    const struct counts t = count_conf(r, NULL, NULL, NULL);
    sum->pass += t.pass;
    sum->fail += t.fail;
    sum->crash += t.crash;
    sum->skipped += t.skipped;
    sum->unsupported += t.unsupported;
    sum->weak += t.weak;
    sum->total += t.total;
}

int outcome_of(const json_t *records, struct outcome *o)
{
    const size_t n = results_machines(records);
    *o = (struct outcome){ .vectors = "" };
    for (size_t m = 0; m < n; m++) {
        struct results r;
        if (results_make(records, m, &r))
            return -1;
        int status = add_comparison(o, &r);
        add_checks(&o->checks, &r);
        for (size_t i = 0; i < r.n_bench; i++) {
            o->wrong += is_wrong(&r.bench[i]);
            o->timed += !*r.bench[i].refused;
        }
        const char grade = *record_text(r.machine, "grade");
        o->grade = grade > o->grade ? grade : o->grade;
        o->quick |= strcmp(record_text(r.header, "mode"), "quick") == 0;
        o->partial |= r.finished < r.runs;
        o->vectors = *o->vectors ? o->vectors : vectors_note(&r);
        results_free(&r);
        if (status)
            return -1;
    }
    return 0;
}

bool outcome_is_good(const struct outcome *o)
{
    return o->checks.fail + o->checks.crash + o->checks.weak == 0 && o->wrong == 0 &&
           o->failing + o->broken + o->worse == 0 && !o->partial;
}

void outcome_words(const struct outcome *o, char text[OUTCOME_TEXT])
{
    struct words w = { text, OUTCOME_TEXT, 0 };
    const struct counts *t = &o->checks;
    int failed = t->fail + t->crash;
    text[0] = 0;
    if (o->partial)
        say(&w, ", ", "incomplete");
    if (*o->vectors)
        say(&w, ", ", "%s", o->vectors);
    if (failed)
        say(&w, ", ", "%s of %s checks failed", show_count(failed),
            show_count(t->total - t->skipped - t->unsupported));
    if (t->weak)
        say(&w, ", ", "%s weak", show_count(t->weak));
    if (o->wrong)
        say(&w, ", ", "%zu output%s wrong", o->wrong, o->wrong == 1 ? "" : "s");
    if (o->broken)
        say(&w, ", ", "%zu of %zu fail", o->broken, o->pairs);
    if (o->worse)
        say(&w, ", ", "%zu result%s worse", o->worse, o->worse == 1 ? "" : "s");
    if (o->slower)
        say(&w, ", ", "%zu slower", o->slower);
    if (!failed && t->pass)
        say(&w, ", ", "%s check%s passed", show_count(t->pass), t->pass == 1 ? "" : "s");
    if (o->pairs && !o->slower)
        say(&w, ", ", "%s compared, none slower", show_count((double)o->pairs));
    if (o->faster)
        say(&w, ", ", "%zu faster", o->faster);
    if (o->unclear)
        say(&w, ", ", "%zu unclear", o->unclear);
    if (o->better)
        say(&w, ", ", "%zu result%s better", o->better, o->better == 1 ? "" : "s");
    if (o->moved)
        say(&w, ", ", "%zu moved", o->moved);
    if (!t->total && !o->pairs && o->timed)
        say(&w, ", ", "%s timings", show_count((double)o->timed));
    if (o->grade)
        say(&w, ", ", "grade %c to measure", o->grade);
    if (!w.at)
        say(&w, ", ", "nothing was checked");
}
