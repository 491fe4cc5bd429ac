/*
 * Plug-ins: shared objects that export a backend as `const struct posenc_backend posenc_plugin`. Error messages are
 * printed after the path and a colon.
 */
#ifndef POSENC_PLUGIN_H
#define POSENC_PLUGIN_H

#include "conformance/problem/problem.h"

enum { PLUGIN_ERROR = 1024 };

/* Opens a shared object by its path, without a search in other folders. Returns its handle for dlsym(), or NULL and a
 * message. `what` describes the expected object at the end of the message. */
void *plugin_open_object(const char *path, const char *what, char error[PLUGIN_ERROR]);

/* Open a shared object, which is never closed, and return its backend, or NULL and a message. plugin_find() accepts
 * any exported backend, plugin_load() only those that pass plugin_check(). */
const struct posenc_backend *plugin_find(const char *path, char error[PLUGIN_ERROR]);
const struct posenc_backend *plugin_load(const char *path, char error[PLUGIN_ERROR]);

/* Returns true if a backend is valid for this program; its name may be that of another backend. */
bool plugin_check(const struct posenc_backend *backend, char error[PLUGIN_ERROR]);
/* Returns true if no other backend has the name. */
bool plugin_has_free_name(const struct posenc_backend *backend, char error[PLUGIN_ERROR]);

/* Opens each *.so of a folder in alphabetical order, and adds its backend to the library's list. Passes failures to
 * `rejected`, and returns their number. A missing folder is no failure, but one that cannot be read is. */
typedef const struct posenc_backend *plugin_opener(const char *path, char error[PLUGIN_ERROR]);
typedef void plugin_failure_sink(const char *path, const char *error);
size_t plugins_add_by(plugin_opener *open, const char *folder, plugin_failure_sink *rejected);

/* Does the same by plugin_load(), for backends with new names; prints failures to stderr. */
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
