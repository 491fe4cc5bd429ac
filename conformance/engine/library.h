/*
 * Builds of the library, and plug-ins, opened apart from the program's own functions, so that two of
 * them run side by side.
 *
 * Each opening is a copy: the same file twice gives code and data twice.  A build's functions call each
 * other and never the program's of the same name; a plug-in is a backend on the program's functions,
 * as with --plugin, whatever the other backends here are called.  Libraries that a build needs besides
 * the C library are not copied: two builds that need one of the same name share it.
 */
#ifndef POSENC_LIBRARY_H
#define POSENC_LIBRARY_H

#include "plugin.h"

struct library {
    char *path;
    bool is_plugin;
    unsigned abi; /* where it is not POSENC_ABI nothing here can run it: it has no subjects */
    char version[32]; /* that it says; "" of a plug-in */
    size_t n;
    struct subject *subjects; /* a backend each, with the functions of this build */
    const char *text_begin,
        *text_end; /* its machine code; NULL where the system does not tell */
    const char *(*obstacle)(
        const struct posenc_backend *backend); /* posenc_backend_obstacle() */
    void *handle;                              /* of dlopen() */
    int file;                                  /* the copy */
};

/* NULL, and why not in words that follow the path and a colon.  Opens files of this machine alone. */
struct library *library_open(const char *path, char error[PLUGIN_ERROR]);
void library_close(struct library *library);

/* Its subject of that backend; NULL: it has none. */
const struct subject *library_subject(const struct library *library, const char *backend);
/* Whether a backend has a kernel, and its build the function to call it by. */
bool subject_provides(const struct subject *subject, enum posenc_kernel kernel);

#endif
