/*
 * Suite of properties, with a result for each kernel and property. Properties are relations that define an encoding,
 * or that make a kernel a function of its arguments; they need no golden data. The files of conformance/properties
 * define them and derive their bounds:
 *
 *   call        every kernel: in place, numbering, strides, adds, parts
 *   storage     16 bits
 *   tables      sinusoidal, rope_table, axes, times, learned tables
 *   rope        rotations, norms of heads
 *   scores      ALiBi, T5, windows, relative terms
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/properties/properties.h"
#include "conformance/problem/cases.h"

#include <string.h>

static const struct property *const property_lists[] = {
    properties_call, properties_storage, properties_tables, properties_rope, properties_scores,
};

static const char *name_of_problems(const struct property *property)
{
    return property->problems ? property->problems : property->name;
}

static bool is_problem_of(const struct problem_line *line, const struct property *property)
{
    return strcmp(line->name, name_of_problems(property)) == 0;
}

static void check_problem(struct tally *t, const struct property *property, struct problem p)
{
    p.dtype = property->dtype;
    problem_derive(&p);
    property_check(t, property, &p);
    tally_free_calls(t);
    p.in_place = property->in_place && kernel_in_place(p.kernel);
    if (p.in_place)
        property_check(t, property, &p);
    tally_free_calls(t);
}

static bool is_applied(const struct property *property, enum posenc_kernel kernel)
{
    bool has = property->applies_to && property->applies_to(kernel);
    for (EACH_CASE(line, CASES_PROPERTIES))
        has = has || (!property->applies_to && line->problem.kernel == kernel &&
                      is_problem_of(line, property));
    return has && (!property->needed_field || kernel_has_field(kernel, property->needed_field));
}

/* Returns true for a property that compares bits of results: with those of another call, of another part, or by hand. */
static bool compares_bits(const struct property *property)
{
    return property->by_bits ||
           !(property->check_problem || property->check_output || property->compare_outputs);
}

static void check_property(struct suite_run *run, enum posenc_kernel kernel,
                           const struct property *property)
{
    struct tally t;
    const bool full = run->options->full;
    bool has = false;
    if (!is_applied(property, kernel) || (property->full_only && !full) ||
        (run->options->program && compares_bits(property)) ||
        !tally_begin(&t, run, kernel, property->dtype, "properties", NULL, "%s",
                     property->name))
        return;
    for (EACH_CASE(line, CASES_PROPERTIES))
        if (line->problem.kernel == kernel && is_problem_of(line, property) &&
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
    for (size_t f = 0; f < sizeof property_lists / sizeof *property_lists; f++)
        for (const struct property *property = property_lists[f]; property->name; property++)
            known = known || is_problem_of(line, property);
    return known;
}

void suite_properties(struct suite_run *run, enum posenc_kernel kernel)
{
    require_known_lines(CASES_PROPERTIES, "properties.txt", is_known_line);
    for (size_t f = 0; f < sizeof property_lists / sizeof *property_lists; f++)
        for (const struct property *property = property_lists[f]; property->name; property++)
            check_property(run, kernel, property);
}
