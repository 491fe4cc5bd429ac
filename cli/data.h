/*
 * Where the program's data is: --vectors, the environment, beside the program (build tree,
 * installed), then the places known when it was built.
 */
#ifndef POSENC_CLI_DATA_H
#define POSENC_CLI_DATA_H

#include "conformance/readers/vectors.h"
#include "args.h"

/* Loads the golden vectors and says on stderr which.  EXIT_FINE, or EXIT_USAGE after a
 * message. */
int data_vectors(const struct cli *cli, struct vectors *vectors);

/* Adds to the library's list the backends of all plug-ins in POSENC_PLUGINS or, where that is
 * not set, in the folder beside the program; says on stderr which could not be loaded. */
void data_plugins(void);

#endif
