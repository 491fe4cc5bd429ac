/*
 * Runs other programs, by their arguments and no shell, and waits for them.
 *
 * They read nothing.  Those that run in another folder see none of the variables by which git tells its
 * hooks where they are.
 */
#ifndef POSENC_CLI_CHILD_H
#define POSENC_CLI_CHILD_H

#include <stddef.h>

enum { CHILD_MISSING = 127, CHILD_SIGNAL = 128 };

/* In a folder (NULL: this one), its output and errors to a file (-1: nowhere).  The exit status,
 * CHILD_SIGNAL and the number of a signal that ended it, or CHILD_MISSING. */
int child_run(const char *const *argv, const char *folder, int to);
/* What it writes, without the last newline, malloc'ed; NULL where it fails. */
char *child_says(const char *const *argv);

/* Until child_end(), a signal that would end this program ends the child that runs, and all of that
 * one's; a second one kills them.  Then child_end() lets it end this program, too. */
void child_begin(void);
int child_interrupted(void); /* 0: no */
void child_end(void);

#endif
