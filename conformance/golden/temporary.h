/*
 * A folder for the time of a test.
 */
#ifndef POSENC_TEMPORARY_H
#define POSENC_TEMPORARY_H

#include <stdbool.h>

enum { TEMPORARY_BYTES = 1024 };

/* Makes an empty one under $TMPDIR, or /tmp; false, and the reason on stderr, when it cannot. */
bool temporary_make(const char *name, char path[TEMPORARY_BYTES]);

/* Removes it with what is inside. */
void temporary_remove(const char *path);

#endif
