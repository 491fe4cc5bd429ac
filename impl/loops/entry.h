/*
 * All of a call but its kernel.
 */
#ifndef POSENC_ENTRY_H
#define POSENC_ENTRY_H

#include <posenc.h>

/* Takes the arguments of a call, checks them and finds the backend, as posenc_<kernel>() does; returns
 * what it would before its kernel runs.  args: struct posenc_<signature>_args of that kernel; backend:
 * NULL for the default. */
enum posenc_status posenc_entry(enum posenc_kernel kernel, const struct posenc_backend *backend,
                                const void *args);

#endif
