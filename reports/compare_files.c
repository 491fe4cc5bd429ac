/*
 * Joins the results of two files by case, backend and suite; see compare_files.h.
 */
#include "compare_files.h"
#include "query.h"
#include "ranking.h"
#include "statistics/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct comparing {
    struct files_compared *out;
    const struct results *base, *head;
    bool same_run;       /* both asked for the same: what is missing in head was lost */
    bool vectors, times; /* can be compared */
    bool fine;
};

static bool same(const char *a, const char *b) { return strcmp(a, b) == 0; }

static void append(struct comparing *c, json_t *list, json_t *one)
{
    if (!one || json_array_append_new(list, one))
        c->fine = false;
}

/* ---- What cannot be compared ---- */

static void obstacle(struct comparing *c, const char *what, const char *base, const char *head)
{
    json_t *list = json_object_get(c->out->compare, "incomparable");
    c->out->obstacles++;
    append(c, list,
           json_pack("{s:s,s:s,s:s}", "what", what, "base", *base ? base : "not told", "head",
                     *head ? head : "not told"));
}

/* Whether the texts at a path are equal, or one is not told. */
static bool agree(struct comparing *c, const char *what, const json_t *base, const json_t *head,
                  const char *path)
{
    const char *b = record_text(base, path), *h = record_text(head, path);
    if (same(b, h) || !*b || !*h)
        return true;
    obstacle(c, what, b, h);
    return false;
}

static bool same_features(struct comparing *c)
{
    const json_t *base = json_object_get(json_object_get(c->base->env, "cpu"), "features"),
                 *head = json_object_get(json_object_get(c->head->env, "cpu"), "features");
    char counts[2][48];
    if (!base || !head || json_equal(base, head))
        return true;
    snprintf(counts[0], sizeof *counts, "%zu of them", json_array_size(base));
    snprintf(counts[1], sizeof *counts, "%zu, not the same", json_array_size(head));
    obstacle(c, "features of the CPU", counts[0], counts[1]);
    return false;
}

static const char *how_it_ended(const struct results *r)
{
    return r->finished < r->runs ? "ended early" : "whole";
}

static void find_obstacles(struct comparing *c)
{
    if (c->base->finished < c->base->runs || c->head->finished < c->head->runs)
        obstacle(c, "run", how_it_ended(c->base), how_it_ended(c->head));
    const json_t *base = c->base->env, *head = c->head->env;
    const bool cpu = agree(c, "CPU", base, head, "cpu.key");
    c->times = cpu;
    c->times = (!cpu || same_features(c)) && c->times;
    c->times = agree(c, "virtual machine", base, head, "virt.kind") && c->times;
    c->times = agree(c, "type of the build", base, head, "build.type") && c->times;
    c->times = agree(c, "emulator", base, head, "emulator") && c->times;
    c->vectors = agree(c, "golden vectors", c->base->header, c->head->header, "vectors.sha256");
}

/* The next word of a command line that says what is checked: where it goes, and how fast, do not. */
static const char *next_word(const json_t *argv, size_t *at)
{
    static const char *const aside[] = { "--out", "--jobs", "--dir", "--budget", "--seed" };
    while (*at < json_array_size(argv)) {
        const char *word = json_string_value(json_array_get(argv, (*at)++));
        bool skip = !word;
        for (size_t i = 0; word && i < sizeof aside / sizeof *aside; i++) {
            const size_t n = strlen(aside[i]);
            if (strncmp(word, aside[i], n) == 0 && (!word[n] || word[n] == '=')) {
                *at += !word[n]; /* and its value */
                skip = true;
            }
        }
        if (!skip)
            return word;
    }
    return "";
}

/* Whether what is missing in head was lost: the same was asked for, and both runs ended. */
static bool is_same_run(const struct results *base, const struct results *head)
{
    const json_t *a = json_object_get(base->header, "argv"),
                 *b = json_object_get(head->header, "argv");
    size_t i = 0, j = 0;
    const char *word;
    do {
        word = next_word(a, &i);
        if (!same(word, next_word(b, &j)))
            return false;
    } while (*word);
    return same(record_text(base->header, "mode"), record_text(head->header, "mode")) &&
           base->finished == base->runs && head->finished == head->runs;
}

