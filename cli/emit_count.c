/*
 * Makes records of counted instructions (see emit_count.h).
 */
#include "emit_count.h"
#include "plugins.h"
#include "emit.h"

#include <stdio.h>

static void set_count(json_t *record, const char *name, uint64_t value)
{
    json_object_set_new(record, name, json_integer((json_int_t)value));
}

/* One call, by class; the smaller one has what tells its fixed part from that of each element. */
static void set_counts(json_t *record, const struct call_counts *counts, int64_t elements)
{
    json_object_set_new(record, "elements", json_integer((json_int_t)elements));
    set_count(record, "instructions", counts->instructions);
    set_count(record, "outside", counts->outside);
    if (counts->classed) {
        set_count(record, "loads", counts->loads);
        set_count(record, "stores", counts->stores);
        set_count(record, "branches", counts->branches);
        set_count(record, "vector", counts->vector);
    }
}

void count_id(const struct problem *problem, char *id, size_t size)
{
    snprintf(id, size, "%s/%s/%s/count", posenc_kernel_name(problem->kernel),
             dtype_names[problem->dtype], emit_profile(problem));
}

json_t *emit_count(const struct kernel_counts *c, const struct posenc_backend *backend,
                   const char *build, const char *code)
{
    char id[96];
    count_id(&c->problem, id, sizeof id);
    json_t *record = emit_result("count", c->problem.kernel, c->problem.dtype,
                                 emit_profile(&c->problem), id, backend);
    if (!record)
        return NULL;
    if (build)
        json_object_set_new(record, "build", json_string(build));
    if (backend->lanes)
        json_object_set_new(record, "vector_width", json_integer(plugins_lanes(backend)));
    if (*code)
        json_object_set_new(record, "code", json_string(code));
    if (!c->call[0].by || !c->call[1].by) {
        json_object_set_new(record, "rejected", json_string(c->why));
        return record;
    }
    json_object_set_new(record, "by", json_string(c->call[0].by));
    set_counts(record, &c->call[0], c->elements[0]);
    json_t *smaller = json_object();
    set_counts(smaller, &c->call[1], c->elements[1]);
    json_object_set_new(record, "smaller", smaller);
    json_object_set_new(record, "per_element", record_number(c->per_element));
    json_object_set_new(record, "per_call", record_number(c->per_call));
    if (c->perf > 0)
        set_count(record, "perf", c->perf);
    return record;
}
