/*
 * posenc compare of two files of results.
 */
#ifndef POSENC_CLI_COMPARE_FILES_H
#define POSENC_CLI_COMPARE_FILES_H

#include "args.h"

/* Whether a path names records (JSON Lines), and no build. */
bool is_result_file(const char *path);
/* Both operands are such: reads, compares, writes.  1 where head fails what base did not, 5 where they cannot be
 * compared, 3 with --gate where a result got worse. */
int compare_result_files(struct cli *cli);

#endif
