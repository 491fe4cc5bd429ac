/* A folder of one level for the time of a test. */
#ifndef POSENC_GOLDEN_FOLDER_H
#define POSENC_GOLDEN_FOLDER_H

#include <stdbool.h>

enum { FOLDER_BYTES = 1024 };

/* Makes an empty one under $TMPDIR, or /tmp; false, and the reason on stderr, when it cannot. */
bool folder_make(const char *name, char path[FOLDER_BYTES]);

/* Removes it with its files, those whose names begin with a dot excepted. */
void folder_remove(const char *path);

#endif
