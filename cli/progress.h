/*
 * A line of progress on stderr: the work, the part that is done, and the time that the rest may
 * take. It is never wider than the terminal and leaves nothing behind. There is none if stderr is no
 * terminal, or one that cannot erase (TERM=dumb).
 */
#ifndef POSENC_CLI_PROGRESS_H
#define POSENC_CLI_PROGRESS_H

#include "args.h"

struct progress {
    const char *what; /* "verify" */
    const char *unit; /* "shapes": what is counted */
    double done;      /* of `total`; a fraction where parts of one are known */
    size_t total;
    double most_s;     /* seconds that it may take in all; 0: not known */
    const char *notes; /* ", 2 FAILED"; or "" */
    const char *where; /* the case at hand; its middle is left out if it is too long */
};

/* Draws the line, ten times a second at most. The time begins with the first call for `what`. */
void progress_draw(const struct progress *now);
/* Erases the line. */
void progress_clear(void);
/* Erases the line, in a handler of signals. */
void progress_abandon(void);

#endif
