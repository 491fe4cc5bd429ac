/*
 * Bencher Metric Format: an object of benchmarks, each an object of measures, each with its value and, where
 * they are known, a lower and an upper one.  https://bencher.dev/bmf.json
 *
 *     latency                   ns of one call, the median and its interval
 *     roof-share                of the best this machine could do with the same bytes
 *     head-to-base              of two builds that were compared: the time of head over that of base
 *     instructions-per-element  exact
 *     max-ulp, max-abs, ...     the largest error of a check, by its metric
 *
 * What is not finite is left out: the schema has no such numbers.
 */
#include "reports/exported.h"
#include "reports/formats.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Adds {value, lower_value, upper_value} to a benchmark, which is made where it is not there yet. */
static int add(json_t *all, const char *name, const char *measure, double value, double lo,
               double hi)
{
    json_t *benchmark = json_object_get(all, name), *metric = json_object();
    if (!isfinite(value)) {
        json_decref(metric);
        return 0;
    }
    exported_number(metric, "value", value);
    exported_number(metric, "lower_value", lo);
    exported_number(metric, "upper_value", hi);
    if (!benchmark && json_object_set_new(all, name, json_object()) == 0)
        benchmark = json_object_get(all, name);
    return json_object_set_new(benchmark, measure, metric);
}

static int add_timing(json_t *all, const char *machine, const struct bench_row *b)
{
    char name[EXPORTED_NAME];
    if (*b->refused)
        return 0;
    exported_name(name, machine, b->id, b->backend, b->threads, "");
    int status = add(all, name, "latency", b->median, b->lo > 0.0 ? b->lo : (double)NAN,
                     b->hi > 0.0 ? b->hi : (double)NAN);
    if (status == 0 && exported_roof(b) > 0.0)
        status = add(all, name, "roof-share", 1.0 / exported_roof(b), (double)NAN, (double)NAN);
    return status;
}

static int add_pair(json_t *all, const char *machine, const json_t *pair)
{
    char name[EXPORTED_NAME];
    exported_name(name, machine, record_text(pair, "case"), record_text(pair, "backend"), 1,
                  "");
    return add(all, name, "head-to-base", record_value(pair, "ratio", (double)NAN),
               record_value(pair, "ci.lo", (double)NAN),
               record_value(pair, "ci.hi", (double)NAN));
}

static int add_count(json_t *all, const char *machine, const json_t *count)
{
    char name[EXPORTED_NAME];
    exported_count_name(name, machine, count, "");
    return add(all, name, "instructions-per-element", instructions_per_element(count),
               (double)NAN, (double)NAN);
}

/* "pair ulp" -> "max-pair-ulp": a measure is known by letters, digits and hyphens. */
static int add_error(json_t *all, const char *machine, const struct conf_row *c)
{
    char name[EXPORTED_NAME], measure[64];
    if (!*c->metric || strcmp(c->metric, "exact") == 0) /* 0, or the check failed */
        return 0;
    snprintf(measure, sizeof measure, "max-%.50s", c->metric);
    for (char *p = measure; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '-';
    exported_name(name, machine, c->id, c->backend, 1, "");
    const json_t *other = json_object_get(json_object_get(all, name), measure); /* of a suite */
    if (record_value(other, "value", 0.0) > c->max)
        return 0;
    return add(all, name, measure, c->max, (double)NAN, (double)NAN);
}

static int add_machine(json_t *all, const char *machine, const struct results *r)
{
    int failed = 0;
    for (size_t i = 0; i < r->n_bench; i++)
        failed |= add_timing(all, machine, &r->bench[i]);
    for (size_t i = 0; i < r->n_pairs; i++)
        failed |= add_pair(all, machine, r->pairs[i]);
    for (size_t i = 0; i < r->n_counts; i++)
        failed |= add_count(all, machine, r->counts[i]);
    for (size_t i = 0; i < r->n_conf; i++)
        failed |= add_error(all, machine, &r->conf[i]);
    return failed;
}

int format_bmf(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    struct exported list = { .out = out };
    json_t *all = json_object(), *benchmark;
    const char *name;
    bool failed = !all;
    for (size_t m = 0; !failed && m < results_machines(records); m++) {
        struct results r;
        failed = results_make(records, m, &r) != 0 ||
                 add_machine(all, exported_machine(records, &r), &r) != 0;
        results_free(&r);
    }
    fputc('{', out);
    json_object_foreach(all, name, benchmark)
        exported_entry(&list, name, json_incref(benchmark));
    fputs("\n}\n", out);
    json_decref(all);
    return failed || list.failed ? -1 : 0;
}
