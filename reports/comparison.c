/*
 * Makes rows of the records of a comparison; see comparison.h.
 */
#include "comparison.h"
#include "show.h"
#include "statistics/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *verdict_word(enum verdict_kind kind)
{
    static const char *const words[VERDICT_KINDS] = {
        [VERDICT_SLOWER] = "SLOWER",
        [VERDICT_FASTER] = "FASTER",
        [VERDICT_UNCLEAR] = "UNCLEAR",
        [VERDICT_SAME] = "SAME",
        [VERDICT_IDENTICAL] = "identical code",
        [VERDICT_INCOMPARABLE] = "incomparable",
        [VERDICT_NEW] = "new",
        [VERDICT_REMOVED] = "removed",
    };
    return kind < VERDICT_KINDS ? words[kind] : "unclear";
}

const char *row_word(const struct pair_row *row)
{
    return row->broken ? "FAILED" : verdict_word(row->kind);
}

static bool is(const json_t *record, const char *path, const char *text)
{
    return strcmp(record_text(record, path), text) == 0;
}

/* ---- Pairs ---- */

/* Whether a count is of the row's case; or of its kernel in that form, on a shape of its own. */
static bool is_count_of(const json_t *count, const struct pair_row *row)
{
    static const char *const members[] = { "kernel", "dtype", "profile", "backend" };
    const char *last = strrchr(record_text(count, "case"), '/');
    if (!last || strcmp(last, "/count") != 0)
        return is(count, "case", row->id) && is(count, "backend", row->backend);
    bool same = true;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        same = same && is(count, members[i], record_text(row->json, members[i]));
    return same;
}

/* Instructions an element of the row's kernel in a build, what a call takes besides included. */
static double counted(const struct results *r, const struct pair_row *row, const char *build)
{
    double value = (double)NAN;
    for (size_t i = 0; i < r->n_counts; i++) {
        const json_t *j = r->counts[i];
        const double elements = record_value(j, "elements", 0.0),
                     instructions = record_value(j, "instructions", 0.0);
        if (is_count_of(j, row) && is(j, "build", build) && elements > 0.0 &&
            instructions > 0.0)
            value = instructions / elements;
    }
    return value;
}

static int small_count(const json_t *j, const char *path)
{
    const double value = record_value(j, path, 0.0);
    return value >= 0.0 && value <= 1e6 ? (int)value : 0;
}

static struct pair_row row_of(const struct results *r, const json_t *j)
{
    const double none = (double)NAN;
    struct pair_row row = {
        .json = j,
        .id = record_text(j, "case"),
        .kernel = record_text(j, "kernel"),
        .backend = record_text(j, "backend"),
        .footprint = record_text(j, "footprint.name"),
        .reason = record_text(j, "reason"),
        .kind = verdict_find(record_text(j, "verdict")),
        .base_ns = record_value(j, "base.ns", 0.0),
        .head_ns = record_value(j, "head.ns", 0.0),
        .ratio = record_value(j, "ratio", none),
        .lo = record_value(j, "ci.lo", none),
        .hi = record_value(j, "ci.hi", none),
        .level = record_value(j, "ci.level", 0.99),
        .floor = record_value(j, "floor", none),
        .budget = record_value(j, "budget", none),
        .null_ratio = record_value(j, "null_ratio", none),
        .more_s = record_value(j, "more_s", 0.0),
        .launches = small_count(j, "launches"),
        .rounds = small_count(j, "rounds"),
        .confirmed = json_is_true(json_object_get(j, "confirmed")),
    };
    if (row.kind == VERDICT_KINDS) /* of a later release */
        row.kind = VERDICT_UNCLEAR;
    if (!(row.ratio > 0.0))
        row.ratio = row.lo = row.hi = none;
    row.broken = json_object_get(j, "failed") && !is(j, "failed.who", "base") &&
                 !is(j, "failed.how", "lacks it");
    row.more_s = row.more_s > 0.0 ? row.more_s : 0.0;
    row.fails = row.kind == VERDICT_SLOWER && row.confirmed && row.ratio - 1.0 >= row.budget;
    row.base_counted = counted(r, &row, "base");
    row.head_counted = counted(r, &row, "head");
    return row;
}

static double size_of_change(const struct pair_row *row)
{
    return isnan(row->ratio) ? 0.0 : fabs(log(row->ratio));
}

