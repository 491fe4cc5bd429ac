/*
 * Plug-ins: backends in shared objects, each of which exports `const struct posenc_backend
 * posenc_plugin`.
 */
#ifndef POSENC_PLUGIN_H
#define POSENC_PLUGIN_H

#include "conformance/problem/problem.h"

enum { PLUGIN_ERROR = 1024 };

/* Opens a shared object for the life of the process. Returns its backend, or NULL and a message
 * that follows the path and a colon. */
const struct posenc_backend *plugin_open(const char *path, char error[PLUGIN_ERROR]);

/* Steps of plugin_open(). The first returns whatever the file exports. */
const struct posenc_backend *plugin_find(const char *path, char error[PLUGIN_ERROR]);
/* Does the same, and requires a usable backend, whatever its name (plugin_check()). */
const struct posenc_backend *plugin_load(const char *path, char error[PLUGIN_ERROR]);
/* Returns true if no other backend has the name. */
bool plugin_has_free_name(const struct posenc_backend *backend, char error[PLUGIN_ERROR]);

/* Returns true if a file is as long as its headers say: loading a truncated one raises SIGBUS.
 * Files that are not ELF files of this machine are left to dlopen(), which reports them. */
bool plugin_is_whole(const char *path);
/* Returns true if a backend is usable here, whatever its name. */
bool plugin_check(const struct posenc_backend *backend, char error[PLUGIN_ERROR]);

/* Open each *.so of a folder by name, and add it to the library's list. Failures are passed to
 * `refused`; their number is returned. A missing folder has none. */
typedef const struct posenc_backend *plugin_opener(const char *path, char error[PLUGIN_ERROR]);
size_t plugins_add_by(plugin_opener *open, const char *folder,
                      void (*refused)(const char *path, const char *error));
size_t plugins_add(const char *folder, void (*refused)(const char *path, const char *error));
void plugin_print_error(const char *path, const char *error); /* "path: error" on stderr */

/* Does the same for the folder of this build, if any; reports failures on stderr. */
static inline size_t plugins_of_build(void)
{
#ifdef POSENC_PLUGINS
    return plugins_add(POSENC_PLUGINS, plugin_print_error);
#else
    return 0;
#endif
}

#endif
