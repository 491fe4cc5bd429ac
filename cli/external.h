/* External commands: posenc NAME runs the program posenc-NAME, as git does. */
#ifndef POSENC_CLI_EXTERNAL_H
#define POSENC_CLI_EXTERNAL_H

#include "args.h"
#include "data.h"
#include "outputs.h"

#include <stdbool.h>
#include <stdio.h>

/* Replaces this process by posenc-NAME with the arguments argv[2], ...: from the folder beside this program, else from
 * PATH. Returns only on failure: EXIT_USAGE after a message, or EXTERNAL_NOT_FOUND if there is no posenc-NAME. */
int external_exec(const char *name, char **argv);
enum { EXTERNAL_NOT_FOUND = -1 };

/* Runs posenc-NAME with the arguments argv[1], ..., and returns its output, to be freed. Returns NULL after a message
 * of that program, or about `option` if the program or Python is missing. */
char *external_read(const struct cli *cli, const char *option, const char *name,
                    const char **argv);

/* Checks, before a run that takes minutes, that the program that writes a format can be started. Returns EXIT_OK, or
 * EXIT_USAGE after a message. */
int external_check_format(const struct cli *cli, const struct output_format *format);
/* Has that program write records to a stream. Returns its exit code; the program prints its own messages. */
int external_write_format(const struct cli *cli, const struct output_format *format,
                          const json_t *records, FILE *to);

#endif
