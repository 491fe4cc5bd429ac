/*
 * Facts about the machine and the build that a figure depends on, and a grade of trust with its
 * reasons.  What cannot be learnt is said to be "not exposed", never guessed.
 */
#ifndef POSENC_ENV_H
#define POSENC_ENV_H

#include <jansson.h>

/* What the library knows of itself and of the CPU; `emulator` is NULL, or what emulates it. */
struct env_library {
    const char *version, *cpu_key, *cpu_features, *emulator;
};

/* The "env" record; its trust is what the facts alone allow. */
json_t *env_record(const struct env_library *library);

/* {grade: "A".."D", reasons: [..]} of an env record, with the noise of a run where known (NULL,
 * and a negative null_pct: not measured). */
json_t *env_trust(const json_t *env, const json_t *noise, double null_pct);

#endif
