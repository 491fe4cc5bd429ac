/*
 * The list of variants: see variants.h.
 */
#include "variants.h"

#include "cases.h"

bool variant(enum posenc_kernel kernel, enum posenc_profile profile, int v,
             struct problem *problem, const char **name)
{
    const struct problem_list *list = cases(CASES_VARIANTS);
    for (size_t i = 0; i < list->n; i++) {
        const struct problem_line *line = &list->lines[i];
        if (line->problem.kernel != kernel ||
            (kernel_has_plan(kernel) && line->problem.freqs.profile != profile) || v-- > 0)
            continue;
        *problem = line->problem;
        *name = line->name;
        return true;
    }
    return false;
}
