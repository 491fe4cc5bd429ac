/*
 * Numbers that an exported manifest holds beside tensors.
 */
#ifndef POSENC_NUMBERS_H
#define POSENC_NUMBERS_H

#include "conformance/problem/problem.h"

#include <jansson.h>

/* Adds to a group's manifest what a case is made from: slopes, thresholds, indices.  False when
 * memory runs out. */
bool numbers_add(json_t *root, const struct problem *problem);

#endif
