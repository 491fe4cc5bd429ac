/*
 * Plans that calls share.  Suites make the same call many times over, elsewhere in memory or by
 * another backend, and a plan is most of what that costs.
 */
#ifndef POSENC_PLANS_H
#define POSENC_PLANS_H

#include "subject.h"

/* A plan made by the subject: of the library one that stands for the same spec, where the spec
 * names no arrays.  Each is given back once.  Of one thread at a time. */
enum posenc_status plan_take(const struct subject *subject,
                             const struct posenc_freqs_spec *spec, struct posenc_freqs **freqs,
                             struct posenc_error *error);
void plan_give_back(struct posenc_freqs *freqs);

#endif
