/*
 * Plug-ins. This process never loads one: a worker loads it first and reports what it exports.
 * A stand-in takes its place here, a backend of the same name whose kernels have no code. Workers
 * that start later load the code into the stand-in, at the same address (plugins_load()).
 */
#ifndef POSENC_CLI_PLUGINS_H
#define POSENC_CLI_PLUGINS_H

#include "conformance/engine/plugin.h"

/* The phrase that worker_note_work() has while a plug-in is loaded. */
#define PLUGINS_LOADING "while it was loaded"

/* Returns the stand-in of a plug-in, the same one for the same file; or NULL with a reason if it
 * cannot be used. A plug-in that ends the worker that loads it has a stand-in, too. */
const struct posenc_backend *plugins_make_stand_in(const char *path, char error[PLUGIN_ERROR]);
/* Sets --limit for plug-ins that are loaded from now on; NaN: the default. */
void plugins_set_limit(double seconds);
/* Returns true if there is any stand-in. */
bool plugins_exist(void);

/* The following take any backend. Returns true for a stand-in. */
bool plugins_is_stand_in(const struct posenc_backend *backend);
/* Returns how loading a plug-in failed, or NULL. Such a plug-in claims all kernels and has none. */
const char *plugins_load_error(const struct posenc_backend *backend);
/* Returns what is wrong with its function lanes(), or NULL. */
const char *plugins_lanes_error(const struct posenc_backend *backend);
/* Returns the vector width, or 0 if it is unknown. */
int plugins_lanes(const struct posenc_backend *backend);

/* Loads a plug-in into this process. Does nothing if it is loaded, or for another backend. */
void plugins_load(const struct posenc_backend *backend);
/* Loads the listed plug-ins of its family as well, since a suite compares their bits. */
void plugins_load_family(const struct posenc_backend *backend);
/* Loads all plug-ins that have a stand-in, and those that will have one. */
void plugins_load_all(void);

#endif
