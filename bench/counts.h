/*
 * Number of machine instructions that one call of a kernel takes: exact, and the same each time,
 * whatever else the machine does.  Counts explain a time; they do not replace it.
 *
 * Instructions are counted from the first one of the function to its return:
 *
 *     single step    the CPU traps after each instruction: x86-64, Linux
 *     qemu plug-in   the emulator that runs this program counts (bench/counter.c)
 */
#ifndef POSENC_COUNTS_H
#define POSENC_COUNTS_H

#include "conformance/problem/problem.h"

enum { COUNTS_WHY = 160 };

/* entry(first, second) */
struct counted_call {
    void (*entry)(void);
    const void *first, *second;
};

struct call_counts {
    const char *by; /* NULL: nothing could be counted, and why */
    char why[COUNTS_WHY];
    uint64_t instructions; /* of the library's code, and of a plug-in's */
    uint64_t outside;      /* of others', such as the C library's sine */
};

/* Steps after which a call is given up: some seconds. */
enum { COUNTS_MOST = 500000 };

/* Counts one call of a function, which has to have been called before; `other` is an address in
 * more code that belongs to it (a plug-in's), or 0. */
struct call_counts count_call(const struct counted_call *call, uintptr_t other, uint64_t most);

/* Returns the way in which instructions are counted here, or NULL. */
const char *counts_method(void);

/* Two calls of a kernel that differ in nothing but their number of elements. */
struct kernel_counts {
    struct problem problem;     /* of the larger call */
    int64_t elements[2];        /* of the larger of x and out; the larger call's first */
    struct call_counts call[2]; /* the larger call's first */
    double per_element,
        per_call;         /* each element more, and the call besides; if both were counted */
    char why[COUNTS_WHY]; /* where it could not be counted */
};

/* Counts a kernel of a subject's backend, called through its front-end, on a shape that models
 * have.  Returns false, and to->why, where that cannot be. */
bool count_kernel(const struct subject *subject, enum posenc_kernel kernel,
                  enum posenc_dtype dtype, enum posenc_profile profile,
                  struct kernel_counts *to);

/* The profiles of a kernel that are counted: exact, and that of transformers for tables, too; one,
 * which does not matter, for a kernel that has no plan.  Returns how many. */
size_t count_profiles(enum posenc_kernel kernel, enum posenc_profile profiles[2]);

#endif
