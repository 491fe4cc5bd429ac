/*
 * Compiled-in problems of conformance/cases, and problems of a kernel that are derived from named
 * ones. The named ones stand among the golden cases of the kernel (conformance/cases/golden):
 *
 *     default    fields
 *     realistic  fields | words that grow | tensor whose size counts | model
 *     length0 ... length3
 *                fields of length 0 | words that grow
 *     random     the least fields | words that are drawn
 *
 * A word such as 2rotary_dim+2head_dim names fields that grow together, at different rates; of
 * mrope_section only the first member grows. A number after a colon limits the growth.
 *
 * Of several realistic lines, the last one that fits into the bytes is taken. Each of its words
 * grows as far as it can before the next. If no tensor is named, all that the call reads or writes
 * counts. Queries end at the last key.
 */
#ifndef POSENC_CASES_H
#define POSENC_CASES_H

#include "notation.h"

/* ---- Compiled-in problems ---- */

/* Files of compiled-in problems: a small and a realistic problem of each kernel; problems with a
 * digest; problems for property tests; model sizes and large strides; problems that must be
 * rejected; frequencies to scan. */
enum cases_file {
    CASES_SHAPES,
    CASES_VARIANTS,
    CASES_PROPERTIES,
    CASES_SIZES,
    CASES_REFUSED,
    CASES_SCANS,
    CASES_FILES
};

/* Returns the lines of a file up to NULL as one text, to be freed; NULL if out of memory. */
char *join_lines(const char *const *lines);

/* Returns the problems of a file, which is read at the first call. */
const struct problem_list *cases_read(enum cases_file file);

#define EACH_CASE(line, file)                                                                  \
    const struct problem_line *line = cases_read(file)->lines;                                 \
    line < cases_read(file)->lines + cases_read(file)->n;                                      \
    line++

/* Returns true if a line among golden cases is a shape, not a case. */
bool case_is_shape(const struct problem_line *line);

/* ---- Problems by name ---- */

/* Returns a small problem with `n` units along the vectorised dimension (channels, pairs or keys),
 * to reach every loop tail. If a variant has several lines, n modulo their number selects one. */
enum { LENGTH_VARIANTS = 4 };
struct problem problem_of_length(enum posenc_kernel kernel, int64_t n, int variant);

/* Returns W such that the lengths 0 to 4W + 1 cover all tails. */
int64_t backend_vector_lanes(const struct posenc_backend *backend);

/* Returns a valid problem that is a function of the seed alone. If positions select rows or are
 * spread for xPos, they are drawn into `positions`. */
enum { MOST_RANDOM_TOKENS = 24 };
struct problem problem_random(enum posenc_kernel kernel, uint64_t seed,
                              int64_t positions[MOST_RANDOM_TOKENS]);

#endif
