/*
 * The profile of tuning that this program uses: POSENC_PROFILE, or the user's own, which posenc tune writes.
 */
#ifndef POSENC_CLI_TUNED_H
#define POSENC_CLI_TUNED_H

#include "args.h"

enum { TUNED_PATH = 4096, TUNED_WHY = 512 };

/* The path of the user's own: $XDG_CONFIG_HOME/posenc/profile, or ~/.config/posenc/profile.  False: there is no
 * home. */
bool tuned_own_path(char path[TUNED_PATH]);

/* Before the first call of the library: the user's own profile is selected, where there is one, it is of this CPU
 * and build, and the environment does not say who serves. */
void tuned_begin(void);

/* EXIT_USAGE, told, where POSENC_PROFILE was set to what cannot be used. */
int tuned_check(const struct cli *cli);

/* What the profile in force chose, and why, as its file says it. */
int tuned_list(struct cli *cli);

#endif
