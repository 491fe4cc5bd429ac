/*
 * What this CPU and its operating system can run. Found out once, immutable after.
 */
#ifndef POSENC_CPU_H
#define POSENC_CPU_H

/* NULL when every feature of the space separated list `needs` is there; else a static sentence
 * about the first that is missing. */
const char *posenc_cpu_obstacle(const char *needs);

/* Returns the level of a list of features among the instruction sets; 0 for an empty one.
 * Comparable within one architecture. */
int posenc_cpu_level(const char *needs);

#endif