/* ---- Changes ---- */

static json_t *change(const struct conf_row *row, const char *what, int worse, json_t *base,
                      json_t *head)
{
    json_t *record = json_pack(
        "{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:o,s:o}", "t", "change", "kernel", row->kernel,
        "dtype", row->dtype, "profile", row->profile, "case", row->id, "backend", row->backend,
        "family", row->family, "suite", row->suite, "what", what, "base", base, "head", head);
    if (record)
        json_object_set_new(record, "worse", worse ? json_boolean(worse > 0) : json_null());
    return record;
}

static void add_change(struct comparing *c, json_t *record, int worse)
{
    c->out->worse += worse > 0;
    c->out->better += worse < 0;
    c->out->moved += worse == 0;
    append(c, c->out->records, record);
}

/* How bad a status is. */
static int badness(const char *status)
{
    return same(status, "pass")    ? 0
           : same(status, "weak")  ? 2
           : same(status, "fail")  ? 3
           : same(status, "crash") ? 4
                                   : 1; /* skipped, unsupported, absent: nothing is known */
}

static bool is_failure(const char *status) { return badness(status) >= 2; }

static void compare_status(struct comparing *c, const struct conf_row *row, const char *base,
                           const char *head)
{
    const bool lost = same(head, "absent"), gained = same(base, "absent");
    const int b = badness(base), h = badness(head);
    if (same(base, head) || (gained && !is_failure(head)) || (lost && !c->same_run))
        return; /* what is checked more, or was not asked for, is no change */
    const int worse = h > b ? 1 : h < b && !lost ? -1 : 0;
    c->out->failed += is_failure(head) && !is_failure(base);
    json_t *record = change(row, "status", worse, json_pack("{s:s}", "status", base),
                            json_pack("{s:s}", "status", head));
    if (record && *row->reason && is_failure(head))
        json_object_set_new(record, "reason", json_string(row->reason));
    if (record && is_failure(head))
        json_object_set_new(record, "witness",
                            json_string(*row->witness ? row->witness : row->reason));
    add_change(c, record, worse);
}

static void compare_errors(struct comparing *c, const struct conf_row *base,
                           const struct conf_row *head)
{
    const bool equal = base->max == head->max || (isnan(base->max) && isnan(head->max));
    if (!*head->metric || !same(base->metric, head->metric) || equal)
        return;
    const int worse = head->max > base->max || isnan(head->max) ? 1 : -1;
    json_t *record =
        change(head, "error", worse, json_pack("{s:o}", "max", record_number(base->max)),
               json_pack("{s:o}", "max", record_number(head->max)));
    if (record) {
        json_object_set_new(record, "metric", json_string(head->metric));
        json_object_set_new(record, "limit", record_number(head->limit));
        json_object_set_new(record, "witness", json_string(head->witness));
    }
    add_change(c, record, worse);
}

static void compare_bits(struct comparing *c, const struct conf_row *base,
                         const struct conf_row *head)
{
    if (*base->digest && *head->digest && !same(base->digest, head->digest))
        add_change(c,
                   change(head, "bits", 0, json_pack("{s:s}", "value", base->digest),
                          json_pack("{s:s}", "value", head->digest)),
                   0);
}

static int conf_order(const void *a, const void *b)
{
    const struct conf_row *x = *(const struct conf_row *const *)a,
                          *y = *(const struct conf_row *const *)b;
    int d = strcmp(x->id, y->id);
    d = d ? d : strcmp(x->backend, y->backend);
    return d ? d : strcmp(x->suite, y->suite);
}

static const struct conf_row **sorted_checks(const struct results *r)
{
    const struct conf_row **rows = calloc(r->n_conf + 1, sizeof *rows);
    for (size_t i = 0; rows && i < r->n_conf; i++)
        rows[i] = &r->conf[i];
    if (rows)
        qsort(rows, r->n_conf, sizeof *rows, conf_order);
    return rows;
}

