/*
 * What the laws share: see laws.h.
 */
#include "laws.h"

#include <stdio.h>

bool law_needs(struct tally *t, enum posenc_kernel other)
{
    char reason[100];
    if (posenc_provides(t->run->backend, other))
        return true;
    snprintf(reason, sizeof reason, "the law needs %s too, which this backend does not provide",
             posenc_kernel_name(other));
    tally_skip(t, reason);
    return false;
}
