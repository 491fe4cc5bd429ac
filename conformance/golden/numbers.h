/*
 * Numbers that a manifest holds beside tensors.
 */
#ifndef POSENC_NUMBERS_H
#define POSENC_NUMBERS_H

#include "golden.h"

#include <jansson.h>

/* Adds to a group's manifest what its cases are made from: slopes, thresholds, indices. */
void numbers_add(json_t *root, const struct golden *golden, const struct group *group);

#endif
