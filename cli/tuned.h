/*
 * The tuning file that this program uses: POSENC_PROFILE, or the user's own, which posenc tune writes.
 */
#ifndef POSENC_CLI_TUNED_H
#define POSENC_CLI_TUNED_H

#include "args.h"

enum { TUNED_PATH = 4096, TUNED_WHY = 512 };

/* Selects the user's own tuning file before the first call of the library, if it exists, is of this CPU and
 * build, and the environment does not choose the backend. */
void tuned_begin(void);

/* Returns EXIT_USAGE, after a message, if POSENC_PROFILE cannot be used. */
int tuned_check(const struct cli *cli);

/* Prints the tuning file in force. */
int tuned_list(struct cli *cli);

#endif
