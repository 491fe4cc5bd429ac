/* Counts instructions: posenc bench --instructions. posenc pair prints the same records. */
#ifndef POSENC_CLI_INSTRUCTIONS_H
#define POSENC_CLI_INSTRUCTIONS_H

#include "bench/instructions.h"
#include "args.h"

/* Returns a record of kind "count". `build` is "base" or "head" in posenc pair, else NULL. */
json_t *instructions_record(const struct kernel_instructions *count,
                            const struct posenc_backend *backend, const char *build);

/* Runs posenc bench --instructions and returns the exit code. */
int command_instructions(struct cli *cli);

#endif
