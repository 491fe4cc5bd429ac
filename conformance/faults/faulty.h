/*
 * Injected faults that any kernel can have: wrong memory accesses, wrong results, and side effects. Faults of single
 * kernels are edits of the library's source, in conformance/cases/faults.txt.
 *
 * A fault is a function that runs in place of a kernel, and usually calls it. To add one, write it into the file of
 * its topic, with a row in the table at the end of that file. The program `faulty` then requires that the case in the
 * row fails for every kernel that the row concerns.
 */
#ifndef POSENC_FAULTY_H
#define POSENC_FAULTY_H

#include "conformance/problem/problem.h"

/* A call of a kernel. Faults may change `args`, a copy of the arguments, through the pointers into it. A pointer is
 * NULL if the kernel has no such argument. */
struct kernel_call {
    enum posenc_kernel kernel;
    union arguments args;
    struct posenc_tensor *out;
    struct posenc_tensor *second_out; /* sin of a table */
    struct posenc_tensor *x;
    struct posenc_positions *positions;
    const void *input; /* data of an input */
    float x_scale;
    enum posenc_status status;
};
/* Calls the real kernel with the arguments as they are now. */
void run_kernel(struct kernel_call *c);

/* A fault and the case that must detect it: KERNEL/DTYPE/suite/property must fail for each kernel that it concerns. */
struct fault {
    const char *name;
    const char *suite, *property;
    enum posenc_dtype last_dtype; /* the case is run in the dtypes from f32 to this one */
    bool (*concerns)(enum posenc_kernel kernel);
    void (*run)(struct kernel_call *c);
};

/* Return the fault with an index, or with a name; NULL if there is none. */
const struct fault *fault_at(int i);
const struct fault *fault_find(const char *name);

/* Returns a backend with the kernels of `base`, and a fault unless that is NULL. Each call invalidates the last
 * backend. */
const struct posenc_backend *faulty_backend(const struct fault *fault,
                                            const struct posenc_backend *base);
/* Returns the number of calls of kernels of the last faulty_backend(). */
unsigned long faulty_calls(void);

/* ---- For the files of this folder ---- */

/* Tables of faults, with an empty row at the end. */
extern const struct fault memory_faults[], result_faults[], side_effect_faults[];

/* Kernels that a fault may concern. */
bool every_kernel(enum posenc_kernel kernel);
bool token_kernel(enum posenc_kernel kernel);

/* Access to elements of a tensor, by row in the order of storage_row() and by column, which may lie outside of the
 * row. */
int64_t tensor_width(const struct posenc_tensor *t);
int64_t tensor_row_count(const struct posenc_tensor *t);
char *tensor_at(const struct posenc_tensor *t, int64_t r, int64_t column);
float tensor_get(const struct posenc_tensor *t, int64_t r, int64_t column);
void tensor_put(const struct posenc_tensor *t, int64_t r, int64_t column, float value);
/* Flips the last bit of a value. A zero, an infinity or NaN becomes 1. */
void tensor_flip_bit(const struct posenc_tensor *t, int64_t r, int64_t column);

#endif
