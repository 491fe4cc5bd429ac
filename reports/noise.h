/*
 * Whether a reader is to be told, before anything else, what else a machine did while it was measured.
 */
#ifndef POSENC_NOISE_H
#define POSENC_NOISE_H

#include "records.h"
#include "watch.h"

struct results;

/* More time than this stolen by a hypervisor is too much. */
static const double stolen_pct = 1.0;
/* Whether other programs took enough of a machine to be felt, told in words: more than a tenth of it; a
 * load average above the number of CPUs where only that is known.  `noise` may be NULL. */
bool noise_of_others(const json_t *env, const json_t *noise, char *words, size_t bytes);

/* What makes the timings of these results unreliable, as sentences: what happened, what to do, and what
 * noisy means where some are.  false: nothing that is known, or nothing was timed. */
enum { NOISE_TEXT = 800 };
bool noise_warning(const struct results *results, char text[NOISE_TEXT]);

#endif