static void compare_check(struct comparing *c, const struct conf_row *base,
                          const struct conf_row *head)
{
    const struct conf_row *row = head ? head : base;
    if (!c->vectors && same(row->suite, "vectors"))
        return;
    c->out->results += base && head;
    compare_status(c, row, base ? base->status : "absent", head ? head->status : "absent");
    if (base && head) {
        compare_errors(c, base, head);
        if (same(base->status, head->status)) /* else that says why */
            compare_bits(c, base, head);
    }
}

static void compare_checks(struct comparing *c)
{
    const struct conf_row **base = sorted_checks(c->base), **head = sorted_checks(c->head);
    size_t i = 0, j = 0;
    c->fine = c->fine && base && head;
    while (c->fine && (i < c->base->n_conf || j < c->head->n_conf)) {
        const int d = i == c->base->n_conf   ? 1
                      : j == c->head->n_conf ? -1
                                             : conf_order(&base[i], &head[j]);
        compare_check(c, d <= 0 ? base[i] : NULL, d >= 0 ? head[j] : NULL);
        i += d <= 0;
        j += d >= 0;
    }
    free(base);
    free(head);
}

/* ---- Times ---- */

static const struct bench_row *partner(const struct results *r, const struct bench_row *row)
{
    for (size_t i = 0; i < r->n_bench; i++)
        if (same(r->bench[i].id, row->id) && same(r->bench[i].backend, row->backend) &&
            r->bench[i].threads == row->threads)
            return &r->bench[i];
    return NULL;
}

/* An output that was found wrong, and therefore not timed. */
static void compare_outputs(struct comparing *c, const struct bench_row *base,
                            const struct bench_row *head)
{
    const struct conf_row row = { .id = head->id,
                                  .kernel = head->kernel,
                                  .dtype = head->dtype,
                                  .profile = head->profile,
                                  .backend = head->backend,
                                  .family = head->family,
                                  .suite = "bench",
                                  .reason = head->refused,
                                  .witness = "" };
    const char *before = !base ? "absent" : is_wrong(base) ? "fail" : "pass";
    compare_status(c, &row, before, is_wrong(head) ? "fail" : "pass");
}

/* Whether there is something to compare: times, or shares of the roof, which are all that a baseline has. */
static bool has_trend(const struct bench_row *base, const struct bench_row *head)
{
    const bool wrong =
        *record_text(base->json, "refused") || *record_text(head->json, "refused");
    return !wrong && ((base->median > 0.0 && head->median > 0.0) ||
                      (base->roof_ratio > 0.0 && head->roof_ratio > 0.0));
}

static json_t *time_of(const struct bench_row *row)
{
    return row->median > 0.0 ? record_number(row->median) : json_null();
}

static void add_trend(struct comparing *c, const struct bench_row *base,
                      const struct bench_row *head)
{
    json_t *record =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:{s:o,s:o},s:{s:o,s:o}}", "t", "trend",
                  "kernel", head->kernel, "dtype", head->dtype, "profile", head->profile,
                  "case", head->id, "backend", head->backend, "family", head->family, "base",
                  "ns", time_of(base), "roof", record_number(base->roof_ratio), "head", "ns",
                  time_of(head), "roof", record_number(head->roof_ratio));
    if (record && base->median > 0.0 && head->median > 0.0)
        json_object_set_new(record, "ratio", record_number(head->median / base->median));
    if (record && base->roof_ratio > 0.0 && head->roof_ratio > 0.0)
        json_object_set_new(record, "roof_ratio",
                            record_number(base->roof_ratio / head->roof_ratio));
    append(c, c->out->records, record);
}

/* Times that moved together with their roofs: the machine. */
static void tell_shift(struct comparing *c, const double *moved, const double *roof, size_t n)
{
    const struct verdict_shift shift = verdict_shift_of(moved, roof, n);
    if (shift.machine)
        json_object_set_new(c->out->compare, "machine", json_string(shift.reason));
}

