/*
 * Plug-ins: backends in shared objects, each of which exports `const struct posenc_backend
 * posenc_plugin`. Error messages follow the path and a colon.
 */
#ifndef POSENC_PLUGIN_H
#define POSENC_PLUGIN_H

#include "conformance/problem/problem.h"

enum { PLUGIN_ERROR = 1024 };

/* Opens a shared object, by a path and never by a search in other folders. Returns its handle for
 * dlsym(), or NULL and a message that ends with what was `expected`. */
void *plugin_open_object(const char *path, const char *expected, char error[PLUGIN_ERROR]);

/* Open a shared object for the life of the process, and return its backend, or NULL and a message.
 * The first returns any exported backend, the second only one that plugin_check() accepts. */
const struct posenc_backend *plugin_find(const char *path, char error[PLUGIN_ERROR]);
const struct posenc_backend *plugin_load(const char *path, char error[PLUGIN_ERROR]);

/* Returns true if a backend is usable here, whatever its name. */
bool plugin_check(const struct posenc_backend *backend, char error[PLUGIN_ERROR]);
/* Returns true if no other backend has the name. */
bool plugin_has_free_name(const struct posenc_backend *backend, char error[PLUGIN_ERROR]);

/* Opens each *.so of a folder by name, and adds its backend to the library's list. Passes failures to
 * `rejected` and returns their number. A missing folder has none. */
typedef const struct posenc_backend *plugin_opener(const char *path, char error[PLUGIN_ERROR]);
typedef void plugin_rejected(const char *path, const char *error);
size_t plugins_add_by(plugin_opener *open, const char *folder, plugin_rejected *rejected);

/* Does the same for usable plug-ins with free names, and prints failures to stderr. */
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

#endif
