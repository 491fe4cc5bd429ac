/*
 * The records of a run as they come, in a file beside the one they will be in: TARGET.partial.  It
 * is there for as long as the run lasts and goes away when the result is in its place; what a run
 * that was killed leaves of it is what --resume goes on from (resume.h).
 */
#ifndef POSENC_CLI_JOURNAL_H
#define POSENC_CLI_JOURNAL_H

#include "args.h"

#include <stdio.h>

struct journal {
    char *path, *temporary; /* temporary: until it is published, or where it cannot be */
    FILE *stream;           /* NULL: there is none */
};

/* Opens one under a temporary name.  Returns EXIT_FINE, or EXIT_USAGE after a message. */
int journal_open(const struct cli *cli, struct journal *journal, const char *target);
/* Gives it its name, once it holds what a killed run left, if anything: that is replaced.  Where
 * another run is writing under that name, or the file is none of ours, it keeps the temporary one. */
void journal_publish(const struct cli *cli, struct journal *journal);
/* `done`: the result is in its place, or was given up. */
void journal_close(struct journal *journal, bool done);
/* In a child process: what its parent writes is not kept by it. */
void journal_leave(void);

/* Whether a process writes this file now. */
bool journal_is_written(const char *path);

#endif
