/*
 * Answers what the list of scaling families, scalings.txt, says of each: its name, its
 * parameters, the profiles it exists in.
 */
#include "scalings.h"
#include "columns.h"
#include "problem.h"
#include "spelling.h"

#include <string.h>

static const struct listed {
    const char *name, *profiles, *rope_type, *parameters, *unused; /* a fifth column */
} listed[] = {
#include "scalings.inc"
};

#undef ROW
#define ROW(name, ...) name,
const char *const scaling_names[] = {
#include "scalings.inc"
    NULL
};

const char *scaling_rope_type(enum posenc_scaling scaling)
{
    return *listed[scaling].rope_type ? listed[scaling].rope_type : NULL;
}

bool scaling_takes(enum posenc_scaling scaling, const char *parameter, size_t length)
{
    return has_word(listed[scaling].parameters, ' ', parameter, length);
}

bool scaling_in_profile(enum posenc_scaling scaling, enum posenc_profile profile)
{
    const char *name = profile_names[profile];
    return profile == POSENC_EXACT ||
           has_word(listed[scaling].profiles, ' ', name, strlen(name));
}