static void compare_times(struct comparing *c)
{
    double *logs = calloc(2 * c->head->n_bench + 1, sizeof *logs);
    size_t n = 0;
    c->fine = c->fine && logs;
    for (size_t i = 0; c->fine && i < c->head->n_bench; i++) {
        const struct bench_row *head = &c->head->bench[i], *base = partner(c->base, head);
        compare_outputs(c, base, head);
        if (!c->times || !base || !has_trend(base, head))
            continue;
        add_trend(c, base, head);
        c->out->times++;
        if (base->roof_gbps > 0.0 && head->roof_gbps > 0.0) {
            logs[n] = log(head->median / base->median);
            logs[c->head->n_bench + n++] = log(base->roof_gbps / head->roof_gbps);
        }
    }
    if (c->fine)
        tell_shift(c, logs, logs + c->head->n_bench, n);
    free(logs);
}

/* ---- Machines ---- */

static void compare_machine(struct comparing *c)
{
    const json_t *env = c->head->env ? c->head->env : c->base->env;
    if (env)
        append(c, c->out->records, json_copy((json_t *)env));
    find_obstacles(c);
    c->same_run = is_same_run(c->base, c->head);
    compare_checks(c);
    compare_times(c);
}

/* The machine of head that a machine of base is to be compared with: by name, where one file has several;
 * as many as there are: none. */
static size_t partner_machine(const json_t *base, size_t machine, const json_t *head)
{
    const size_t n = results_machines(head);
    size_t found = n;
    if (n == 1 && results_machines(base) == 1)
        return 0;
    struct results mine, other;
    if (results_make(base, machine, &mine))
        return n;
    for (size_t m = 0; m < n && found == n && results_make(head, m, &other) == 0; m++) {
        found = same(record_text(mine.env, "env_id"), record_text(other.env, "env_id")) ? m : n;
        results_free(&other);
    }
    results_free(&mine);
    return found;
}

static json_t *side_of(const struct result_file *file, const struct results *r)
{
    return json_pack("{s:s,s:s,s:s}", "path", file->path, "version",
                     record_text(r->header, "tool.version"), "started",
                     record_text(r->header, "started"));
}

static void compare_machines(struct comparing *c, const struct result_file *base,
                             const struct result_file *head, size_t machine)
{
    struct results b, h;
    const size_t other = partner_machine(base->records, machine, head->records);
    if (results_make(base->records, machine, &b)) {
        c->fine = false;
    } else if (other == results_machines(head->records)) {
        obstacle(c, "machine", record_text(b.env, "env_id"), "absent");
        results_free(&b);
    } else if (results_make(head->records, other, &h)) {
        c->fine = false;
        results_free(&b);
    } else {
        c->base = &b;
        c->head = &h;
        if (!json_object_get(c->out->compare, "base")) {
            json_object_set_new(c->out->compare, "base", side_of(base, &b));
            json_object_set_new(c->out->compare, "head", side_of(head, &h));
        }
        compare_machine(c);
        results_free(&b);
        results_free(&h);
    }
}

int compare_files(const struct result_file *base, const struct result_file *head,
                  struct files_compared *out)
{
    *out = (struct files_compared){ .compare = json_pack("{s:[]}", "incomparable"),
                                    .records = json_array() };
    struct comparing c = { .out = out, .fine = out->compare && out->records };
    for (size_t m = 0; c.fine && m < results_machines(base->records); m++)
        compare_machines(&c, base, head, m);
    if (c.fine && out->results + out->times + out->obstacles == 0)
        obstacle(&c, "results", "none that head has", "none that base has");
    if (c.fine)
        json_object_set_new(out->compare, "results", json_integer((json_int_t)out->results));
    if (c.fine)
        return 0;
    files_compared_free(out);
    return -1;
}

void files_compared_free(struct files_compared *out)
{
    json_decref(out->compare);
    json_decref(out->records);
    *out = (struct files_compared){ 0 };
}
