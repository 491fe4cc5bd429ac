/*
 * Injected faults that any kernel can have: wrong memory accesses and side effects. Faults of single kernels are edits of
 * the library's source, in conformance/cases/faults.txt.
 *
 * A fault is a function that runs in place of a kernel, and usually calls it. To add one, write it into faults.c, with
 * a row in the table at its end. The program `faulty` then requires that the case in the row fails for every kernel
 * that the row concerns.
 */
#ifndef POSENC_FAULTY_H
#define POSENC_FAULTY_H

#include "conformance/problem/problem.h"

/* A call of a kernel. Faults may change `args`, a copy of the arguments, through the pointers into it. */
struct kernel_call {
    enum posenc_kernel kernel;
    union arguments args;
    struct posenc_tensor *out, *x; /* the first output; NULL if the kernel takes no x */
    const void *input;             /* data of an input, or NULL */
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

/* All faults, with an empty row at the end. */
extern const struct fault faults[];
/* Returns the fault with a name, or NULL. */
const struct fault *fault_find(const char *name);

/* Returns a backend with the kernels of `base`, and a fault unless that is NULL. Each call invalidates the last
 * backend. */
const struct posenc_backend *faulty_backend(const struct fault *fault,
                                            const struct posenc_backend *base);
/* Returns the number of calls of kernels of the last faulty_backend(). */
unsigned long faulty_calls(void);

#endif
