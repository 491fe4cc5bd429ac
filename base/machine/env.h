/*
 * Facts about the machine and the build that a figure depends on.  What cannot be learnt is said to
 * be "not exposed" or left out, never guessed.
 */
#ifndef POSENC_ENV_H
#define POSENC_ENV_H

#include <jansson.h>

/* What the library knows of itself and of the CPU; `emulator` is NULL, or what emulates it. */
struct env_library {
    const char *version, *cpu_key, *cpu_features, *emulator, *build; /* build: posenc_build() */
};

/* The "env" record; its quality (quality.h) is what the facts alone allow.  `root`: where /proc and /sys
 * are, "" for this machine (sysfs.h). */
json_t *env_record(const struct env_library *library, const char *root);

#endif
