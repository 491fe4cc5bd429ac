/*
 * The suite of problems that are drawn: see random.c.
 */
#ifndef POSENC_RANDOM_RANDOM_H
#define POSENC_RANDOM_RANDOM_H

#include "conformance/engine/suite.h"

void suite_random(struct suite_run *run, enum posenc_kernel kernel);

#endif
