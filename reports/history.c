/*
 * Puts the results of runs into series; see history.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "history.h"
#include "query.h"
#include "statistics/changepoints.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_NAME = 160, KEY = 400, CHANGES = 32 };

/* A run on a machine. */
struct moment {
    struct results r;
    char group[GROUP_NAME]; /* machine and type of build */
    const char *path, *started, *commit;
    size_t place, at; /* of its commit in the list, 0 without one; of its file */
};

struct making {
    const struct history_wanted *wanted;
    struct history *out;
    struct moment *moment;
    size_t n;
    bool fine;
};

static bool same(const char *a, const char *b) { return strcmp(a, b) == 0; }

static void append(struct making *m, json_t *list, json_t *one)
{
    if (!one || json_array_append_new(list, one))
        m->fine = false;
}

static bool matches(const struct history_names *names, const char *name, const char *family)
{
    bool found = names->n == 0;
    for (size_t i = 0; i < names->n && !found; i++)
        found =
            fnmatch(names->item[i], name, 0) == 0 || fnmatch(names->item[i], family, 0) == 0;
    return found;
}

static bool is_wanted(const struct history_wanted *w, const char *kernel, const char *backend,
                      const char *family, const char *id)
{
    return matches(&w->kernel, kernel, kernel) && matches(&w->backend, backend, family) &&
           matches(&w->cases, id, id);
}

/* ---- Runs in their order ---- */

/* The place of a commit in the list, by as many digits as both have; the number of them: none. */
static size_t place_of(const json_t *commits, const char *commit)
{
    const size_t n = json_array_size(commits), length = strlen(commit);
    for (size_t i = 0; i < n && length > 0; i++) {
        const char *one = json_string_value(json_array_get(commits, i));
        const size_t shorter = one && strlen(one) < length ? strlen(one) : length;
        if (one && shorter >= 7 && strncmp(one, commit, shorter) == 0)
            return i;
    }
    return n;
}

static void leave_out(struct making *m, const char *path, const char *why)
{
    append(m, m->out->left_out, json_sprintf("%s: %s", path, why));
}

static void add_moment(struct making *m, const struct history_file *file, size_t machine,
                       size_t at)
{
    struct moment *one = &m->moment[m->n];
    *one = (struct moment){ .path = file->path, .at = at };
    if (results_make(file->records, machine, &one->r)) {
        m->fine = false;
        return;
    }
    one->started = record_text(one->r.header, "started");
    one->commit = record_text(one->r.header, "tool.commit");
    const char *type = record_text(one->r.env, "build.type");
    snprintf(one->group, sizeof one->group, "%.120s%s%.32s", record_text(one->r.env, "env_id"),
             !*type || same(type, "release") ? "" : ", ", same(type, "release") ? "" : type);
    m->n++;
    if (!m->wanted->commits)
        return;
    one->place = place_of(m->wanted->commits, one->commit);
    if (one->place == json_array_size(m->wanted->commits)) {
        leave_out(m, file->path, "its commit is not in the list");
        results_free(&m->moment[--m->n].r);
    }
}

static int order_of(size_t a, size_t b) { return (a > b) - (a < b); }

static int moment_order(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    int d = strcmp(x->group, y->group);
    d = d ? d : order_of(x->place, y->place);
    d = d ? d : strcmp(x->started, y->started);
    return d ? d : order_of(x->at, y->at);
}

/* ---- Series ---- */

/* The record of a series, made when it is first met. */
static json_t *series_of(struct making *m, json_t *all, const char *key, const char *what,
                         const char *kernel, const char *id, const char *backend,
                         const char *family)
{
    json_t *series = json_object_get(all, key);
    if (series)
        return series;
    series = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:[]}", "t", "history", "what", what, "kernel",
                       kernel, "case", id, "backend", backend, "family", family, "points");
    if (!series || json_object_set_new(all, key, series)) {
        m->fine = false;
        return NULL;
    }
    return series;
}

/* As a file holds it, so that what is made of it is the same when that is read again. */
static double as_written(double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.10g", value);
    return strtod(text, NULL);
}

static json_t *point_of(const struct moment *moment, size_t run, const char *member,
                        double value)
{
    json_t *point =
        json_pack("{s:i,s:s,s:s,s:o}", "run", (int)run, "commit", moment->commit, "started",
                  moment->started, member, record_number(as_written(value)));
    if (point &&
        json_is_true(json_object_get(json_object_get(moment->r.header, "tool"), "dirty")))
        json_object_set_new(point, "dirty", json_true());
    return point;
}

