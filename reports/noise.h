/*
 * What else a machine did while it was measured, and whether a reader is to be told before anything else.
 */
#ifndef POSENC_NOISE_H
#define POSENC_NOISE_H

#include "records.h"

struct results;

/* Counts since some time past; of the whole machine where the system tells them (others: 0). */
struct noise_watch {
    double wall_s, busy_s, own_s; /* CPU time of everybody; of this process and its children */
    long involuntary_switches;
    unsigned long long steal, ticks;
};
struct noise_watch noise_watch_start(void);
/* What happened since: {wall_s, steal_pct, involuntary_switches, load1, others}; others: how many CPUs
 * other programs took on average, left out where the system does not tell. */
json_t *noise_watch_stop(const struct noise_watch *start);
/* The same between two counts. */
json_t *noise_between(const struct noise_watch *start, const struct noise_watch *stop,
                      double load1);

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
