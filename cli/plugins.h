/*
 * Plug-ins. This process never loads one: a worker loads it first and reports what it exports.
 * A stand-in takes its place here, a backend of the same name whose kernels have no code. Workers
 * that start later load the code into the stand-in, at the same address (plugins_use()).
 */
#ifndef POSENC_CLI_PLUGINS_H
#define POSENC_CLI_PLUGINS_H

#include "conformance/engine/plugin.h"

/* The phrase that worker_doing() has while a plug-in is loaded. */
#define PLUGINS_LOADING "while it was loaded"

/* Returns the stand-in of a plug-in, the same one for the same file; or NULL with a reason if it
 * cannot be used. A plug-in that ends the worker that loads it has a stand-in, too. */
const struct posenc_backend *plugins_meet(const char *path, char error[PLUGIN_ERROR]);
/* Sets --limit for plug-ins that are met from now on; NaN: the default. */
void plugins_limit(double seconds);
/* Returns true if any was met. */
bool plugins_any(void);

/* The following take any backend. Returns true for a stand-in. */
bool plugins_has(const struct posenc_backend *backend);
/* Says how loading a plug-in ended; NULL: as it should. Such a one claims all kernels and has none. */
const char *plugins_broken(const struct posenc_backend *backend);
/* Says what is wrong with lanes(); NULL: nothing. */
const char *plugins_lie(const struct posenc_backend *backend);
/* Returns the vector width, or 0 if it is unknown. */
int plugins_lanes(const struct posenc_backend *backend);

/* Loads a plug-in into this process. Does nothing if it is loaded, or for another backend. */
void plugins_use(const struct posenc_backend *backend);
/* Loads the listed plug-ins of its family as well, since a suite compares their bits. */
void plugins_use_family(const struct posenc_backend *backend);
/* Loads all plug-ins that were met, and those that will be. */
void plugins_use_all(void);

#endif
