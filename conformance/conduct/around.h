/*
 * A backend in whose every kernel the real one is called by a function of ours, which sees what is
 * so right before and right after it, without the front-end.
 */
#ifndef POSENC_AROUND_H
#define POSENC_AROUND_H

#include "registers.h"

typedef enum posenc_status call_around(void *user, any_kernel_function *kernel,
                                       const void *args);

/* In calls of this thread, until backend_around() is called again: it keeps `real` and `user`. */
struct posenc_backend backend_around(const struct posenc_backend *real, call_around *around,
                                     void *user);

#endif
