/*
 * Kernels of backends that are not to be timed, and why: they were wrong, or crashed.
 */
#ifndef POSENC_CLI_UNFIT_H
#define POSENC_CLI_UNFIT_H

#include <posenc.h>
#include <stddef.h>

enum { UNFIT_WHY = 280 };
struct unfit {
    size_t n, room;
    struct unfit_kernel {
        const struct posenc_backend *backend;
        enum posenc_kernel kernel;
        char why[UNFIT_WHY];
    } * list;
};

/* Notes it, unless it is there; `why` follows "wrong: ". */
void unfit_add(struct unfit *unfit, const struct posenc_backend *backend,
               enum posenc_kernel kernel, const char *why);
/* NULL: it is fit. */
const char *unfit_why(const struct unfit *unfit, const struct posenc_backend *backend,
                      enum posenc_kernel kernel);
void unfit_free(struct unfit *unfit);

#endif
