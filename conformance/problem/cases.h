/*
 * Problems that are compiled in (conformance/cases), and problems of given sizes that grow from them. Lines with these
 * names among the golden cases (conformance/cases/golden) say what grows:
 *
 *     default    fields
 *     realistic  fields | growth | tensor whose size counts | model
 *     length0 ... length3
 *                fields of length 0 | growth
 *     random     the smallest fields | growth
 *
 * For example, this line is the smallest random problem; up to 2 heads and up to 23 tokens are added:
 *
 *     random heads=1 tokens=1 | 2rotary_dim+2head_dim:11 heads:2 tokens:23
 *
 * A word of the column `growth` names fields that grow together. Here rotary_dim and head_dim grow by 2 in each of up
 * to 11 steps; mrope_section grows in its first member only. The number after the colon limits the steps of length
 * lines, which may lack it. In random lines it is the largest number that is drawn; a word without it does not grow.
 *
 * If there are several realistic lines, the last that fits into the bytes is used, or the first if none fits. Each of
 * its words grows as far as possible before the next. If no tensor is named, everything that the call reads or writes
 * counts. The last query is at the position of the last key.
 */
#ifndef POSENC_CASES_H
#define POSENC_CASES_H

#include "notation.h"

/* ---- Compiled-in problems ---- */

/* Files of compiled-in problems. */
enum cases_file {
    CASES_SHAPES,     /* default, realistic, length and random problems of each kernel */
    CASES_VARIANTS,   /* problems with a digest */
    CASES_PROPERTIES, /* for property tests */
    CASES_SIZES,      /* sizes of models, and large strides */
    CASES_REJECTED,   /* problems that must be rejected */
    CASES_SCANS,      /* frequencies to scan */
    CASES_FILES
};

/* Returns lines, up to a NULL, as one text, which the caller frees; NULL if out of memory. */
char *cases_join_lines(const char *const *lines);

/* Returns the problems of a file, which is read at the first call. */
const struct problem_list *cases_read(enum cases_file file);

#define EACH_CASE(line, file)                                                                  \
    const struct problem_line *line = cases_read(file)->lines;                                 \
    line < cases_read(file)->lines + cases_read(file)->n;                                      \
    line++

/* Returns true if a line has one of the names above, and so is no golden case. */
bool case_is_shape(const struct problem_line *line);

/* ---- Problems that grow: also problem_default() and problem_realistic() of problem.h ---- */

/* Returns a small problem with `n` units along the vectorised dimension (channels, pairs or keys), to reach every tail
 * of a loop. Variants 0 to 3 are the lines length0 to length3. If there are several, n modulo their number selects
 * one. */
enum { LENGTH_VARIANTS = 4 };
struct problem problem_of_length(enum posenc_kernel kernel, int64_t n, int variant);

/* Returns the vector width W of a backend in lanes. The lengths 0 to 4W + 1 cover all tails. */
int64_t backend_vector_lanes(const struct posenc_backend *backend);

/* Returns a random valid problem, a function of the seed. If its positions select rows of a table, or are spread out
 * for xPos, `positions` holds them and must outlive the problem. */
enum { MOST_RANDOM_TOKENS = 24 };
struct problem problem_random(enum posenc_kernel kernel, uint64_t seed,
                              int64_t positions[MOST_RANDOM_TOKENS]);

#endif
