/*
 * Makes records of pairs, of what compare.c measured.
 */
#define _POSIX_C_SOURCE 200809L
#include "compare.h"
#include "emit.h"
#include "reports/statistics/stats.h"

#include <math.h>
#include <stdio.h>

static json_t *numbers(const double *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, record_number(values[i]));
    return list;
}

static json_t *samples_of(const struct compare_row *row, double *const *lists)
{
    json_t *launches = json_array();
    for (size_t l = 0; l < row->launches; l++)
        json_array_append_new(launches, numbers(lists[l], row->rounds[l]));
    return launches;
}

static json_t *launch_ratios(const struct compare_row *row)
{
    json_t *list = json_array();
    for (size_t l = 0; l < row->launches; l++)
        json_array_append_new(list,
                              record_number(exp(stats_median(row->head[l], row->rounds[l]))));
    return list;
}

/* Nobody's verdict on the time: the pair was not timed, or only one of them has it. */
static void say_untimed(json_t *record, const struct compare_row *row)
{
    static const char *const outcomes[] = { "timed", "lacks it", "refused", "wrong" };
    const char *what = row->crashed ? "crashed" : outcomes[row->outcome];
    const char *who = row->who < PAIR_SIDES ? pair_side_name[row->who] : "base or head";
    char reason[PAIR_REASON + 64];
    snprintf(reason, sizeof reason, "%s: %s", who, row->reason);
    json_object_set_new(record, "verdict", json_string(verdict_name[VERDICT_INCOMPARABLE]));
    json_object_set_new(record, "reason", json_string(reason));
    json_object_set_new(record, "failed", json_pack("{s:s,s:s}", "who", who, "how", what));
}

/* What was measured of one of the builds, and the digest of its code where that is known. */
static json_t *side_of(const struct compare_row *row, const double *ns, const char *code)
{
    json_t *side = json_pack("{s:o}", "ns", record_number(stats_median(ns, row->launches)));
    if (*code)
        json_object_set_new(side, "code", json_string(code));
    return side;
}

static void say_verdict(json_t *record, const struct compare *all,
                        const struct compare_row *row)
{
    const struct verdict *v = &row->verdict;
    const double so_far = row->spent_s;
    size_t rounds = 0;
    for (size_t l = 0; l < row->launches; l++)
        rounds += row->rounds[l];
    json_object_set_new(record, "base", side_of(row, row->base_ns, row->code[0]));
    json_object_set_new(record, "head", side_of(row, row->head_ns, row->code[1]));
    json_object_set_new(record, "verdict", json_string(verdict_name[v->kind]));
    json_object_set_new(record, "reason", json_string(v->reason));
    json_object_set_new(record, "launches", json_integer((json_int_t)row->launches));
    if (row->launches == 0)
        return;
    json_object_set_new(record, "ratio", record_number(v->ratio));
    json_object_set_new(record, "ci",
                        json_pack("{s:o,s:o,s:o}", "level", record_number(v->level), "lo",
                                  record_number(v->lo), "hi", record_number(v->hi)));
    json_object_set_new(record, "launch_ratios", launch_ratios(row));
    json_object_set_new(record, "floor", record_number(v->floor));
    json_object_set_new(record, "budget",
                        record_number(all->threshold > 0.0 ? all->threshold : 0.03));
    json_object_set_new(record, "confirmed", json_boolean(v->confirmed));
    json_object_set_new(record, "confirming", json_integer((json_int_t)row->confirming));
    json_object_set_new(record, "look", json_integer(row->look));
    json_object_set_new(record, "rounds", json_integer((json_int_t)rounds));
    json_object_set_new(record, "null_ratio", record_number(v->null_ratio));
    if (isfinite(v->more))
        json_object_set_new(record, "more_s", record_number(v->more * so_far));
    json_object_set_new(record, "samples",
                        json_pack("{s:o,s:o}", "head", samples_of(row, row->head), "null",
                                  samples_of(row, row->null)));
    if (row->roof)
        json_object_set(record, "roof", row->roof);
}

json_t *emit_pair(const struct compare *all, const struct compare_row *row)
{
    const struct pairing_name *name = &all->pairing.names[row->name];
    const struct bench_case *c = &all->pairing.cases[row->at_case];
    const struct subject *subject = name->head ? name->head : name->base;
    json_t *record = emit_result("pair", c->problem.kernel, c->problem.dtype,
                                 emit_profile(&c->problem), c->id, subject->backend);
    if (!record)
        return NULL;
    json_object_set_new(record, "footprint",
                        json_pack("{s:s?,s:I}", "name", c->footprint, "bytes",
                                  (json_int_t)problem_working_set(&c->problem)));
    if (row->kind == PAIRING_NEW || row->kind == PAIRING_REMOVED) {
        const bool is_new = row->kind == PAIRING_NEW;
        json_object_set_new(record, "verdict",
                            json_string(verdict_name[is_new ? VERDICT_NEW : VERDICT_REMOVED]));
        json_object_set_new(record, "reason",
                            json_string(is_new ? "head alone has it" : "base alone has it"));
    } else if (row->outcome != BENCH_TIMED) {
        say_untimed(record, row);
    } else {
        say_verdict(record, all, row);
    }
    return record;
}
