/*
 * Plug-ins: backends in shared objects, each of which exports
 * `const struct posenc_backend posenc_plugin`.
 */
#ifndef POSENC_PLUGIN_H
#define POSENC_PLUGIN_H

#include "conformance/problem/problem.h"

enum { PLUGIN_ERROR = 1024 };

/* Opens the shared object at `path`, for as long as the process lives: what it exports, or NULL
 * and why not, in words that follow the path and a colon. */
const struct posenc_backend *plugin_open(const char *path, char error[PLUGIN_ERROR]);

/* The same in three steps.  What the file exports, whatever that is; */
const struct posenc_backend *plugin_find(const char *path, char error[PLUGIN_ERROR]);
/* the same where it is a backend that can be used here (plugin_check()), whatever its name; */
const struct posenc_backend *plugin_load(const char *path, char error[PLUGIN_ERROR]);
/* and whether no other backend has that. */
bool plugin_has_free_name(const struct posenc_backend *backend, char error[PLUGIN_ERROR]);

/* Whether a file holds all that its headers say.  Loading one that was cut short dies of SIGBUS.
 * What is no ELF file of this machine is left to dlopen, which says so. */
bool plugin_is_whole(const char *path);
/* Whether what it exports is a backend that can be used here, whatever its name; or why not. */
bool plugin_check(const struct posenc_backend *backend, char error[PLUGIN_ERROR]);

/* Opens each *.so of a folder, in the order of their names, and adds it to the library's list.
 * What could not be is told; returns how many.  A folder that is not there has none. */
typedef const struct posenc_backend *plugin_opener(const char *path, char error[PLUGIN_ERROR]);
size_t plugins_add_by(plugin_opener *open, const char *folder,
                      void (*refused)(const char *path, const char *error));
size_t plugins_add(const char *folder, void (*refused)(const char *path, const char *error));
void plugin_tell(const char *path, const char *error); /* "path: error" on stderr */

/* The same for the folder of this build's, where it has any; what could not be is on stderr. */
static inline size_t plugins_of_build(void)
{
#ifdef POSENC_PLUGINS
    return plugins_add(POSENC_PLUGINS, plugin_tell);
#else
    return 0;
#endif
}

#endif
