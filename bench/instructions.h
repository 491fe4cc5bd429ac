/* Counts the machine instructions of one call of a kernel, for the column "instructions" of posenc bench and for tests. The
 * count is exact and reproducible, also on a busy machine: the CPU traps after each instruction of the function. This
 * needs x86-64 and Linux. */
#ifndef POSENC_INSTRUCTIONS_H
#define POSENC_INSTRUCTIONS_H

#include "conformance/problem/problem.h"

/* Instructions after which counting is given up: some seconds. */
enum { INSTRUCTIONS_MOST = 500000 };

/* A call entry(first, second). */
struct counted_call {
    void (*entry)(void);
    const void *first, *second;
};

/* Returns the method of counting on this machine, or NULL. */
const char *instructions_method(void);

/* Counts one call of a function that was called before, so that its symbols are bound; the C library's functions count,
 * too. Returns max + 1 if it takes more than `max`, and 0 if it cannot be counted. */
uint64_t instructions_of_call(const struct counted_call *call, uint64_t max);

/* Two calls of a kernel that differ only in their number of elements; the larger one is first. */
struct kernel_instructions {
    struct problem problem; /* of the larger call */
    int64_t elements[2];    /* of the larger of x and out */
    uint64_t instructions[2];
    double per_element, per_call; /* of each element, and of the call without elements */
    char reason[160];             /* why it was not counted, or "" */
};

/* Counts a kernel of an implementation, called through its public function, on a realistic shape. Returns false, and
 * fills result->reason, if it cannot be counted. */
bool instructions_of_kernel(const struct implementation *implementation,
                            enum posenc_kernel kernel, enum posenc_dtype dtype,
                            enum posenc_numerics numerics, struct kernel_instructions *result);

/* Lists the numerics modes in which a kernel is counted and timed: tables in exact and hf_f32, others in exact. Returns
 * their number. */
size_t instructions_numerics(enum posenc_kernel kernel, enum posenc_numerics modes[2]);

#endif