static void add_times(struct making *m, json_t *all, const struct moment *moment, size_t run)
{
    for (size_t i = 0; i < moment->r.n_bench; i++) {
        const struct bench_row *row = &moment->r.bench[i];
        char key[KEY];
        if (*row->refused || !(row->roof_ratio > 0.0) || !isfinite(row->roof_ratio) ||
            !is_wanted(m->wanted, row->kernel, row->backend, row->family, row->id))
            continue;
        snprintf(key, sizeof key, "%.32s|%.200s|%.64s|%d", row->kernel, row->id, row->backend,
                 row->threads);
        json_t *series =
            series_of(m, all, key, "roof", row->kernel, row->id, row->backend, row->family);
        if (!series)
            return;
        if (row->threads > 1)
            json_object_set_new(series, "threads", json_integer(row->threads));
        append(m, json_object_get(series, "points"),
               point_of(moment, run, "roof", row->roof_ratio));
        m->out->results++;
    }
}

/* A result in a word: its error, or its status where it did not pass. */
static void add_checks(struct making *m, json_t *all, const struct moment *moment, size_t run)
{
    for (size_t i = 0; i < moment->r.n_conf; i++) {
        const struct conf_row *row = &moment->r.conf[i];
        char key[KEY];
        if (!*row->metric ||
            !is_wanted(m->wanted, row->kernel, row->backend, row->family, row->id))
            continue;
        snprintf(key, sizeof key, "%.200s|%.64s|%.32s|%.32s", row->id, row->backend, row->suite,
                 row->metric);
        json_t *series =
            series_of(m, all, key, "error", row->kernel, row->id, row->backend, row->family);
        if (!series)
            return;
        json_t *points = json_object_get(series, "points");
        const json_t *last = json_array_get(points, json_array_size(points) - 1);
        json_t *point = point_of(moment, run, "max", row->max);
        if (last && point &&
            json_equal(json_object_get(last, "max"), json_object_get(point, "max"))) {
            json_decref(point); /* only what changed is kept */
        } else {
            append(m, points, point);
        }
        json_object_set_new(series, "suite", json_string(row->suite));
        json_object_set_new(series, "metric", json_string(row->metric));
        m->out->results++;
    }
}

/* ---- Changes ---- */

static json_t *change_of(const struct changepoint *c)
{
    return json_pack("{s:i,s:i,s:i,s:f,s:f,s:f,s:f}", "at", (int)c->at, "from", (int)c->from,
                     "to", (int)c->to, "before", exp(c->before), "after", exp(c->after),
                     "change", expm1(c->after - c->before), "p", c->p);
}

static void find_changes(struct making *m, json_t *series)
{
    const json_t *points = json_object_get(series, "points");
    const size_t n = json_array_size(points);
    struct changepoint found[CHANGES];
    double *logs = calloc(n + 1, sizeof *logs);
    json_t *changes = json_array();
    m->fine = m->fine && logs && changes;
    for (size_t i = 0; m->fine && i < n; i++)
        logs[i] = log(record_value(json_array_get(points, i), "roof", 1.0));
    const size_t n_found = m->fine ? changepoints_find(logs, n, 1, found, CHANGES) : 0;
    for (size_t i = 0; i < n_found; i++)
        append(m, changes, change_of(&found[i]));
    if (json_object_set_new(series, "changes", changes))
        m->fine = false;
    free(logs);
}

/* ---- Geometric means ---- */

/* Whether two series have a value of the same runs. */
static bool same_runs(const json_t *a, const json_t *b)
{
    const json_t *x = json_object_get(a, "points"), *y = json_object_get(b, "points");
    bool equal = json_array_size(x) == json_array_size(y);
    for (size_t i = 0; equal && i < json_array_size(x); i++)
        equal = record_value(json_array_get(x, i), "run", -1.0) ==
                record_value(json_array_get(y, i), "run", -1.0);
    return equal;
}

static bool same_kind(const json_t *a, const json_t *b)
{
    return same(record_text(a, "kernel"), record_text(b, "kernel")) &&
           same(record_text(a, "backend"), record_text(b, "backend")) &&
           record_value(a, "threads", 1.0) == record_value(b, "threads", 1.0);
}

/* Of a kernel's backend the series with most runs: the one that means go by. */
static const json_t *longest(json_t *all, const json_t *like)
{
    const json_t *found = NULL, *one;
    const char *key;
    json_object_foreach(
        all, key, one) if (same_kind(one, like) &&
                           (!found || json_array_size(json_object_get(one, "points")) >
                                          json_array_size(json_object_get(found, "points"))))
        found = one;
    return found;
}

/* Of the cases that were timed in every one of these runs, so that each mean is of the same. */
static json_t *mean_of(struct making *m, json_t *all, const json_t *of)
{
    json_t *mean = json_deep_copy(of), *points = json_object_get(mean, "points"), *one;
    const char *key;
    int cases = 0;
    const size_t n = json_array_size(points);
    double *sum = calloc(n + 1, sizeof *sum);
    m->fine = m->fine && mean && sum;
    json_object_foreach(all, key, one)
    {
        if (!m->fine || !same_kind(one, of) || !same_runs(one, of))
            continue;
        cases++;
        for (size_t i = 0; i < n; i++)
            sum[i] += log(
                record_value(json_array_get(json_object_get(one, "points"), i), "roof", 1.0));
    }
    for (size_t i = 0; m->fine && i < n; i++)
        json_object_set_new(json_array_get(points, i), "roof",
                            record_number(as_written(exp(sum[i] / cases))));
    json_object_set_new(mean, "what", json_string("mean"));
    json_object_set_new(mean, "case", json_string(""));
    json_object_set_new(mean, "cases", json_integer(cases));
    free(sum);
    return mean;
}

