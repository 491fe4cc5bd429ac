/*
 * Builds of the library, and plug-ins, loaded separately from the program's own functions, so that
 * two of them run side by side.
 *
 * Each opening is a copy: the same file twice gives code and data twice. A build's functions call
 * each other, never the program's functions of the same name. A plug-in is a backend that uses the
 * program's functions, as with --plugin, whatever the names of other backends. Dependencies of a
 * build are not copied: two builds that need a library of the same name share it.
 */
#ifndef POSENC_LIBRARY_H
#define POSENC_LIBRARY_H

#include "plugin.h"

struct library {
    char *path;
    bool is_plugin;
    unsigned abi;     /* if not POSENC_ABI, it cannot run here and `n` is 0 */
    char version[32]; /* as it reports; "" for a plug-in */
    size_t n;
    struct implementation *implementations; /* of each backend, with this build's functions */
    const char *(*obstacle)(const struct posenc_backend *); /* posenc_backend_obstacle() */
    void *handle;                                           /* of dlopen() */
    int file;                                               /* the copy */
};

/* Opens a file of this machine. Returns NULL and a message that follows the path and a colon. */
struct library *library_open(const char *path, char error[PLUGIN_ERROR]);
void library_close(struct library *library);

/* Returns the implementation of a backend, or NULL. */
const struct implementation *library_implementation(const struct library *library,
                                                    const char *backend);
/* Returns true if a backend has a kernel and its build has the function to call it. */
bool implementation_provides(const struct implementation *implementation,
                             enum posenc_kernel kernel);

#endif
