/*
 * The problems that are compiled in: see cases.h.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *const *lines;
} files[CASES_FILES] = {
#include "cases.inc"
};

char *lines_joined(const char *const *lines)
{
    size_t bytes = 1, used = 0;
    for (const char *const *line = lines; *line; line++)
        bytes += strlen(*line) + 1;
    char *text = calloc(1, bytes);
    for (; text && *lines; lines++)
        used = append(text, bytes, used, "%s\n", *lines);
    return text;
}

/* A mistake in a file is one of whoever built this program: it ends here, told. */
static void read_lines(struct problem_list *list, enum cases_file file)
{
    char error[NOTATION_ERROR] = "no memory";
    char *text = lines_joined(files[file].lines);
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
