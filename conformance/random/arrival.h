/*
 * Whether the front-end accepts a problem, and whether the kernel is then given what was drawn: a
 * backend that computes nothing is called and looks at its arguments.
 */
#ifndef POSENC_RANDOM_ARRIVAL_H
#define POSENC_RANDOM_ARRIVAL_H

#include "conformance/problem/signature.h"

/* EMPTY: accepted, and no kernel is needed. */
enum arrival { ARRIVAL_REFUSED, ARRIVAL_EMPTY, ARRIVAL_ENTERED };

enum { ARRIVAL_TEXT = 160 };
/* *wrong: "" or what did not arrive, or was written by a call that was refused. */
enum arrival arrive(const struct problem *problem, char wrong[ARRIVAL_TEXT]);

#endif
