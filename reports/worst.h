/*
 * The largest errors of a backend, one for each metric it was judged in: ulp, ulp of the pair, absolute
 * error, and values that differ where all bits were to be the same.  Metrics are never weighed
 * against each other: half an ulp below 2^10 says nothing about 2.2e-07 beyond.
 */
#ifndef POSENC_WORST_H
#define POSENC_WORST_H

#include "query.h"

enum { WORSTS = 6, WORST_TEXT = 160 };
struct worst {
    size_t
        n; /* in the order above; that all bits were the same only where nothing else is known */
    const struct conf_row *of[WORSTS];
    int since
        [WORSTS]; /* judged so from |position| 2^since on, by another metric below; 0: not known */
};

/* What to look at; NULL: any.  Ranges are those of row_range(). */
struct worst_of {
    const char *kernel, *dtype, *backend, *profile, *range;
    double scale; /* of the table; what has another one, but 1, is left out; 0: any */
};
void worst_errors(const struct results *results, const struct worst_of *of,
                  struct worst *worst);
/* For whoever asks that of many: the rows of a kernel with an error, n of them into an array with
 * room for all of the results; and the same of these. */
size_t measured_rows(const struct results *results, const char *kernel,
                     const struct conf_row **rows);
void worst_among(const struct conf_row *const *rows, size_t n, const struct worst_of *of,
                 struct worst *worst);
/* Those of what was timed. */
void worst_of_row(const struct results *results, const struct bench_row *row,
                  struct worst *worst);

/* "0.50 ulp, 2.2e-07 abs from 2^10", "same bits"; "not measured" of none.  With limits: "0.50 ulp (limit
 * 1)". */
const char *worst_text(const struct worst *worst, bool limits, char text[WORST_TEXT]);
/* The same of one of them. */
void one_worst_text(const struct worst *worst, size_t i, bool limits, char text[WORST_TEXT]);

/* Whether all of it is within 1 ulp of real mathematics. */
bool worst_is_exact(const struct worst *worst);
/* The row of a metric; NULL where it was not judged in it. */
const struct conf_row *worst_in(const struct worst *worst, const char *metric);
/* Whether a errs in no metric that b does not err in as much: a tenth more, or a hundredth of the limit,
 * is as much. */
bool is_as_right(const struct worst *a, const struct worst *b);

/* The range of positions a row of the accuracy suite covers, from the end of its case id:
 * "p2e17", |position| below 2^17 and not in the range before; "" where it is no such row. */
const char *row_range(const struct conf_row *row);

#endif
