/*
 * The suite of random tests: problems drawn from everything the front-end accepts, and calls of them
 * with changed arguments.
 */
#ifndef POSENC_RANDOM_RANDOM_H
#define POSENC_RANDOM_RANDOM_H

#include "conformance/engine/tally.h"

void suite_random(struct suite_run *run, enum posenc_kernel kernel);

/* Checks what cases/refused.txt lists for the kernel. */
void random_check_rejected(struct tally *t, enum posenc_kernel kernel);

#endif
