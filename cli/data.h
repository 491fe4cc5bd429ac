/*
 * Where the program's data is: --vectors, the environment, beside the program (build tree,
 * installed), then the places known when it was built.
 */
#ifndef POSENC_CLI_DATA_H
#define POSENC_CLI_DATA_H

#include "conformance/readers/vectors.h"
#include "args.h"

enum { DATA_PATH = 4096 }; /* bytes of a path */

/* The path of the running program; false where the system does not report it. */
bool data_program(char path[DATA_PATH]);
/* Finds what lies beside the program: in the build tree, else where it was installed, both relative to the
 * program's folder, else at `path`.  False where there is nothing. */
bool data_beside(const char *in_build, const char *installed, const char *path,
                 char found[DATA_PATH]);

/* Loads the golden vectors and says on stderr which.  EXIT_FINE, or EXIT_USAGE after a
 * message. */
int data_vectors(const struct cli *cli, struct vectors *vectors);

/* Adds to the library's list the backends of all plug-ins in POSENC_PLUGINS or, where that is
 * not set, in the folder beside the program; says on stderr which could not be loaded. */
void data_plugins(void);

#endif
