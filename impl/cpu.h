/* Features of this CPU that its operating system supports, by name. They are detected once. */
#ifndef POSENC_CPU_H
#define POSENC_CPU_H

/* Returns NULL if this CPU has each feature of the space-separated list; otherwise a static sentence about the first
 * that is missing. NULL is an empty list. */
const char *posenc_cpu_unavailable_reason(const char *list);

/* Returns the highest level of instruction sets among the features of a list; 0 for an empty list. Levels are
 * comparable within one architecture. */
int posenc_cpu_level(const char *list);

#endif
