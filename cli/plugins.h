/*
 * Plug-ins, which the main process never loads, as they may crash. For --plugin mine.so, a worker loads the file and
 * reports its properties: name "mine", kernels "alibi", ... From these the main process makes a stub, a backend of the
 * same name whose kernels are not implemented. Workers that start later load the plug-in and copy its functions into
 * the stub (plugins_load()). Programs that answer prompts are plug-ins, too.
 */
#ifndef POSENC_CLI_PLUGINS_H
#define POSENC_CLI_PLUGINS_H

#include "conformance/engine/engine.h"
#include "conformance/engine/library.h"

/* Kinds of plug-ins, by their path. A program is loaded by starting it. */
enum plugin_kind {
    PLUGIN_LIBRARY, /* path of a shared library */
    PLUGIN_PROGRAM, /* command of a program that answers prompts (conformance/program) */
    PLUGIN_ANSWERS  /* folder with answers of such a program */
};

/* Returns the stub of a plug-in, the same one for the same file, or NULL with a reason if the file is not a plug-in. A
 * plug-in that crashes while it is loaded has a stub, too: see plugins_load_error(). */
const struct posenc_backend *plugins_make_stub(enum plugin_kind kind, const char *path,
                                               char error[PLUGIN_ERROR]);
/* Sets the time limit for loading, --limit; NaN: the default. */
void plugins_set_limit(double seconds);
/* Returns true if there is any stub. */
bool plugins_exist(void);

/* The following functions accept any backend. */

/* Returns true for a stub. */
bool plugins_is_stub(const struct posenc_backend *backend);
/* Returns how a plug-in answers prompts. */
enum program_mode plugins_program_mode(const struct posenc_backend *backend);
/* Returns how loading failed, or the defect of its function lanes(), or NULL. The stub of such a plug-in claims to
 * provide all kernels, so that each gets a failed result. */
const char *plugins_load_error(const struct posenc_backend *backend);
/* Returns the vector width in f32 elements, or 0 if it is unknown. */
int plugins_lanes(const struct posenc_backend *backend);

/* ---- In a worker ---- */

/* Ends the program that was started in this worker, if any. */
void plugins_unload(void);
/* Loads a plug-in into this process. Does nothing if it is loaded already, or for another backend. */
void plugins_load(const struct posenc_backend *backend);
/* Loads the other plug-ins of its family as well, since a suite compares their bits. */
void plugins_load_family(const struct posenc_backend *backend);
/* Loads all plug-ins that have a stub, now or later. */
void plugins_load_all(void);

#endif
