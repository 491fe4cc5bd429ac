/*
 * What scalings.txt says of each scaling family.
 */
#ifndef POSENC_PROBLEM_SCALINGS_H
#define POSENC_PROBLEM_SCALINGS_H

#include <posenc.h>

extern const char *const scaling_names[]; /* by id; NULL at the end */

/* What configurations call it, or NULL. */
const char *scaling_rope_type(enum posenc_scaling scaling);

/* Whether a parameter counts for a family; `length` characters of its name are given. */
bool scaling_takes(enum posenc_scaling scaling, const char *parameter, size_t length);
bool scaling_in_profile(enum posenc_scaling scaling, enum posenc_profile profile);

#endif
