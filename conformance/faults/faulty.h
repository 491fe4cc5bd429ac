/*
 * Injected faults that any kernel can have: wrong memory accesses and side effects. Faults of single kernels are edits of
 * the library's source, in conformance/cases/faults.txt.
 *
 * A fault is a function that runs in place of a kernel, and usually calls it. To add one, write it into faulty.c, with
 * a row in the table there. The program `faulty` then requires that the case in the row fails for every kernel
 * that the row concerns.
 */
#ifndef POSENC_FAULTY_H
#define POSENC_FAULTY_H

#include "conformance/problem/problem.h"

struct kernel_call;

/* A fault and the case that must detect it: KERNEL/DTYPE/suite/property must fail for each kernel that it concerns. */
struct fault {
    const char *name;
    const char *suite, *property;
    enum posenc_dtype last_dtype; /* the case is run in the dtypes from f32 to this one */
    bool (*concerns)(enum posenc_kernel kernel);
    void (*run)(struct kernel_call *call);
};

/* All faults, with an empty row at the end. */
extern const struct fault faults[];
/* Returns the fault with a name, or NULL. */
const struct fault *fault_find(const char *name);

/* Returns a backend with the kernels of `base`, and a fault unless that is NULL. Each call invalidates the last
 * backend. */
const struct posenc_backend *faulty_backend(const struct fault *fault,
                                            const struct posenc_backend *base);

#endif
