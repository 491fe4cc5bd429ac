/*
 * Numbers at random: see draws.h.
 */
#include "draws.h"

int64_t draw(struct draws *d, int64_t least, int64_t most)
{
    return least + (int64_t)(mix64(d->seed, d->next++) % (uint64_t)(most - least + 1));
}
