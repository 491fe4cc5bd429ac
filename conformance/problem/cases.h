/*
 * The problems of conformance/cases that are compiled in, and those of a kernel by name, from which others are made.
 * The named ones stand among the kernel's golden cases (conformance/cases/golden):
 *
 *     default    fields
 *     realistic  fields | words that grow | tensor | whose shape it is
 *     length0 ... length3
 *                fields of length 0 | words that grow
 *     random     the least fields | words that are drawn
 *
 * A word such as 2rotary_dim+2head_dim names fields that grow together, some of them faster; of mrope_section the
 * first.  A number after a colon limits its growth.
 *
 * The last of several realistic lines that fits into the bytes is taken; each of its words grows as far as it can
 * before the next.  The tensor is the one that fills the bytes; without one, all that the call reads or writes does.
 * Queries end at the last key.
 */
#ifndef POSENC_CASES_H
#define POSENC_CASES_H

#include "notation.h"

/* ---- Compiled-in problems ---- */

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

/* ---- Problems by name ---- */

/* A small problem with `n` units along the dimension that kernels vectorise (channels, pairs or
 * keys), where a loop over vectors has its tails; of the lines of a variant the lengths have one
 * after the other. */
enum { MEMORY_VARIANTS = 4 };
struct problem memory_problem(enum posenc_kernel kernel, int64_t n, int variant);

/* W of the lengths 0 .. 4W + 1. */
int64_t memory_lanes(const struct posenc_backend *backend);

/* Any valid problem, a function of the seed alone; where positions are rows or reach as far as
 * xPos does, they are drawn into `positions`. */
enum { MOST_RANDOM_TOKENS = 24 };
struct problem problem_random(enum posenc_kernel kernel, uint64_t seed,
                              int64_t positions[MOST_RANDOM_TOKENS]);

#endif
