/*
 * The problems that are compiled in: see cases.h.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const shapes[] = {
#include "shapes.inc"
};
static const char *const variants[] = {
#include "variants.inc"
};
static const char *const laws[] = {
#include "laws.inc"
};
static const char *const certified[] = {
#include "certified.inc"
};
static const char *const scans[] = {
#include "scans.inc"
};
static const struct {
    const char *name, *const *lines;
    size_t n;
} files[CASES_FILES] = {
    [CASES_SHAPES] = { "cases/golden", shapes, sizeof shapes / sizeof *shapes },
    [CASES_VARIANTS] = { "variants.txt", variants, sizeof variants / sizeof *variants },
    [CASES_LAWS] = { "laws.txt", laws, sizeof laws / sizeof *laws },
    [CASES_CERTIFIED] = { "certified.txt", certified, sizeof certified / sizeof *certified },
    [CASES_SCANS] = { "scans.txt", scans, sizeof scans / sizeof *scans },
};

/* A mistake in a file is one of whoever built this program: it ends here, told. */
static void read_lines(struct problem_list *list, enum cases_file file)
{
    char error[NOTATION_ERROR] = "no memory";
    size_t bytes = 1, n = 0;
    for (size_t i = 0; i < files[file].n; i++)
        bytes += strlen(files[file].lines[i]) + 1;
    char *text = arena_get(&list->arena, bytes);
    for (size_t i = 0; text && i < files[file].n; i++)
        n += (size_t)snprintf(text + n, bytes - n, "%s\n", files[file].lines[i]);
    if (text && notation_read_file(text, files[file].name, list, error))
        return;
    fprintf(stderr, "%s\n", error);
    abort();
}

const struct problem_list *cases(enum cases_file file)
{
    static struct problem_list lists[CASES_FILES];
    if (lists[file].n == 0)
        read_lines(&lists[file], file);
    return &lists[file];
}
