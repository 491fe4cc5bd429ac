/*
 * The smallest problem that still fails as one did: field by field back to what it is where
 * nothing says otherwise, or halved, or one less; lists shorter; until nothing helps.
 */
#ifndef POSENC_RANDOM_SHRINK_H
#define POSENC_RANDOM_SHRINK_H

#include "conformance/problem/fields.h"

/* Whether a problem fails in the same way. */
typedef bool still_fails(void *user, const struct problem *problem);

/* For so many seconds at most; new lists are in the arena. */
void shrink(struct problem *problem, struct arena *arena, double seconds, still_fails *fails,
            void *user);

#endif
