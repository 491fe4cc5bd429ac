/*
 * Plug-ins, met before they are loaded: a process of its own loads one and tells what it exports.
 * What this process has then is a stand-in, a backend of the same name that lacks nothing but
 * code, at an address that processes started later share; there the code comes into it
 * (plugins_use()).
 */
#ifndef POSENC_CLI_PLUGINS_H
#define POSENC_CLI_PLUGINS_H

#include "conformance/engine/plugin.h"

/* The work of a process in which a plug-in is loaded (worker_doing()). */
#define PLUGINS_LOADING "while it was loaded"

/* The stand-in of a plug-in, the same one for the same file; NULL, and why not, where it
 * cannot be used. What ends the process that loads it is met all the same: plugins_broken()
 * says how. */
const struct posenc_backend *plugins_meet(const char *path, char error[PLUGIN_ERROR]);
/* What --limit says, for those met from now on; NaN: the usual. */
void plugins_limit(double seconds);

/* Of any backend.  Whether it is a stand-in; how its loading ended, of which it has no kernel
 * that could run, though it claims all; what is wrong with its lanes().  NULL: nothing. */
bool plugins_has(const struct posenc_backend *backend);
const char *plugins_broken(const struct posenc_backend *backend);
const char *plugins_lie(const struct posenc_backend *backend);
/* Its lanes; 0: not told. */
int plugins_lanes(const struct posenc_backend *backend);

/* Whether any was met. */
bool plugins_any(void);
/* Loads it into this process; of those that are here, and of other backends, nothing. */
void plugins_use(const struct posenc_backend *backend);
/* And those of its family that are on the library's list, since a suite compares them in bits. */
void plugins_use_family(const struct posenc_backend *backend);
/* The same of all that were met, and of those that will be. */
void plugins_use_all(void);

#endif
