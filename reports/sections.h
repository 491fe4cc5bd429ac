/*
 * The parts of a report as grids, the same for the console and for Markdown.
 */
#ifndef POSENC_SECTIONS_H
#define POSENC_SECTIONS_H

#include "grid.h"
#include "query.h"

/* How things are drawn: characters beyond ASCII or not, and how wide a bar may be (0: none). */
struct look {
    bool utf8;
    int bar;
    bool labels; /* shapes in full, rather than in a word */
    bool all;
};

/* For each shape of a model: who is fastest, how near the roof, how wrong, whether it conforms,
 * who serves it by default.  Returns the number of shapes. */
int section_answers(const struct results *results, const json_t *model, const struct look *look,
                    struct grid *grid);
/* What the default costs against the fastest at a shape: "the default, avx2, is 24 % slower";
 * "" where it is the fastest or tied with it, or was not timed. */
void default_cost(const struct results *results, const char *id, char *text, size_t bytes);
/* The lines "kernel backend" of the kernels that another backend than the default serves
 * faster, over all of the model's shapes; false where there are none. */
bool better_choice(const struct results *results, const json_t *model, char *text,
                   size_t bytes);

/* Failed and crashed checks.  Returns how many there are; at most `most` are listed. */
int section_failures(const struct results *results, size_t most, struct grid *grid);

/* Kernels or suites x backends, with the counts of checks. */
void section_matrix_by_kernel(const struct results *results, const struct look *look,
                              struct grid *grid);
void section_matrix_by_suite(const struct results *results, const struct look *look,
                             struct grid *grid);
/* Worst error of each kernel and profile by backend. */
void section_worst_errors(const struct results *results, struct grid *grid);
/* Largest error by range of positions of the tables of a kernel and profile, and up to where
 * each backend is within 1 ulp.  Returns the number of rows. */
int section_errors_by_range(const struct results *results, const char *kernel,
                            const char *profile, struct grid *grid);

/* Everything timed of one kernel.  Returns the number of cases. */
int section_benchmarks(const struct results *results, const char *kernel,
                       const struct look *look, struct grid *grid);

/* The backends: what each is and, where it cannot run, why. */
void section_backends(const struct results *results, struct grid *grid);

/* A few lines on the machine, each "name|value". */
int section_environment(const struct results *results, struct grid *grid);

/* The shape of a case id, its last part without the model's name: "decode". */
const char *short_shape(const char *id, const json_t *model);

#endif
