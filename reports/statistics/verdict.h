/*
 * The verdict on one kernel of two builds, from timings of pairs: slower, faster, the same, or not known.
 * Numbers in, verdict out; docs/verdicts.md explains the rule to somebody who knows a t-test.
 *
 * In each round of each launch (a fresh process) three copies take turns: head, base, and base again, which is
 * the null control.  What is sampled are launches, not rounds: the rounds of a launch share its memory, its
 * pages and the state of the machine, so that an interval over all rounds would be far too narrow.  A launch
 * gives two numbers, in logarithms:
 *
 *     y = the mean of  median ln(head / base)  and  median ln(head / base again)
 *     z = median ln(base again / base)
 *
 * Where head is base, the three copies are exchangeable: y and z are then both centred on 0 and uncorrelated,
 * var y / var z is 3/4, and head is slower than both copies in a third of the launches.
 *
 *   floor      the largest of 1 %, twice |median z| and what four in five |z| stay below
 *   interval   the wider of two: Student's of the mean of y, with the variance that y and z tell together
 *              (2 launches - 1 degrees of freedom), and the distribution-free one of the median of all
 *              ln(head / base); 99 %, and 99.5 % from the second look on
 *   agreement  head is slower than both copies of base in every launch, of five or more in 80 %
 *   SLOWER     3 launches at least, the interval above the floor, agreement; FASTER is its mirror image
 *   SAME       the interval within the budget, to both sides
 *   UNCLEAR    all else
 *
 * What was called slower or faster is confirmed by further launches: each alone has to say the same, and all
 * together still have to; else it is unclear.  A gate fails where SLOWER was confirmed and the estimate
 * reaches the budget.
 */
#ifndef POSENC_VERDICT_H
#define POSENC_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

/* What a record calls a verdict (records of type pair, member verdict). */
enum verdict_kind {
    VERDICT_SLOWER,
    VERDICT_FASTER,
    VERDICT_UNCLEAR,
    VERDICT_SAME,
    VERDICT_IDENTICAL,    /* the same machine code and constants, whatever the clock says */
    VERDICT_INCOMPARABLE, /* these three are said by who compares: of another shape, */
    VERDICT_NEW,          /* in head alone, */
    VERDICT_REMOVED,      /* in base alone */
    VERDICT_KINDS,
};
extern const char *const verdict_name[VERDICT_KINDS];
/* VERDICT_KINDS where none is called that. */
enum verdict_kind verdict_find(const char *name);

enum {
    VERDICT_LEAST_LAUNCHES = 3, /* before anything is called slower or faster */
    VERDICT_CONFIRMING = 2,     /* further launches that confirm it */
    VERDICT_LOOKS = 3,          /* at most, while it is unclear */
    VERDICT_REASON = 160,
};

struct verdict_pair {
    size_t launches;
    const size_t *rounds;      /* of each launch */
    const double *const *head; /* [launch][round]: ln(head / base); NaN: not taken */
    const double *const *null; /* ln(base again / base) */
    size_t
        confirming; /* of these launches, the last so many were made to confirm what those before said */
    int look;      /* 1 or 0: the first; from the second on intervals are wider */
    double budget; /* 0.03: what is no matter; 0: that */
    bool same_code;
};

struct verdict {
    enum verdict_kind kind;
    double ratio, lo, hi, level; /* of head / base; NaN where nothing was measured */
    double floor, null_ratio;    /* 0.01; base again / base */
    size_t launches,
        agree;      /* that could be used; in how many head was on its side of both copies */
    bool confirmed; /* the confirming launches said the same */
    bool fails;     /* a gate */
    double
        more; /* times what was measured so far, to be added to settle it; 0: settled; NaN: no time would */
    char reason[VERDICT_REASON];
};

struct verdict verdict_of(const struct verdict_pair *pair);

/* Whether it was the machine that moved: at least 30 % of the rows, and 3 of them, moved by 3 % or more and a
 * yardstick of theirs that the code cannot move (a roof, the null control) went at least half as far the same
 * way.  Both are ln(head / base). */
struct verdict_shift {
    bool machine;
    size_t moved; /* together with their yardstick */
    char reason[VERDICT_REASON];
};
struct verdict_shift verdict_shift_of(const double *moved, const double *yardstick, size_t n);

#endif
