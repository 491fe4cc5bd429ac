/*
 * Counted instructions: posenc bench --instructions, and the records that posenc pair prints too.
 */
#ifndef POSENC_CLI_INSTRUCTIONS_H
#define POSENC_CLI_INSTRUCTIONS_H

#include "bench/instructions.h"
#include "args.h"

/* Makes a record of kind "count".  `build` is "base" or "head" if two builds are compared, or NULL. */
json_t *instructions_record(const struct kernel_instructions *count,
                            const struct posenc_backend *backend, const char *build);

/* Counts the instructions of the kernels that the command line selects.  Returns the exit code. */
int instructions_command(struct cli *cli);

#endif
