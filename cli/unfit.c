/*
 * What is not timed: see unfit.h.
 */
#include "unfit.h"

#include <stdio.h>
#include <stdlib.h>

const char *unfit_why(const struct unfit *unfit, const struct posenc_backend *backend,
                      enum posenc_kernel kernel)
{
    for (size_t i = 0; i < unfit->n; i++)
        if (unfit->list[i].backend == backend && unfit->list[i].kernel == kernel)
            return unfit->list[i].why;
    return NULL;
}

void unfit_add(struct unfit *unfit, const struct posenc_backend *backend,
               enum posenc_kernel kernel, const char *why)
{
    if (unfit_why(unfit, backend, kernel))
        return;
    if (unfit->n == unfit->room) {
        const size_t room = 2 * unfit->room + 16;
        struct unfit_kernel *more = realloc(unfit->list, room * sizeof *more);
        if (!more)
            abort(); /* rather than time it */
        unfit->list = more;
        unfit->room = room;
    }
    struct unfit_kernel *one = &unfit->list[unfit->n++];
    *one = (struct unfit_kernel){ .backend = backend, .kernel = kernel };
    snprintf(one->why, sizeof one->why, "wrong: %s", why);
}

void unfit_free(struct unfit *unfit)
{
    free(unfit->list);
    *unfit = (struct unfit){ 0 };
}
