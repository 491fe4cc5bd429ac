/*
 * Limits: what binds a row.  Candidates are its roofline, what it converts and the lower-bound loop of
 * its kernel (looped.h), of short calls each after the call's checks, and the call without rows.  The
 * one that takes longest binds.
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

/* Enters, once all are calibrated and if calls are short, each roofline and loop after the call's checks,
 * and of each backend a copy that does a part of the call.  Whole and part show what a call takes without
 * rows.  Returns false if one could not be calibrated. */
bool limits_enter_calls(struct turns *turns, const struct timed_call *timed);

/* Finds what binds a contender that was timed.  A loop that some backend beats is no limit, for
 * something in it can be avoided. */
struct limit limits_of(const struct turns *turns, const struct contender *c);

#endif
