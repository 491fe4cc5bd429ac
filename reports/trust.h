/*
 * How far times of a machine can be relied on: a grade from A to D with its reasons.
 */
#ifndef POSENC_TRUST_H
#define POSENC_TRUST_H

#include <jansson.h>

/* {grade: "A".."D", reasons: [..]} of an env record, with the noise of a run where known (NULL, and a
 * negative null_pct: not measured). */
json_t *env_trust(const json_t *env, const json_t *noise, double null_pct);

#endif
