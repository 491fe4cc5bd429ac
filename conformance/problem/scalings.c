/*
 * Answers what the list of scaling families, scalings.def, says of each: its name, its
 * parameters, the profiles it exists in.
 */
#include "scalings.h"
#include "problem.h"
#include "spelling.h"

#include <string.h>

const char *const scaling_names[] = {
#define SCALING(name, profiles, rope_type, parameters) #name,
#include "scalings.def"
    NULL
};

static const struct listed {
    const char *profiles, *rope_type, *parameters;
} listed[] = {
#define SCALING(name, profiles, rope_type, parameters) { profiles, rope_type, parameters },
#include "scalings.def"
};

const char *scaling_rope_type(enum posenc_scaling scaling) { return listed[scaling].rope_type; }

bool scaling_takes(enum posenc_scaling scaling, const char *parameter, size_t length)
{
    return has_word(listed[scaling].parameters, parameter, length);
}

bool scaling_in_profile(enum posenc_scaling scaling, enum posenc_profile profile)
{
    const char *name = profile_names[profile];
    return profile == POSENC_EXACT || has_word(listed[scaling].profiles, name, strlen(name));
}
