/*
 * Number of machine instructions that one call of a kernel takes. The number is exact and the same each time, however
 * busy the machine is. It explains a time and does not replace it.
 *
 * The CPU traps after each instruction from the first one of the function to its return. This works on x86-64 with
 * Linux; elsewhere nothing is counted.
 */
#ifndef POSENC_INSTRUCTIONS_H
#define POSENC_INSTRUCTIONS_H

#include "conformance/problem/problem.h"

enum { INSTRUCTIONS_WHY = 160 };
/* Steps after which a call is given up: some seconds. */
enum { INSTRUCTIONS_MOST = 500000 };

/* A call entry(first, second). */
struct counted_call {
    void (*entry)(void);
    const void *first, *second;
};

struct call_instructions {
    const char *by; /* how they were counted, "single step"; NULL if they were not: see why */
    char why[INSTRUCTIONS_WHY];
    uint64_t instructions; /* in code of the library, and of a plug-in */
    uint64_t outside;      /* in other code, such as the C library's sine */
};

/* Counts one call of a function that has been called before, which binds its symbols. `other` is an address in more
 * code that belongs to it (a plug-in's), or 0. */
struct call_instructions instructions_of_call(const struct counted_call *call, uintptr_t other,
                                              uint64_t most);

/* Returns how instructions are counted on this machine, or NULL. */
const char *instructions_method(void);

/* Two calls of a kernel that differ in their number of elements alone; the larger one comes first. */
struct kernel_instructions {
    struct problem problem; /* of the larger call */
    int64_t elements[2];    /* of the larger of x and out */
    struct call_instructions call[2];
    double per_element, per_call; /* for each element more, and for the call besides */
    char why[INSTRUCTIONS_WHY];   /* the reason if it was not counted */
};

/* Counts a kernel of an implementation's backend, called through its front-end, on a shape that models have. Returns
 * false, and fills to->why, if it cannot be counted. */
bool instructions_of_kernel(const struct implementation *implementation,
                            enum posenc_kernel kernel, enum posenc_dtype dtype,
                            enum posenc_profile profile, struct kernel_instructions *to);

/* Fills in the profiles in which a kernel is counted. Returns how many there are. */
size_t instructions_profiles(enum posenc_kernel kernel, enum posenc_profile profiles[2]);

#endif
