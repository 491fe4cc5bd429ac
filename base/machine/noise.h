/*
 * Whether a reader is to be told, before anything else, what else a machine did while it was measured.
 */
#ifndef POSENC_NOISE_H
#define POSENC_NOISE_H

#include "base/records.h"
#include "watch.h"

/* More time than this stolen by a hypervisor is too much. */
static const double stolen_pct = 1.0;
/* Whether other programs took enough of a machine to be felt, told in words: more than a tenth of it; a
 * load average above the number of CPUs where only that is known.  `noise` may be NULL. */
bool noise_of_others(const json_t *env, const json_t *noise, char *words, size_t bytes);

#endif
