/*
 * Measurement quality, as far as facts about a machine tell before anything is timed.  The report adds
 * what the timings show (reports/posenc/quality.py).
 */
#ifndef POSENC_QUALITY_H
#define POSENC_QUALITY_H

#include <jansson.h>
#include <stdbool.h>

/* Returns {grade: "A".."D", reasons: [..]} of an env record. */
json_t *env_quality(const json_t *env);

/* Returns whether the load average is above the number of CPUs, and writes it in words. */
bool env_is_busy(const json_t *env, char *words, size_t bytes);

#endif
