/*
 * What the files of the property suite share.  A law checks one property of one kernel on the
 * backend of the tally; it needs no golden data.
 */
#ifndef POSENC_LAWS_H
#define POSENC_LAWS_H

#include "conformance/engine/tally.h"

struct law {
    const char *name;
    void (*check)(struct tally *t, enum posenc_kernel kernel);
    enum posenc_kernel kernels[POSENC_KERNEL_COUNT]; /* the first `n` */
    int n;                                           /* or EVERY */
    bool full;                                       /* in full runs only */
    enum posenc_dtype dtype;                         /* of the case: what the law is about */
};

extern const struct law laws_call[], laws_cut[], laws_storage[], laws_table[], laws_positions[],
    laws_xpos[], laws_learned[], laws_rope[], laws_partial[], laws_bias[], laws_index[],
    laws_relative[], laws_attention[], laws_words[], laws_text[], laws_layouts[],
    laws_scalings[];
extern const int n_laws_call, n_laws_cut, n_laws_storage, n_laws_table, n_laws_positions,
    n_laws_xpos, n_laws_learned, n_laws_rope, n_laws_partial, n_laws_bias, n_laws_index,
    n_laws_relative, n_laws_attention, n_laws_words, n_laws_text, n_laws_layouts,
    n_laws_scalings;

/* The last members of a law: which kernels, whether in full runs only, of which type. */
#define KERNELS_OF(dtype, full, ...)                                                           \
    { __VA_ARGS__ },                                                                           \
        (int)(sizeof((enum posenc_kernel[]){ __VA_ARGS__ }) / sizeof(enum posenc_kernel)),     \
        full, dtype
#define KERNELS(...)           KERNELS_OF(POSENC_F32, false, __VA_ARGS__)
#define EVERY_KERNEL_OF(dtype) { (enum posenc_kernel)0 }, EVERY, false, dtype
#define EVERY_KERNEL           EVERY_KERNEL_OF(POSENC_F32)

enum { EVERY = -1 }; /* kernels */

/*
 * How far a table entry of magnitude at most 1 may be from real mathematics at the positions
 * below 2^12 that the laws use: 4 ulp of the last binade below 1, 4 * 2^-24.  The backends here
 * are within 1 (2 for sleef); the laws' other bounds are multiples of it.
 */
#define TABLE_ERROR 0x1p-22

/* Whether the backend provides another kernel a law needs; if not, the tally is skipped. */
bool law_needs(struct tally *t, enum posenc_kernel other);

/* How the positions of a problem are given that laws cut or number in other ways. */
enum given { GIVEN_OFFSET, GIVEN_ARRAY, GIVEN_PLACES, GIVENS };

/* A problem with enough rows to cut, a tail in the last vector, and a block boundary of tables
 * (64) inside.  PLACES are times, or a picture's on three axes, of kernels that compute.  ARRAY
 * has the other setting of flags, too. */
struct problem cut_problem(enum posenc_kernel kernel, enum given given);

/* Every row of x as its first row, so that an output row is a function of position alone. */
void edit_same_rows(struct call *call, const void *user);

#endif
