/*
 * Faulty kernels: around a real kernel something goes wrong with its memory, its results, or beside
 * them. Any kernel can have each of these faults, so they are no edits of one line. Faults that edit
 * the library's source are in conformance/cases/faults.txt.
 *
 * A fault is a function that is called in place of the kernel. To add one, write it into the file of
 * its topic, with a row in the table at the end of that file. The program `faulty` then requires
 * every kernel that the row concerns to fail the case in the row.
 */
#ifndef POSENC_FAULTY_H
#define POSENC_FAULTY_H

#include "conformance/problem/problem.h"

/* A call of a kernel. Faults change the copy of its arguments, which the pointers point into; they
 * are NULL if the kernel has no such argument. */
struct kernel_call {
    enum posenc_kernel kernel;
    union arguments args;
    struct posenc_tensor *out;
    struct posenc_tensor *second_out; /* sin of a table */
    struct posenc_tensor *x;
    struct posenc_positions *positions;
    const void *input; /* data that must not be written */
    float x_scale;
    enum posenc_status status;
};
/* Calls the real kernel with the arguments as they are now. */
void run_kernel(struct kernel_call *c);

struct fault {
    const char *name;
    const char *suite, *property; /* the case KERNEL/DTYPE/SUITE/PROPERTY must fail, */
    enum posenc_dtype last_dtype; /* in types from f32 to this one, */
    bool (*concerns)(enum posenc_kernel kernel); /* for these kernels */
    void (*run)(struct kernel_call *c);
};

/* Return fault number i, NULL past the last; and the fault of a name. */
const struct fault *fault_at(int i);
const struct fault *fault_find(const char *name);

/* Returns the base with a fault, or, for NULL, wrapped without one. There is one at a time. */
const struct posenc_backend *faulty_backend(const struct fault *fault,
                                            const struct posenc_backend *base);
/* Returns the number of calls of kernels since the backend was made. */
unsigned long faulty_calls(void);

/* ---- For the files of this folder ---- */

/* Tables of faults, with an empty row at the end. */
extern const struct fault memory_faults[], result_faults[], side_effect_faults[];

/* Kernels that a fault may concern. */
bool every_kernel(enum posenc_kernel kernel);
bool token_kernel(enum posenc_kernel kernel);

/* Rows of a tensor, in the order of storage_row(). Columns may lie outside a row. */
int64_t tensor_width(const struct posenc_tensor *t);
int64_t tensor_row_count(const struct posenc_tensor *t);
char *tensor_at(const struct posenc_tensor *t, int64_t r, int64_t column);
float tensor_get(const struct posenc_tensor *t, int64_t r, int64_t column);
void tensor_put(const struct posenc_tensor *t, int64_t r, int64_t column, float value);
/* Flips the last bit of a value. A zero, an infinity or NaN becomes 1. */
void tensor_flip_bit(const struct posenc_tensor *t, int64_t r, int64_t column);

#endif
