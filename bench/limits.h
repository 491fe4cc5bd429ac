/*
 * Limits: what binds a row.  Of its roof, what it converts and the bare loop of its kernel (looped.h), of short calls
 * each after the call's checks, and of the call without rows it is what takes longest.
 */
#ifndef POSENC_LIMITS_H
#define POSENC_LIMITS_H

#include "turns.h"

struct limit {
    enum resource resource;
    const char *kind, *variant; /* "in place", "table", "call"; "avx512 plain", a backend */
    double share;               /* its time in that of the row; 0: there is none */
    double seconds;
};

/* Enters the loops of the call, of each kind those that are near the quickest at a first try. */
void limits_enter_loops(struct turns *turns, const struct timed_call *timed);

/* And, once all are calibrated, where calls are short: each roof and loop after all that a call does before its
 * kernel; and of each backend a copy that does a part of the call, as from both follows what a call takes without rows.
 * False when one could not be calibrated. */
bool limits_enter_calls(struct turns *turns, const struct timed_call *timed);

/* What binds a contender that was timed.  A loop that some backend is quicker than is no limit:
 * something in it can be avoided. */
struct limit limits_of(const struct turns *turns, const struct contender *c);

#endif
