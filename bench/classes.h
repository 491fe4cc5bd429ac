/*
 * What a machine instruction does to memory, to the flow of control and with vectors, as far as
 * counting them by class takes.
 *
 * A push, a call and a return move their word of the stack, too.  On x86 and ARM scalar floating
 * point has no registers of its own: it counts as vector.  A prefetch loads nothing.
 */
#ifndef POSENC_CLASSES_H
#define POSENC_CLASSES_H

#include <stdbool.h>
#include <stddef.h>

struct classes {
    bool load, store;
    bool branch; /* whatever may go elsewhere: jumps, calls, returns */
    bool vector; /* uses a vector register */
};

/* Fills `classes` from the instruction at `code`, of which `most` bytes may be read; false where
 * it is not known. */
typedef bool classify(const unsigned char *code, size_t most, struct classes *classes);

classify classify_arm;   /* A64 */
classify classify_riscv; /* RV64GCV */
classify classify_x86;   /* x86-64; false where Zydis was not built in */

/* That of the machine this is compiled for. */
classify classify_here;

#endif
