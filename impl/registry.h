/*
 * Which backend serves a call.
 */
#ifndef POSENC_REGISTRY_H
#define POSENC_REGISTRY_H

#include "internal.h"

/* Replaces NULL by the selected backend; OK when that backend runs here and provides the
 * kernel. */
enum posenc_status posenc_resolve(const struct posenc_backend **backend,
                                  enum posenc_kernel kernel, struct posenc_error *error);

#endif
