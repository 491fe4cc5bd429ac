/*
 * Records of posenc pair (see pair.h).
 */
#define _GNU_SOURCE
#include "pair.h"
#include "emit.h"

#include <dlfcn.h>

static json_t *record_of(const char *kind, const struct pair_run *run,
                         const struct pair_row *row)
{
    const struct pairing_name *name = &run->pairing.names[row->name];
    const struct bench_case *c = &run->pairing.cases[row->at_case];
    const struct implementation *implementation = name->head ? name->head : name->base;
    return emit_result(kind, c->problem.kernel, c->problem.dtype, emit_profile(&c->problem),
                       c->id, implementation->backend);
}

/* Makes a list of where the kernel begins in the file of a build, and the front-end if it is there. */
static json_t *entries_of(const struct implementation *implementation,
                          enum posenc_kernel kernel)
{
    const uintptr_t addresses[2] = { (uintptr_t)backend_entry(implementation->backend, kernel),
                                     (uintptr_t)implementation_entry(implementation, kernel) };
    json_t *list = json_array();
    Dl_info first = { .dli_fbase = NULL }, info;
    for (int i = 0; i < 2; i++) {
        if (!dladdr((const void *)addresses[i], &info))
            continue;
        if (i == 0)
            first = info;
        if (info.dli_fbase == first.dli_fbase)
            json_array_append_new(
                list, json_integer((json_int_t)(addresses[i] - (uintptr_t)info.dli_fbase)));
    }
    return list;
}

json_t *pair_record_planned(const struct pair_run *run, const struct pair_row *row,
                            bool with_entries)
{
    const struct pairing_name *name = &run->pairing.names[row->name];
    static const char *const builds[] = {
        [PAIRING_BOTH] = "both", [PAIRING_NEW] = "head", [PAIRING_REMOVED] = "base"
    };
    const struct bench_case *c = &run->pairing.cases[row->at_case];
    json_t *record = record_of("planned", run, row);
    json_object_set_new(record, "footprint",
                        json_pack("{s:s?,s:I}", "name", c->footprint, "bytes",
                                  (json_int_t)problem_working_set(&c->problem)));
    json_object_set_new(record, "builds", json_string(builds[row->kind]));
    if (with_entries && row->kind == PAIRING_BOTH)
        json_object_set_new(record, "entries",
                            json_pack("{s:o,s:o}", "base",
                                      entries_of(name->base, c->problem.kernel), "head",
                                      entries_of(name->head, c->problem.kernel)));
    return record;
}

json_t *pair_record_running(const struct pair_run *run, const struct pair_row *row,
                            const char *who)
{
    return json_pack("{s:s,s:s,s:s,s:s}", "t", "running", "case",
                     run->pairing.cases[row->at_case].id, "backend",
                     run->pairing.names[row->name].name, "who", who);
}

static json_t *numbers(const double *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, record_number(values[i]));
    return list;
}

static void set_times(json_t *record, const struct pair_result *r)
{
    json_object_set_new(record, "base",
                        json_pack("{s:o}", "ns", record_number(r->ns[PAIR_BASE])));
    json_object_set_new(record, "head",
                        json_pack("{s:o}", "ns", record_number(r->ns[PAIR_HEAD])));
    json_object_set_new(record, "ratios",
                        json_pack("{s:o,s:o}", "head", numbers(r->x, r->rounds), "control",
                                  numbers(r->z, r->rounds)));
    if (r->roofline_kind)
        json_object_set_new(record, "roofline",
                            json_pack("{s:s,s:s,s:o}", "kind", r->roofline_kind, "variant",
                                      r->roofline_variant, "ns",
                                      record_number(r->roofline_ns)));
}

json_t *pair_record_samples(const struct pair_run *run, const struct pair_row *row,
                            const struct pair_result *result)
{
    static const char *const outcomes[] = { "timed", "lacks it", "rejected", "wrong" };
    json_t *record = record_of("samples", run, row);
    json_object_set_new(record, "outcome", json_string(outcomes[result->outcome]));
    if (result->outcome == BENCH_TIMED) {
        set_times(record, result);
    } else {
        const bool both = result->who == PAIR_SIDES;
        json_object_set_new(record, "who",
                            json_string(both ? "base or head" : pair_side_name[result->who]));
        json_object_set_new(record, "reason", record_string(result->reason));
    }
    return record;
}
