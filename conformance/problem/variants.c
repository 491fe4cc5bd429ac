/*
 * The list of variants, read when it is first asked for and kept.
 */
#include "variants.h"

#include "notation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const builtin[] = {
#include "variants.inc"
};

/* A mistake in the file is one of whoever built this program: it ends here, told. */
static void read_variants(struct problem_list *list)
{
    char error[NOTATION_ERROR] = "no memory";
    size_t bytes = 1, n = 0;
    for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++)
        bytes += strlen(builtin[i]) + 1;
    char *text = arena_get(&list->arena, bytes);
    for (size_t i = 0; text && i < sizeof builtin / sizeof *builtin; i++)
        n += (size_t)snprintf(text + n, bytes - n, "%s\n", builtin[i]);
    if (text && notation_read_file(text, "variants.txt", list, error))
        return;
    fprintf(stderr, "%s\n", error);
    abort();
}

bool variant(enum posenc_kernel kernel, enum posenc_profile profile, int v,
             struct problem *problem, const char **name)
{
    static struct problem_list list;
    if (list.n == 0)
        read_variants(&list);
    for (size_t i = 0; i < list.n; i++) {
        const struct problem_line *line = &list.lines[i];
        if (line->problem.kernel != kernel ||
            (kernel_has_plan(kernel) && line->problem.freqs.profile != profile) || v-- > 0)
            continue;
        *problem = line->problem;
        *name = line->name;
        return true;
    }
    return false;
}
