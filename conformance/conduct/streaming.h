/*
 * Streaming (non-temporal) stores of x86 that a call leaves without a fence.  A thread that is handed
 * the output, by a store with release order, may then read what was there before: such stores are not
 * ordered before others.
 *
 * Whether it does is luck, and takes two CPUs.  So nothing is handed over here: the end of the call is
 * run instruction by instruction, from when it first touches the last page of the output on, and looked
 * at.  After a streaming store there has to be a fence, or what is one: an instruction that locks the
 * bus, or that serialises.
 */
#ifndef POSENC_STREAMING_H
#define POSENC_STREAMING_H

#include "conformance/problem/guard.h"
#include "conformance/problem/subject.h"

struct streaming {
    unsigned long steps,
        stores;             /* instructions that were looked at, streaming stores of them */
    bool unfenced;          /* the last of these is followed by no fence */
    bool crashed, too_long; /* the latter: the end was not reached, and nothing is known */
    char text[200];         /* of a call that was not made or did not go through */
};
void streaming_run(const struct subject *subject, const struct problem *problem,
                   struct streaming *streaming);

/* Why it cannot be seen here; NULL: it can. */
const char *streaming_unseen(void);

#endif
