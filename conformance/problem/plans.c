/*
 * Plans that calls share: see plans.h.
 */
#include "plans.h"

#include <string.h>

/* The last plans that were made, with the calls that have them now. */
enum { KEPT = 8 };
static struct kept {
    struct posenc_freqs_spec spec;
    struct posenc_freqs *freqs; /* NULL: none yet */
    int calls;
} kept[KEPT];

static bool can_share(const struct subject *subject, const struct posenc_freqs_spec *spec)
{
    return subject->freqs_create == posenc_freqs_create && !spec->short_factor &&
           !spec->long_factor && !spec->values;
}

/* The place of a plan of this spec, or one whose plan no call has; NULL: all are in use. */
static struct kept *place_of(const struct posenc_freqs_spec *spec)
{
    static int last;
    for (int i = 0; i < KEPT; i++)
        if (kept[i].freqs && memcmp(&kept[i].spec, spec, sizeof *spec) == 0)
            return &kept[i];
    for (int i = 0; i < KEPT; i++) {
        last = (last + 1) % KEPT;
        if (kept[last].calls > 0)
            continue;
        posenc_freqs_destroy(kept[last].freqs);
        kept[last].freqs = NULL;
        return &kept[last];
    }
    return NULL;
}

enum posenc_status plan_take(const struct subject *subject,
                             const struct posenc_freqs_spec *spec, struct posenc_freqs **freqs,
                             struct posenc_error *error)
{
    struct kept *place = can_share(subject, spec) ? place_of(spec) : NULL;
    if (!place)
        return subject->freqs_create(spec, freqs, error);
    if (!place->freqs) {
        const enum posenc_status status = subject->freqs_create(spec, &place->freqs, error);
        if (status != POSENC_OK)
            return status;
        memcpy(&place->spec, spec, sizeof *spec);
    }
    place->calls++;
    *freqs = place->freqs;
    return POSENC_OK;
}

void plan_give_back(struct posenc_freqs *freqs)
{
    for (int i = 0; freqs && i < KEPT; i++)
        if (kept[i].freqs == freqs) {
            kept[i].calls--;
            return;
        }
    posenc_freqs_destroy(freqs);
}
