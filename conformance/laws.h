/*
 * What the files of the property suite share.  A law checks one property of one kernel on the
 * backend of the tally; it needs no golden data.
 */
#ifndef POSENC_LAWS_H
#define POSENC_LAWS_H

#include "tally.h"

struct law {
    const char *name;
    void (*check)(struct tally *t, enum posenc_kernel kernel);
    enum posenc_kernel kernels[POSENC_KERNEL_COUNT]; /* the first `n` */
    int n;
    bool full; /* in full runs only */
};

extern const struct law laws_call[], laws_table[], laws_positions[], laws_rope[], laws_bias[],
    laws_attention[];
extern const int n_laws_call, n_laws_table, n_laws_positions, n_laws_rope, n_laws_bias,
    n_laws_attention;

#define KERNELS_WHEN(full, ...)                                                                \
    { __VA_ARGS__ },                                                                           \
        (int)(sizeof((enum posenc_kernel[]){ __VA_ARGS__ }) / sizeof(enum posenc_kernel)),     \
        full
#define KERNELS(...) KERNELS_WHEN(false, __VA_ARGS__)

/*
 * How far a table entry of magnitude at most 1 may be from real mathematics at the positions
 * below 2^12 that the laws use: 4 ulp of the last binade below 1, 4 * 2^-24.  The backends here
 * are within 1 (2 for sleef); the laws' other bounds are multiples of it.
 */
#define TABLE_ERROR 0x1p-22

/* Whether the backend provides another kernel a law needs; if not, the tally is skipped. */
bool law_needs(struct tally *t, enum posenc_kernel other);

/* Every row of x as its first row, so that an output row is a function of position alone. */
void edit_same_rows(struct call *call, const void *user);

#endif