static void add_means(struct making *m, json_t *all, json_t *into)
{
    const char *key;
    json_t *one;
    json_object_foreach(all, key, one)
    {
        if (!m->fine || longest(all, one) != one)
            continue;
        json_t *mean = mean_of(m, all, one);
        if (mean && record_value(mean, "cases", 0.0) > 1.0)
            append(m, into, mean);
        else
            json_decref(mean);
    }
}

/* ---- A machine ---- */

static json_t *runs_of(struct making *m, size_t from, size_t to)
{
    json_t *runs = json_array();
    for (size_t i = from; i < to; i++)
        append(m, runs,
               json_pack("{s:o,s:s,s:s}", "path", record_string(m->moment[i].path), "commit",
                         m->moment[i].commit, "started", m->moment[i].started));
    return runs;
}

/* What was never otherwise is told as a number alone. */
static void add_errors(struct making *m, json_t *errors, json_t *runs)
{
    const char *key;
    json_t *one;
    int changed = 0;
    json_object_foreach(errors, key,
                        one) if (json_array_size(json_object_get(one, "points")) > 1)
    {
        append(m, m->out->records, json_incref(one));
        changed++;
    }
    json_object_set_new(runs, "checked", json_integer((json_int_t)json_object_size(errors)));
    json_object_set_new(runs, "changed", json_integer(changed));
}

static void add_machine(struct making *m, size_t from, size_t to)
{
    json_t *times = json_object(), *errors = json_object(), *means = json_array(), *one;
    json_t *env = json_copy((json_t *)m->moment[to - 1].r.env);
    json_t *runs = json_pack("{s:s,s:o}", "t", "runs", "runs", runs_of(m, from, to));
    const char *key;
    size_t at;
    m->fine = m->fine && times && errors && means && runs;
    for (size_t i = from; m->fine && i < to; i++) {
        add_times(m, times, &m->moment[i], i - from);
        add_checks(m, errors, &m->moment[i], i - from);
    }
    if (env) {
        json_object_set_new(env, "env_id", json_string(m->moment[from].group));
        append(m, m->out->records, env);
    }
    if (m->fine) {
        append(m, m->out->records, json_incref(runs));
        add_means(m, times, means);
        json_array_foreach(means, at, one)
        {
            find_changes(m, one);
            append(m, m->out->records, json_incref(one));
        }
        json_object_foreach(times, key, one)
        {
            find_changes(m, one);
            append(m, m->out->records, json_incref(one));
        }
        add_errors(m, errors, runs);
    }
    json_decref(times);
    json_decref(errors);
    json_decref(means);
    json_decref(runs);
}

static bool has_wanted(const struct making *m, const struct results *r)
{
    for (size_t i = 0; i < r->n_bench; i++)
        if (is_wanted(m->wanted, r->bench[i].kernel, r->bench[i].backend, r->bench[i].family,
                      r->bench[i].id))
            return true;
    for (size_t i = 0; i < r->n_conf; i++)
        if (is_wanted(m->wanted, r->conf[i].kernel, r->conf[i].backend, r->conf[i].family,
                      r->conf[i].id))
            return true;
    return false;
}

static void gather(struct making *m, const struct history_file *files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; m->fine && k < results_machines(files[i].records); k++) {
            const size_t before = m->n;
            add_moment(m, &files[i], k, i);
            if (m->n > before && !has_wanted(m, &m->moment[before].r)) {
                leave_out(m, files[i].path, "has no result that is asked for");
                results_free(&m->moment[--m->n].r);
            }
        }
}

int history_make(const struct history_file *files, size_t n,
                 const struct history_wanted *wanted, struct history *out)
{
    size_t most = 0;
    for (size_t i = 0; i < n; i++)
        most += results_machines(files[i].records);
    *out = (struct history){ .records = json_array(), .left_out = json_array() };
    struct making m = { .wanted = wanted, .out = out };
    m.moment = calloc(most + 1, sizeof *m.moment);
    m.fine = m.moment && out->records && out->left_out;
    if (m.fine)
        gather(&m, files, n);
    if (m.n > 1)
        qsort(m.moment, m.n, sizeof *m.moment, moment_order);
    for (size_t from = 0, to; m.fine && from < m.n; from = to) {
        for (to = from + 1; to < m.n && same(m.moment[to].group, m.moment[from].group);)
            to++;
        add_machine(&m, from, to);
    }
    for (size_t i = 0; i < m.n; i++)
        results_free(&m.moment[i].r);
    free(m.moment);
    if (m.fine)
        return 0;
    history_free(out);
    return -1;
}

void history_free(struct history *history)
{
    json_decref(history->records);
    json_decref(history->left_out);
    *history = (struct history){ 0 };
}