/* By verdict, those that changed most first. */
static int row_order(const void *a, const void *b)
{
    const struct pair_row *x = a, *y = b;
    const double p = size_of_change(x), q = size_of_change(y);
    if (x->broken != y->broken)
        return x->broken ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (p != q)
        return p > q ? -1 : 1;
    const int d = strcmp(x->id, y->id);
    return d ? d : strcmp(x->backend, y->backend);
}

/* Means over what was timed, and whether the machine moved. */
static void sum_up(struct comparison *c, double *moved, double *null)
{
    double sum = 0.0;
    for (size_t i = 0; i < c->n; i++) {
        const struct pair_row *row = &c->rows[i];
        c->of[row->kind] += !row->broken;
        c->broken += row->broken;
        c->failing += row->fails;
        if (isnan(row->ratio))
            continue;
        moved[c->timed] = log(row->ratio);
        null[c->timed] = row->null_ratio > 0.0 ? log(row->null_ratio) : 0.0;
        if (row->kind != VERDICT_UNCLEAR) {
            sum += moved[c->timed];
            c->known++;
        }
        c->timed++;
    }
    c->geomean = c->known ? exp(sum / (double)c->known) : (double)NAN;
    c->shift = verdict_shift_of(moved, null, c->timed);
    for (size_t i = 0; i < c->timed; i++)
        null[i] = expm1(fabs(null[i]));
    const struct stats_summary s = stats_summarise(null, c->timed);
    c->null_median = s.median;
    c->null_most = s.max;
}

/* ---- Changes ---- */

static struct change_row change_of(const json_t *j)
{
    const json_t *worse = json_object_get(j, "worse");
    return (struct change_row){
        .json = j,
        .id = record_text(j, "case"),
        .kernel = record_text(j, "kernel"),
        .backend = record_text(j, "backend"),
        .suite = record_text(j, "suite"),
        .what = record_text(j, "what"),
        .metric = record_text(j, "metric"),
        .witness = record_text(j, "witness"),
        .worse = json_is_true(worse)    ? 1
                 : json_is_false(worse) ? -1
                                        : 0,
    };
}

static int rank_of_change(const struct change_row *c)
{
    return c->worse > 0 ? 0 : c->worse == 0 ? 1 : 2;
}

static int change_order(const void *a, const void *b)
{
    const struct change_row *x = a, *y = b;
    if (rank_of_change(x) != rank_of_change(y))
        return rank_of_change(x) - rank_of_change(y);
    int d = -strcmp(x->what, y->what); /* statuses, errors, bits */
    d = d ? d : strcmp(x->id, y->id);
    d = d ? d : strcmp(x->backend, y->backend);
    return d ? d : strcmp(x->suite, y->suite);
}

void change_side(const struct change_row *change, const char *side, char text[SIDE_TEXT])
{
    const json_t *j = json_object_get(change->json, side), *max = json_object_get(j, "max");
    const char *status = record_text(j, "status"), *value = record_text(j, "value");
    if (max)
        snprintf(text, SIDE_TEXT, "%s", show_error(record_double(max, 0.0), change->metric));
    else if (*status || *value)
        snprintf(text, SIDE_TEXT, "%.90s", *status ? status : value);
    else
        snprintf(text, SIDE_TEXT, "-");
}

/* ---- Both ---- */

bool has_comparison(const struct results *r)
{
    return r->n_pairs + r->n_changes > 0 || json_object_get(r->header, "compare");
}

int comparison_make(const struct results *r, struct comparison *c)
{
    *c = (struct comparison){ .n = r->n_pairs, .n_changes = r->n_changes };
    c->rows = calloc(c->n + 1, sizeof *c->rows);
    c->changes = calloc(c->n_changes + 1, sizeof *c->changes);
    double *logs = calloc(2 * c->n + 1, sizeof *logs);
    const bool fine = c->rows && c->changes && logs;
    for (size_t i = 0; fine && i < c->n; i++)
        c->rows[i] = row_of(r, r->pairs[i]);
    for (size_t i = 0; fine && i < c->n_changes; i++) {
        c->changes[i] = change_of(r->changes[i]);
        c->worse += c->changes[i].worse > 0;
        c->better += c->changes[i].worse < 0;
        c->moved += c->changes[i].worse == 0;
    }
    if (fine) {
        qsort(c->rows, c->n, sizeof *c->rows, row_order);
        qsort(c->changes, c->n_changes, sizeof *c->changes, change_order);
        sum_up(c, logs, logs + c->n);
    } else {
        comparison_free(c);
    }
    free(logs);
    return fine ? 0 : -1;
}

void comparison_free(struct comparison *c)
{
    free(c->rows);
    free(c->changes);
    *c = (struct comparison){ 0 };
}
