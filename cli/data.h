/*
 * Files that the program finds: golden vectors, plug-ins, and the programs of external commands. An option or the
 * environment may name them. Otherwise they are searched for beside the program, in the build tree or the installation,
 * and then in the installation prefix. A program in build/ reads build/golden, and "posenc report" runs
 * build/reports/posenc-report. The summaries of encodings are compiled into the program (topics.py).
 */
#ifndef POSENC_CLI_DATA_H
#define POSENC_CLI_DATA_H

#include "conformance/readers/vectors.h"
#include "args.h"
#include "outputs.h"

#include <jansson.h>
#include <stddef.h>

enum { DATA_PATH = 4096 }; /* bytes of a path */

/* Loads the golden vectors and prints a note with their path. Exits after a message if there are none. */
void data_load_vectors(const struct cli *cli, struct vectors *vectors);

/* Adds the plug-ins of the folder POSENC_PLUGINS, or of the folder beside the program if that is unset, to the
 * backends. Prints a message about each that cannot be loaded. */
void data_load_plugins(void);

/* A page of docs/encodings: { "scaling", "yarn", "slow pairs divided by factor, ..." }. */
struct topic {
    const char *kind, *name;
    const char *summary; /* of a kernel: the encodings that use it, separated by commas */
};
/* Returns the i-th topic; NULL past the end. */
const struct topic *topic_at(size_t i);
/* Returns the summary of a topic, or "". */
const char *topic_summary(const char *kind, const char *name);

/* Copies the first name of such a list. Returns the rest of the list, or NULL after the last name. */
const char *topic_next_name(const char *list, char *name, size_t size);

/* ---- External commands: posenc NAME runs the program posenc-NAME, as git does ---- */

/* Replaces this process by posenc-NAME with the arguments argv[2], ...: from the folder beside this program, else from
 * PATH. Returns only if there is no posenc-NAME. */
void external_exec(const char *name, char **argv);

/* Runs posenc-NAME with the arguments argv[1], ..., and returns its output, to be freed. Exits after a message of
 * that program, or about `option` if the program or Python is missing. */
char *external_read(const char *option, const char *name, const char **argv);

/* Checks, before a run that takes minutes, that the program that writes a format can be started. */
void external_check_format(const struct output_format *format);
/* Has that program write records to a stream. Returns its exit code; the program prints its own messages. */
int external_write_format(const struct output_format *format, const json_t *records, FILE *to);

#endif
