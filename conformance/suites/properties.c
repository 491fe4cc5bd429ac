/*
 * Properties that need no golden data, one result for each kernel and property: relations that define
 * an encoding, and relations that make a kernel a function of its arguments. The files of
 * conformance/properties have them, with the derivation of each bound:
 *
 *   call        in place, numbering, adds, strides       cut         slices, threads, splits
 *   tables      sinusoidal, rope_table, axes, times      storage     16 bits
 *   learned     learned tables, their gradient           rope        rotations, norms of heads
 *   scores      ALiBi, T5, windows, relative terms
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/properties/properties.h"
#include "conformance/problem/cases.h"

#include <string.h>

static const struct property *const files[] = {
    properties_call,    properties_cut,  properties_storage, properties_tables,
    properties_learned, properties_rope, properties_scores,
};

static const char *name_of_problems(const struct property *property)
{
    return property->problems ? property->problems : property->name;
}

static bool is_for(const struct problem_line *line, const struct property *property)
{
    return strcmp(line->name, name_of_problems(property)) == 0;
}

static void check_problem(struct tally *t, const struct property *property, struct problem p)
{
    p.dtype = property->dtype;
    problem_derive(&p);
    property_check(t, property, &p);
    tally_forget(t);
    p.in_place = property->in_place && kernel_in_place(p.kernel);
    if (p.in_place)
        property_check(t, property, &p);
    tally_forget(t);
}

static bool is_concerned(const struct property *property, enum posenc_kernel kernel)
{
    bool has = property->applies_to && property->applies_to(kernel);
    for (EACH_CASE(line, CASES_PROPERTIES))
        has = has || (!property->applies_to && line->problem.kernel == kernel &&
                      is_for(line, property));
    return has && (!property->needed_field || kernel_has_field(kernel, property->needed_field));
}

static void check_property(struct suite_run *run, enum posenc_kernel kernel,
                           const struct property *property)
{
    struct tally t;
    const bool full = run->options->full;
    bool has = false;
    if (!is_concerned(property, kernel) || (property->full_only && !full) ||
        !tally_begin(&t, run, kernel, property->dtype, "properties", NULL, "%s",
                     property->name))
        return;
    for (EACH_CASE(line, CASES_PROPERTIES))
        if (line->problem.kernel == kernel && is_for(line, property) &&
            (full || !*line->flags)) {
            check_problem(&t, property, line->problem);
            has = true;
        }
    if (!has && property->applies_to)
        check_problem(&t, property, problem_default(kernel));
    tally_end(&t);
}

static bool is_known_line(const struct problem_line *line)
{
    bool known = false;
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (const struct property *property = files[f]; property->name; property++)
            known = known || is_for(line, property);
    return known;
}

void suite_properties(struct suite_run *run, enum posenc_kernel kernel)
{
    require_known_lines(CASES_PROPERTIES, "properties.txt", is_known_line);
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (const struct property *property = files[f]; property->name; property++)
            check_property(run, kernel, property);
}
