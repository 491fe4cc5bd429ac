/*
 * Kernels with a fault that is no edit of one line: around the real kernel something goes wrong with
 * its memory, with its arguments, or beside its results.  Any kernel can have each of them.
 *
 * To add one, write a name into the enum, a row into the table of faulty.c, and the place that asks
 * FAULT_IS(name).  The program `faulty` then requires that every kernel it concerns fails the case
 * in the row.  Faults that are edits of the library's source are in conformance/cases/faults.txt.
 */
#ifndef POSENC_FAULTY_H
#define POSENC_FAULTY_H

#include "conformance/problem/problem.h"

enum fault_id {
    FAULT_NONE,
    /* memory beside tensors, inputs, rows that are written partly or in another order */
    OVER_WRITE,
    OVER_WRITE_BEFORE,
    OVER_READ,
    OVER_READ_BEFORE,
    WRITE_INPUT,
    SKIP_TAIL,
    MISPLACE_TAIL,
    LEAK_LANE,
    FORGET,
    /* results that depend on how, where, or how often a call is made */
    DEPEND_ON_ADDRESS,
    REMEMBER,
    LEAVE_MODE,
    LAST_ROW_DIFFERS,
    SHARE_SCRATCH,
    DIFFER_IN_PLACE,
    DIFFER_BY_KIND,
    DIFFER_BY_BATCH,
    DIFFER_IN_PLACE_BY_I64,
    ASSUME_DENSE_BATCHES,
    ASSUME_FORWARD,
    ASSUME_ROWS_APART,
    ASSUME_X_FORWARD,
    /* strides, offsets and parameters */
    STRIDES_OF_OUT,
    STRIDE_OF_COS,
    TOKEN_STRIDE_IGNORED,
    X_SCALE_UNSIGNED,
    NAN_HIDDEN_BY_ZERO,
    X_OFFSET_NARROW,
    OUT_OFFSET_NARROW,
    TABLE_OFFSET_NARROW,
    OUT_AS_X,
    /* sizes */
    BEYOND_3_BATCHES,
    BEYOND_32_HEADS,
    HEADS_PAST_8,
    HEADS_PAST_64,
    BATCH_MODULO_4,
    COLUMNS_PAST_1024,
    /* side effects */
    ALLOCATE,
    MAP_MEMORY,
    LEAK,
    STATIC_SCRATCH,
    COUNT_CALLS,
    SET_ERRNO,
    SHARED_BUFFER,
    N_FAULTS
};

struct fault {
    const char *name;
    const char *suite, *property; /* the case KERNEL/DTYPE/SUITE/PROPERTY must fail */
    bool (*concerns)(enum posenc_kernel kernel);
    enum posenc_dtype last; /* in types from f32 to this one */
};
extern const struct fault faults[N_FAULTS];

/* Returns the base with a fault, to run suites on; one at a time. */
const struct posenc_backend *faulty_backend(enum fault_id fault,
                                            const struct posenc_backend *base);
/* Counts the calls of kernels since the fault was made. */
unsigned long faulty_calls(void);

/* ---- For the files of this folder ---- */

extern enum fault_id fault_now;
#define FAULT_IS(name) (fault_now == (name))

/* A kernel that was entered.  Faults change the copy of its arguments, which the pointers point
 * into; NULL where the kernel has no such argument. */
struct entered {
    enum posenc_kernel kernel;
    union arguments args;
    struct posenc_tensor *out, *second; /* second: sin of a table */
    struct posenc_tensor *x;
    struct posenc_positions *positions;
    const void *input; /* data that must not be written */
    float x_scale;
    enum posenc_status status;
};

/* Calls the real kernel with the arguments as they are now; with faults of its memory; with side
 * effects. */
void enter_kernel(struct entered *e);
void enter_memory(struct entered *e);
void enter_side_effects(struct entered *e);
/* Changes the arguments of a kernel. */
void change_arguments(struct entered *e);

#endif
