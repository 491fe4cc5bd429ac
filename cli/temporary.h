/*
 * Temporary files beside what they will become.  The process that writes one has it locked, so that one that
 * nobody has locked is what a killed process left.
 */
#ifndef POSENC_CLI_TEMPORARY_H
#define POSENC_CLI_TEMPORARY_H

/* Removes those of this user that killed processes left of `target`, and opens a new one, TARGET.posenc-XXXXXX,
 * whose mode is 0600.  *path is malloc'ed before the file is there: a signal may come at any time.  -1 with
 * errno, and *path NULL. */
int temporary_open(const char *target, char **path);

#endif
