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

void count_id(const struct problem *problem, char *id, size_t size)
{
    snprintf(id, size, "%s/%s/%s/count", posenc_kernel_name(problem->kernel),
             dtype_names[problem->dtype], emit_profile(problem));
}

json_t *emit_count(const struct kernel_counts *c, const struct posenc_backend *backend,
                   const char *build)
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
    if (!c->call[0].by || !c->call[1].by) {
        json_object_set_new(record, "rejected", json_string(c->why));
        return record;
    }
    json_object_set_new(record, "by", json_string(c->call[0].by));
    json_object_set_new(record, "elements", json_integer((json_int_t)c->elements[0]));
    set_count(record, "instructions", c->call[0].instructions);
    set_count(record, "outside", c->call[0].outside);
    json_object_set_new(record, "per_element", record_number(c->per_element));
    json_object_set_new(record, "per_call", record_number(c->per_call));
    return record;
}
