/*
 * Progress line on stderr: the command, the part that is done, and an estimate of the remaining time. It is erased at
 * the end. None is drawn if stderr is not a terminal, or a terminal that cannot erase (TERM=dumb).
 */
#ifndef POSENC_CLI_PROGRESS_H
#define POSENC_CLI_PROGRESS_H

#include "args.h"

struct progress {
    const char *command; /* "verify" */
    const char *unit;    /* "shapes": unit of `done` and `total` */
    double done;         /* may have a fraction */
    size_t total;
    double most_s;       /* limit of the total time in seconds; 0: unknown */
    const char *notes;   /* ", 2 FAILED"; or "" */
    const char *case_id; /* current case; shortened in its middle if too long */
};

/* Draws the line, at most ten times a second. The time starts with the first call of a command. */
void progress_draw(const struct progress *now);
/* Erases the line. */
void progress_clear(void);
/* Erases the line; may be called in a signal handler. */
void progress_erase_in_handler(void);

#endif
