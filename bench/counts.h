/*
 * How many machine instructions one call of a kernel takes: exactly, the same each time, whatever
 * else the machine does, in a container, in a virtual machine, and for every instruction set
 * that the CPU has.  Counts explain a time, and are none: instructions differ in what they cost.
 *
 * They are counted from the first instruction of the library's function to its return, each time
 * it is run:
 *
 *   single step    the CPU traps after each instruction: x86-64, Linux
 *   traced child   a copy of the process does, traced by this one: ARM, and x86-64 where traps do
 *                  not come
 *   qemu plug-in   the emulator that runs this program counts (bench/counter.c)
 *
 * Counters of the CPU (perf) are read, too, where there are any.  What is compared are single
 * steps: counters are not everywhere, and an interrupt adds to them.
 */
#ifndef POSENC_COUNTS_H
#define POSENC_COUNTS_H

#include "conformance/problem/problem.h"
#include "steps.h"

enum { COUNTS_WHY = 160 };

struct call_counts {
    const char *by; /* NULL: nothing could be counted, and why */
    char why[COUNTS_WHY];
    uint64_t instructions; /* of the library's code, and of a plug-in's */
    uint64_t outside;      /* of others', such as the C library's sine */
    bool classed;          /* whether those of the library are told apart by class: */
    uint64_t loads, stores, branches, vector;
};

/* Steps after which a call is taken to be too long: some seconds. */
enum { COUNTS_MOST = 500000 };

/* One call of a function, which has to have been called before; `other` is an address in more code
 * that belongs to it (a plug-in's), or 0. */
struct call_counts count_call(const struct counted_call *call, uintptr_t other, uint64_t most);

/* What counts here, or NULL. */
const char *counts_method(void);

/* Instructions in user space by the CPU's counter, the harness's taken off: the least of some calls
 * of a function; 0 where there is no counter. */
uint64_t count_by_perf(const struct counted_call *call);

/* Two calls of a kernel that differ in nothing but their number of elements: what each element
 * more takes, and what the call takes besides. */
struct kernel_counts {
    struct problem problem; /* of the larger call */
    int64_t elements[2];    /* of the larger of x and out; the larger call's first */
    struct call_counts call[2];
    double per_element, per_call; /* where both were counted */
    uint64_t perf;                /* count_by_perf() of the larger call */
    char why[COUNTS_WHY];         /* where it could not be counted */
};

/* Of a kernel of a subject's backend, called through its front-end, on a shape that models have.
 * False, and to->why, where that cannot be. */
bool count_kernel(const struct subject *subject, enum posenc_kernel kernel,
                  enum posenc_dtype dtype, enum posenc_profile profile,
                  struct kernel_counts *to);

/* The profiles of a kernel that are counted: exact, and that of transformers for tables, too; one,
 * which does not matter, for a kernel that has no plan.  Returns how many. */
size_t count_profiles(enum posenc_kernel kernel, enum posenc_profile profiles[2]);

#endif
