/*
 * Loader of builds of libposenc and of plug-ins, so that two of them run side by side in one process.
 *
 * Each call of library_open() loads a copy of the file, with code and data of its own. Functions of a build call each
 * other, never the program's functions of the same name. A plug-in uses the program's functions, as with --plugin.
 * Libraries that a build depends on are not copied: two builds share a dependency of the same name.
 */
#ifndef POSENC_LIBRARY_H
#define POSENC_LIBRARY_H

#include "plugin.h"

struct library {
    char *path;
    bool is_plugin;
    unsigned abi;     /* with another ABI than POSENC_ABI it cannot run here, and `n` is 0 */
    char version[32]; /* as it reports; "" for a plug-in */
    size_t n;
    struct implementation
        *implementations; /* one for each backend, with this build's functions */
    const char *(*unavailable_reason)(
        const struct posenc_backend *); /* its posenc_backend_unavailable_reason() */
    void *handle;                       /* of dlopen() */
    int file;                           /* descriptor of the copy */
};

/* Opens a file. Returns NULL on failure, with a message to print after the path and a colon. */
struct library *library_open(const char *path, char error[PLUGIN_ERROR]);
void library_close(struct library *library);

/* Returns the implementation of a backend, or NULL. */
const struct implementation *library_implementation(const struct library *library,
                                                    const char *backend);
/* Returns true if a backend has a kernel and its build has the function to call it. */
bool implementation_provides(const struct implementation *implementation,
                             enum posenc_kernel kernel);

#endif
