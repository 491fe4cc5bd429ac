/*
 * Laws that need no golden data, one result per kernel and law: what makes an encoding the
 * encoding it is, and what makes a kernel a function of its arguments.  Each law's derivation
 * and bound stand beside it:
 *
 *   call        in place, numbering, adds       cut         slices, threads
 *   layouts     strides of every kind           storage     16 bits
 *   table       sinusoidal, rope_table          positions   axes, times
 *   xpos        xPos                            learned     learned tables, their gradient
 *   rope        rotations, parts of a head      norm        norms of heads
 *   bias        ALiBi, T5, by distance
 *   index       windows, published indices      relative    terms by distance
 *   attention   what they are for               words, text sentences and claims of
 *                                                           docs/encodings.md
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/laws/laws.h"
#include "conformance/problem/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct law *const files[] = {
    laws_call,      laws_cut,      laws_layouts,   laws_storage, laws_table, laws_scalings,
    laws_positions, laws_xpos,     laws_learned,   laws_rope,    laws_norm,  laws_bias,
    laws_index,     laws_relative, laws_attention, laws_words,   laws_text,
};

static bool is_of(const struct problem_line *line, const struct law *law)
{
    return !law->concerns && strcmp(line->name, law->problems ? law->problems : law->name) == 0;
}

static void require_by_hand(struct tally *t, const struct law *law, const struct problem *p)
{
    const struct call *inputs = tally_call(t, NULL, p), *out = tally_run(t, p, law->edit, NULL);
    const int64_t width = out ? out->outputs[0].width : 0;
    for (int64_t r = 0; inputs && out && r < out->outputs[0].rows; r++) {
        const float *got = call_row(out, 0, r);
        for (int64_t c = 0; c < width; c++) {
            float want = law->by_hand(inputs, r, c);
            if (inputs->x)
                want = fmaf(inputs->x[r * width + c], p->x_scale, want);
            require(t, bits_of(got[c]) == bits_of(want) || (isnan(got[c]) && isnan(want)),
                    "row %lld element %lld is %.9g, by hand %.9g", (long long)r, (long long)c,
                    (double)got[c], (double)want);
        }
    }
}

static void check_problem(struct tally *t, const struct law *law, struct problem p)
{
    p.dtype = law->dtype;
    problem_settle(&p);
    if (law->check)
        law->check(t, &p);
    else
        require_by_hand(t, law, &p);
    tally_forget(t);
}

static bool concerns(const struct law *law, enum posenc_kernel kernel)
{
    bool has = law->concerns && law->concerns(kernel);
    for (EACH_CASE(line, CASES_LAWS))
        has = has || (line->problem.kernel == kernel && is_of(line, law));
    return has && (!law->field || has_field(kernel, law->field));
}

static void check_law(struct suite_run *run, enum posenc_kernel kernel, const struct law *law)
{
    struct tally t;
    const bool full = run->options->full;
    if (!concerns(law, kernel) || (law->full && !full) ||
        !tally_begin(&t, run, kernel, law->dtype, "properties", NULL, "%s", law->name))
        return;
    if (law->concerns)
        check_problem(&t, law, problem_default(kernel));
    for (EACH_CASE(line, CASES_LAWS))
        if (line->problem.kernel == kernel && is_of(line, law) && (full || !*line->flags))
            check_problem(&t, law, line->problem);
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

void suite_properties(struct suite_run *run)
{
    require_laws();
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        for (size_t f = 0; f < sizeof files / sizeof *files; f++)
            for (const struct law *law = files[f]; law->name; law++)
                check_law(run, (enum posenc_kernel)k, law);
}
