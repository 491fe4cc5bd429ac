/*
 * Shares of a run (see shard.h).
 */
#include "shard.h"

#include <stdio.h>
#include <string.h>

int shard_read(const struct cli *cli, struct shard *shard)
{
    int end = 0;
    *shard = (struct shard){ 0, 0 };
    if (!cli->shard)
        return EXIT_FINE;
    const int n = sscanf(cli->shard, "%4d/%4d%n", &shard->i, &shard->n, &end);
    if (n == 2 && cli->shard[end] == '\0' && shard->n >= 1 && shard->n <= SHARDS_MAX &&
        shard->i >= 0 && shard->i < shard->n)
        return EXIT_FINE;
    return cli_refuse(
        cli, "--shard", cli->shard,
        "expected I/N, share I of N with I from 0 to N - 1 and N at most %d, e.g. "
        "0/4, 1/4, 2/4 and 3/4",
        SHARDS_MAX);
}

/* Checks of the memory suite are made together, in one sweep over a kernel in a type: they have one
 * share, which follows from "kernel/dtype/memory". */
static size_t length_of_unit(const char *id)
{
    static const char memory[] = "/memory/";
    const char *together = strstr(id, memory);
    return together ? (size_t)(together - id) + strlen(memory) - 1 : strlen(id);
}

/* FNV-1a of 64 bits, its bits mixed as MurmurHash3 does at its end: a share is the remainder. */
bool shard_has(const struct shard *shard, const char *id)
{
    uint64_t hash = 0xcbf29ce484222325u;
    if (shard->n == 0)
        return true;
    for (size_t i = 0, n = length_of_unit(id); i < n; i++)
        hash = (hash ^ (unsigned char)id[i]) * 0x100000001b3u;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53u;
    return (hash ^ hash >> 33) % (uint64_t)shard->n == (uint64_t)shard->i;
}
