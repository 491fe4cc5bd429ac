/*
 * A baseline: of results what does not depend on the day, for `posenc compare BASELINE RESULTS`.  Largest errors, and
 * shares of the roof where something was timed and is not noisy, never times; no date, no commit and no version, so that the file of a
 * CPU differs in version control only where a result does.
 *
 * Kept are backends that are written here (family "template"): the others are what a compiler and a library of its own
 * make of them.  A line a case, backend and suite, sorted, and a footer where the run came to its end.
 */
#include "reports/formats.h"
#include "reports/query.h"
#include "reports/ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_own(const char *family) { return strcmp(family, "template") == 0; }

static int conf_order(const void *a, const void *b)
{
    const struct conf_row *x = *(const struct conf_row *const *)a,
                          *y = *(const struct conf_row *const *)b;
    int d = strcmp(x->id, y->id);
    d = d ? d : strcmp(x->backend, y->backend);
    return d ? d : strcmp(x->suite, y->suite);
}

static int bench_order(const void *a, const void *b)
{
    const struct bench_row *x = *(const struct bench_row *const *)a,
                           *y = *(const struct bench_row *const *)b;
    int d = strcmp(x->id, y->id);
    d = d ? d : strcmp(x->backend, y->backend);
    return d ? d : (x->threads > y->threads) - (x->threads < y->threads);
}

/* Takes the record; false: no memory, or a write error. */
static bool put(FILE *out, json_t *record)
{
    const bool fine =
        record && json_dumpf(record, out, RECORDS_DUMP) == 0 && fputc('\n', out) != EOF;
    json_decref(record);
    return fine;
}

static bool put_machine(FILE *out, const struct results *r)
{
    json_t *vectors = json_copy(json_object_get(r->header, "vectors"));
    return put(out, json_pack("{s:s,s:s,s:s,s:o?}", "t", "header", "schema", RECORDS_SCHEMA,
                              "mode", "baseline", "vectors", vectors)) &&
           put(out, json_pack("{s:s,s:s,s:{s:s},s:{s:s}}", "t", "env", "env_id",
                              record_text(r->env, "cpu.key"), "cpu", "key",
                              record_text(r->env, "cpu.key"), "build", "type",
                              record_text(r->env, "build.type")));
}

static bool put_check(FILE *out, const struct conf_row *c)
{
    return put(out, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:{s:s,s:o}}", "t", "conf",
                              "case", c->id, "backend", c->backend, "suite", c->suite, "kernel",
                              c->kernel, "dtype", c->dtype, "profile", c->profile, "family",
                              c->family, "status", c->status, "err", "metric", c->metric, "max",
                              record_number(c->max)));
}

static bool put_time(FILE *out, const struct bench_row *b)
{
    return put(out, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:{s:o}}", "t", "bench", "case",
                              b->id, "backend", b->backend, "kernel", b->kernel, "dtype",
                              b->dtype, "profile", b->profile, "family", b->family, "threads",
                              b->threads, "roof", "ratio", record_number(b->roof_ratio)));
}

/* Without it the file is one of a run that ended early, which no gate takes. */
static bool put_end(FILE *out, const struct results *r)
{
    return r->finished < r->runs ||
           put(out, json_pack("{s:s,s:b}", "t", "footer", "complete", 1));
}

static bool put_results(FILE *out, const struct results *r)
{
    const struct conf_row **checks = calloc(r->n_conf + 1, sizeof *checks);
    const struct bench_row **times = calloc(r->n_bench + 1, sizeof *times);
    size_t n_checks = 0, n_times = 0;
    bool fine = checks && times;
    for (size_t i = 0; fine && i < r->n_conf; i++)
        if (is_own(r->conf[i].family) && *r->conf[i].metric)
            checks[n_checks++] = &r->conf[i];
    for (size_t i = 0; fine && i < r->n_bench; i++)
        if (is_own(r->bench[i].family) && r->bench[i].roof_ratio > 0.0 &&
            !is_noisy(&r->bench[i]))
            times[n_times++] = &r->bench[i];
    if (fine) {
        qsort(checks, n_checks, sizeof *checks, conf_order);
        qsort(times, n_times, sizeof *times, bench_order);
    }
    for (size_t i = 0; fine && i < n_checks; i++)
        fine = put_check(out, checks[i]);
    for (size_t i = 0; fine && i < n_times; i++)
        fine = put_time(out, times[i]);
    free(checks);
    free(times);
    return fine;
}

int format_baseline(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    struct results r;
    bool fine = true;
    for (size_t m = 0; fine && m < results_machines(records); m++) {
        fine = results_make(records, m, &r) == 0;
        if (fine) {
            fine = put_machine(out, &r) && put_results(out, &r) && put_end(out, &r);
            results_free(&r);
        }
    }
    return fine ? 0 : -1;
}
