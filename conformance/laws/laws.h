/*
 * What the files of the property suite share.  A law checks one property of one kernel on the
 * backend of the tally; it needs no golden data.
 *
 * A law is about the problems of conformance/cases/laws.txt that have its name, and holds for
 * the kernels that these have.  Or it holds for every kernel of which something is true, and
 * gets problem_default() of each: a new kernel has such laws without a word.
 */
#ifndef POSENC_LAWS_H
#define POSENC_LAWS_H

#include "conformance/engine/tally.h"
#include "conformance/problem/signature.h"

/* What column c of output row r should be, from inputs as the library itself makes them; where
 * the kernel takes x, what is added onto x times x_scale. */
typedef float by_hand(const struct call *inputs, int64_t r, int64_t c);

struct law {
    const char *name;
    void (*check)(struct tally *t, const struct problem *p);
    by_hand *by_hand; /* in the place of a check: every element is that, to the bit, */
    call_edit *edit;  /* of a call that this has edited; NULL: of the call */

    bool (*concerns)(enum posenc_kernel kernel); /* NULL: those that the problems have */
    const char *field;       /* of these, those whose problems have it; NULL: all */
    const char *problems;    /* their name, where it is not the law's */
    enum posenc_dtype dtype; /* of the case: what the law is about */
    bool full;               /* in full runs only */
};

/* A law of a name, what it asks, and .member = value of all that is not 0. */
#define LAW(law, ...)                                                                          \
    {                                                                                          \
        .name = (law), .check = __VA_ARGS__                                                    \
    }
#define BY_HAND(law, ...)                                                                      \
    {                                                                                          \
        .name = (law), .by_hand = __VA_ARGS__                                                  \
    }

/* Each ends with a law without a name. */
extern const struct law laws_call[], laws_cut[], laws_layouts[], laws_storage[], laws_table[],
    laws_scalings[], laws_positions[], laws_xpos[], laws_learned[], laws_rope[], laws_norm[],
    laws_bias[], laws_index[], laws_relative[], laws_attention[], laws_words[], laws_text[];

/*
 * How far a table entry of magnitude at most 1 may be from real mathematics at the positions
 * below 2^12 that the laws use: 4 ulp of the last binade below 1, 4 * 2^-24.  The backends here
 * are within 1 (2 for sleef); the laws' other bounds are multiples of it.
 */
#define TABLE_ERROR 0x1p-22

/* ---- Which kernels ---- */

bool any_kernel(enum posenc_kernel kernel);
bool has_positions(enum posenc_kernel kernel);
/* A row of its output for each token or query, rather than sums over them. */
bool encodes(enum posenc_kernel kernel);
/* Whether its first output has this dimension; its inputs, in this problem. */
bool kernel_counts(enum posenc_kernel kernel, enum dim dim);
bool problem_reads(const struct problem *p, enum dim dim);
/* Whether its problems have a field of this name. */
bool has_field(enum posenc_kernel kernel, const char *name);

/* Whether the backend provides another kernel a law needs; if not, the tally is skipped. */
bool law_needs(struct tally *t, enum posenc_kernel other);

/* ---- Problems ---- */

/* How the positions of a problem are given that laws cut or number in other ways. */
enum given { GIVEN_OFFSET, GIVEN_ARRAY, GIVEN_PLACES, GIVENS };

/* A problem with enough rows to cut, a tail in the last vector, and a block boundary of tables
 * (64) inside.  PLACES are times, or a picture's on three axes, of kernels that compute.  ARRAY
 * has the other setting of flags, too. */
struct problem cut_problem(enum posenc_kernel kernel, enum given given);

/* Each way that cut_problem() can give the positions of a kernel, apart and then in place where
 * it can be. */
void for_cut_problems(struct tally *t, enum posenc_kernel kernel,
                      void (*check)(struct tally *t, const struct problem *p, void *user),
                      void *user);

/* ---- Edits ---- */

/* Every row of x as its first row, so that an output row is a function of position alone. */
void edit_same_rows(struct call *call, const void *user);
/* The value that user points to in all of x, where there is one. */
void edit_x(struct call *call, const void *value);
/* Row r of x, or of the output, is row r of another call's output. */
void edit_take(struct call *call, const void *from);
void edit_onto(struct call *call, const void *from);

#endif
