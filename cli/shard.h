/*
 * --shard I/N: one of N shares of a run, I from 0 to N - 1 as arrays of jobs count.  Which share a
 * case is in follows from its id alone: all backends of a case are checked and timed in the same
 * share, and the N shares together are the whole run.
 */
#ifndef POSENC_CLI_SHARD_H
#define POSENC_CLI_SHARD_H

#include "args.h"

enum { SHARDS_MAX = 4096 };

struct shard {
    int i, n; /* n 0: all of it */
};

/* Reads --shard if it is given. Returns EXIT_FINE, or EXIT_USAGE after a message. */
int shard_read(const struct cli *cli, struct shard *shard);
bool shard_has(const struct shard *shard, const char *id);

#endif
