/*
 * Laws that need no golden data, one result per kernel and law: what makes an encoding the
 * encoding it is, and what makes a kernel a function of its arguments.  Each law's derivation
 * and bound stand beside it:
 *
 *   call        in place, numbering, adds       cut         slices, threads, splits
 *   layouts     strides of every kind           storage     16 bits
 *   table       sinusoidal, rope_table          positions   axes, times
 *   scalings    scaled frequencies, xPos        learned     learned tables, their gradient
 *   rope        rotations, parts of a head      norm        norms of heads
 *   bias        ALiBi, T5, windows              relative    terms by distance
 *   attention   what they are for, and sentences of docs/encodings.md
 *   text        claims of that text
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/laws/laws.h"
#include "conformance/problem/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct law *const files[] = {
    laws_call,     laws_cut,       laws_layouts,   laws_storage, laws_table,
    laws_scalings, laws_positions, laws_learned,   laws_rope,    laws_norm,
    laws_bias,     laws_relative,  laws_attention, laws_text,
};

static const char *name_of_problems(const struct law *law)
{
    return law->problems ? law->problems : law->name;
}

static bool is_of(const struct problem_line *line, const struct law *law)
{
    return strcmp(line->name, name_of_problems(law)) == 0;
}

static void check_problem(struct tally *t, const struct law *law, struct problem p)
{
    p.dtype = law->dtype;
    problem_settle(&p);
    law_check(t, law, &p);
    tally_forget(t);
    p.in_place = law->in_place && kernel_in_place(p.kernel);
    if (p.in_place)
        law_check(t, law, &p);
    tally_forget(t);
}

static bool concerns(const struct law *law, enum posenc_kernel kernel)
{
    bool has = law->concerns && law->concerns(kernel);
    for (EACH_CASE(line, CASES_LAWS))
        has = has || (!law->concerns && line->problem.kernel == kernel && is_of(line, law));
    return has && (!law->field || has_field(kernel, law->field));
}

static void check_law(struct suite_run *run, enum posenc_kernel kernel, const struct law *law)
{
    struct tally t;
    const bool full = run->options->full;
    bool has = false;
    if (!concerns(law, kernel) || (law->full && !full) ||
        !tally_begin(&t, run, kernel, law->dtype, "properties", NULL, "%s", law->name))
        return;
    for (EACH_CASE(line, CASES_LAWS))
        if (line->problem.kernel == kernel && is_of(line, law) && (full || !*line->flags)) {
            check_problem(&t, law, line->problem);
            has = true;
        }
    if (!has && law->concerns)
        check_problem(&t, law, problem_default(kernel));
    tally_end(&t);
}

/* A line that no law has would never be checked: it is a mistake of whoever built this program,
 * which ends here, told. */
static void require_laws(void)
{
    for (EACH_CASE(line, CASES_LAWS)) {
        bool found = false;
        for (size_t f = 0; f < sizeof files / sizeof *files; f++)
            for (const struct law *law = files[f]; law->name; law++)
                found = found || is_of(line, law);
        if (found && (!*line->flags || strcmp(line->flags, "full") == 0))
            continue;
        fprintf(stderr,
                "laws.txt:%d: %s | %s: expected the name of a law's problems, and full or "
                "no flag\n",
                line->number, line->name, line->flags);
        abort();
    }
}

void suite_properties(struct suite_run *run, enum posenc_kernel kernel)
{
    static bool known;
    if (!known)
        require_laws();
    known = true;
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (const struct law *law = files[f]; law->name; law++)
            check_law(run, kernel, law);
}
