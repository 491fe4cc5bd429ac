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
static const char *const refused[] = {
#include "refused.inc"
};
static const struct {
    const char *name, *const *lines;
    size_t n;
} files[CASES_FILES] = {
    [CASES_SHAPES] = { "cases/golden", shapes, sizeof shapes / sizeof *shapes },
    [CASES_VARIANTS] = { "variants.txt", variants, sizeof variants / sizeof *variants },
    [CASES_LAWS] = { "laws.txt", laws, sizeof laws / sizeof *laws },
    [CASES_CERTIFIED] = { "certified.txt", certified, sizeof certified / sizeof *certified },
    [CASES_REFUSED] = { "refused.txt", refused, sizeof refused / sizeof *refused },
    [CASES_SCANS] = { "scans.txt", scans, sizeof scans / sizeof *scans },
};

char *lines_joined(const char *const *lines, size_t n)
{
    size_t bytes = 1, used = 0;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(lines[i]) + 1;
    char *text = calloc(1, bytes);
    for (size_t i = 0; text && i < n; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s\n", lines[i]);
    return text;
}

/* A mistake in a file is one of whoever built this program: it ends here, told. */
static void read_lines(struct problem_list *list, enum cases_file file)
{
    char error[NOTATION_ERROR] = "no memory";
    char *text = lines_joined(files[file].lines, files[file].n);
    if (!text || !notation_read_file(text, files[file].name, list, error)) {
        fprintf(stderr, "%s\n", error);
        abort();
    }
    free(text);
}

const struct problem_list *cases(enum cases_file file)
{
    static struct problem_list lists[CASES_FILES];
    if (lists[file].n == 0)
        read_lines(&lists[file], file);
    return &lists[file];
}
