/*
 * Single steps of a function, from its entry until it returns, added up by address.
 */
#ifndef POSENC_STEPS_H
#define POSENC_STEPS_H

#include "object.h"

enum { STEPS_TEXTS = 2 };

/* entry(first, second) */
struct counted_call {
    void (*entry)(void);
    const void *first, *second;
};

struct steps {
    uintptr_t entry;
    struct range text[STEPS_TEXTS]; /* whose instructions are told apart */
    uint32_t *times[STEPS_TEXTS];   /* how often the one at each byte of them was run */
    uint64_t most;                  /* steps after which all is given up */

    enum { STEPS_BEFORE, STEPS_INSIDE, STEPS_RETURNED, STEPS_TOO_MANY } state;
    uintptr_t back, stack; /* where the function returns to, and its stack then */
    uintptr_t last;
    uint64_t before, inside, outside; /* inside: of the texts */
};

/* An instruction is about to be run; `back` is asked for where it is the function's first.  False:
 * no more steps are wanted. */
bool steps_take(struct steps *steps, uintptr_t at, uintptr_t stack,
                bool (*back)(void *user, uintptr_t *to), void *user);

/* Run the call and fill the steps; false where that cannot be done here. */
bool steps_by_trap_flag(const struct counted_call *call, struct steps *steps);
bool steps_of_child(const struct counted_call *call, struct steps *steps);

#endif
