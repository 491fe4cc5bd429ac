/* Tuning file of this program: POSENC_TUNING, or the user's file that posenc tune writes. */
#ifndef POSENC_CLI_TUNING_FILE_H
#define POSENC_CLI_TUNING_FILE_H

#include "args.h"

enum { TUNING_FILE_PATH = 4096, TUNING_FILE_REASON = 512 };

/* Selects the user's tuning file if it exists, fits this CPU and build, and the environment selects nothing else.
 * Called before the first call of the library. */
void tuning_file_select_default(void);

/* Selects POSENC_TUNING if it is set. Returns EXIT_OK, or EXIT_USAGE after a message. */
int tuning_file_select_environment(const struct cli *cli);

/* Runs posenc list tuning. */
int tuning_file_list(struct cli *cli);

#endif
