/*
 * Shared objects: plug-ins, and builds of libposenc, so that two of them run side by side in one process:
 *
 *     struct library *base = library_open("base/libposenc.so", error), *head = library_open("head/libposenc.so", error);
 *     const struct implementation *slow = library_implementation(base, "avx2");
 *
 * A plug-in exports a backend as `const struct posenc_backend posenc_plugin`. Error messages are printed after the path
 * and a colon, as in "my.so: exports no posenc_plugin; expected ...".
 */
#ifndef POSENC_LIBRARY_H
#define POSENC_LIBRARY_H

#include "conformance/problem/problem.h"

enum { PLUGIN_ERROR = 1024 };

/* ---- Plug-ins ---- */

/* Opens a shared object, which is never closed, and returns its backend, or NULL and a message. */
const struct posenc_backend *plugin_find(const char *path, char error[PLUGIN_ERROR]);

/* Returns true if a backend is valid for this program; its name may be that of another backend. */
bool plugin_check(const struct posenc_backend *backend, char error[PLUGIN_ERROR]);
/* Returns true if no other backend has the name. */
bool plugin_has_free_name(const struct posenc_backend *backend, char error[PLUGIN_ERROR]);

/* Opens each *.so of a folder in alphabetical order, and adds its backend to the library's list. Passes failures to
 * `rejected`, and returns their number. A missing folder is no failure, but one that cannot be read is. */
typedef const struct posenc_backend *plugin_opener(const char *path, char error[PLUGIN_ERROR]);
typedef void plugin_failure_sink(const char *path, const char *error);
size_t plugins_add_by(plugin_opener *open, const char *folder, plugin_failure_sink *rejected);

/* Does the same for valid backends with new names; prints failures to stderr. */
size_t plugins_add(const char *folder);

/* Adds the plug-ins of this build, if any; returns the number of failures. */
static inline size_t plugins_add_of_build(void)
{
#ifdef POSENC_PLUGINS
    return plugins_add(POSENC_PLUGINS);
#else
    return 0;
#endif
}

/* ---- Builds of the library ---- */

/* Each call of library_open() loads a copy of the file, with code and data of its own. Functions of a build call each
 * other, never the program's functions of the same name. A plug-in uses the program's functions, as with --plugin.
 * Libraries that a build depends on are not copied: two builds share a dependency of the same name. */
struct library {
    char *path;
    bool is_plugin;
    unsigned abi;     /* with another ABI than POSENC_ABI it cannot run here, and `n` is 0 */
    char version[32]; /* as it reports; "" for a plug-in */
    size_t n;         /* number of backends */
    struct implementation
        *implementations; /* one of each backend, with this build's functions */
    /* Its posenc_backend_unavailable_reason(). */
    const char *(*unavailable_reason)(const struct posenc_backend *);
    void *handle; /* of dlopen() */
    int file;     /* descriptor of the copy */
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
