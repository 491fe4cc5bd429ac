/*
 * Data of the program: golden vectors, plug-ins and programs beside it, the build, and summaries of encodings. Data lies
 * where an option or the environment says, beside the program (build tree, then installed), or where the build put it.
 */
#ifndef POSENC_CLI_DATA_H
#define POSENC_CLI_DATA_H

#include "conformance/readers/vectors.h"
#include "args.h"

#include <jansson.h>
#include <stddef.h>

enum { DATA_PATH = 4096 }; /* bytes of a path */

/* Stores the path of the running program; false if the system does not report it. */
bool data_program(char path[DATA_PATH]);
/* Finds what lies beside the program: in the build tree, else where it was installed, both relative to the
 * program's folder, else at `path`.  False where there is nothing. */
bool data_beside(const char *in_build, const char *installed, const char *path,
                 char found[DATA_PATH]);

/* Loads the golden vectors, with a note on stderr. Returns EXIT_FINE, or EXIT_USAGE after a message. */
int data_vectors(const struct cli *cli, struct vectors *vectors);

/* Adds to the library's list the backends of all plug-ins in POSENC_PLUGINS or, where that is
 * not set, in the folder beside the program; says on stderr which could not be loaded. */
void data_plugins(void);

/* Makes the member of a header that names this build: {version, commit, dirty}, the last two if they are known. */
json_t *tool_record(void);

struct topic {
    const char *kind, *name; /* "scaling", "yarn" */
    const char
        *what; /* a summary; of a kernel the encodings that use it, with commas between */
};
/* Returns the i-th topic, NULL past the end. */
const struct topic *topic_at(size_t i);
/* Returns the summary of a topic, "" if there is none. */
const char *topic_what(const char *kind, const char *name);

/* Prints a text in lines that end before column `to`. The cursor is at `column`, where further lines begin. */
void topic_print_words(const char *text, int column, int to);

/* Copies the part of "a, b, c" before the first comma. Returns the rest, or NULL after the last part. */
const char *topic_piece(const char *list, char *piece, size_t size);

#endif
