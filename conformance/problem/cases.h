/*
 * The problems of conformance/cases that are compiled in.
 */
#ifndef POSENC_CASES_H
#define POSENC_CASES_H

#include "notation.h"

/* A small and a realistic one of each kernel; what digests are taken of; what laws are about;
 * sizes of models and far strides; what must be refused; frequencies that are scanned. */
enum cases_file {
    CASES_SHAPES,
    CASES_VARIANTS,
    CASES_LAWS,
    CASES_SIZES,
    CASES_REFUSED,
    CASES_SCANS,
    CASES_FILES
};

/* The lines of a file, NULL past the last, as one text, to be freed; NULL without memory. */
char *lines_joined(const char *const *lines);

/* Read when it is first asked for, and kept. */
const struct problem_list *cases(enum cases_file file);

/* for (EACH_CASE(line, CASES_LAWS)) */
#define EACH_CASE(line, file)                                                                  \
    const struct problem_line *line = cases(file)->lines;                                      \
    line < cases(file)->lines + cases(file)->n;                                                \
    line++

/* Whether a line among golden cases is a shape, and no case. */
bool is_shape(const struct problem_line *line);

#endif
